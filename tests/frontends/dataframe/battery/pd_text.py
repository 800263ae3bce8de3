"""Strings: case, strip, contains, replace, split, extract, slices, lengths, joining."""

import pandas as pd
from frame_cases import case


@case("loans")
def upper_lower(df):
    return pd.DataFrame({"u": df.purpose.str.upper(), "l": df.purpose.str.lower()})


@case("customers")
def title_and_capitalize(df):
    return pd.DataFrame({"t": df.city.str.title(), "c": df.city.str.capitalize(), "s": df.city.str.swapcase()})


@case("loans")
def strip_text(df):
    return pd.DataFrame({"b": df.purpose.str.strip(), "l": df.grade.str.lstrip(), "r": df.grade.str.rstrip()})


@case("customers")
def strip_characters(df):
    return df["phone"].str.strip("+0 ").rename("phone")


@case("loans")
def clean_text_chain(df):
    df["purpose"] = df["purpose"].str.strip().str.lower().str.replace(" ", "_")
    return df[["purpose"]]


@case("loans")
def contains_literal(df):
    return df["employer"].str.contains("Inc", regex=False).fillna(False).rename("inc")


@case("loans")
def contains_with_na(df):
    df["business"] = df["purpose"].str.contains("business", na=False)
    return df[["business"]]


@case("logs")
def contains_any_case(df):
    return df["agent"].str.contains("bot", case=False, na=False).rename("bot")


@case("logs")
def contains_regex(df):
    return pd.DataFrame(
        {
            "shop": df.path.str.contains(r"^/shop/", na=False),
            "id": df.path.str.contains(r"/\d+", na=False),
            "either": df.agent.str.contains("curl|bot", case=False, na=False),
        }
    )


@case("logs")
def contains_missing_kept(df):
    return df["referrer"].str.contains("https").rename("secure")


@case("logs")
def starts_and_ends(df):
    return pd.DataFrame(
        {
            "api": df.path.str.startswith("/api"),
            "js": df.path.str.endswith(".js"),
            "many": df.path.str.startswith(("/shop", "/api")),
        }
    )


@case("logs")
def starts_with_na(df):
    return df["referrer"].str.startswith("http", na=False).astype(int).rename("linked")


@case("logs")
def full_match(df):
    return df["ip"].str.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", na=False).rename("v4")


@case("logs")
def match_start(df):
    return df["path"].str.match(r"/(shop|api)", na=False).rename("known")


@case("customers")
def valid_email(df):
    return df["email"].str.match(r"^[\w.]+@[\w.]+\.[a-z]+$", na=False).rename("valid")


@case("customers")
def email_domain(df):
    df["domain"] = df["email"].str.split("@").str[1]
    return df[["domain"]]


@case("customers")
def email_domain_last(df):
    return df["email"].str.split("@").str[-1].str.lower().rename("domain")


@case("customers")
def email_is_free(df):
    return df["email"].str.split("@").str[1].str.lower().isin(["mail.com", "example.org"]).rename("free")


@case("customers")
def split_expand(df):
    df[["first", "rest"]] = df["name"].str.split(" ", n=1, expand=True).reindex(columns=[0, 1])
    return df[["first", "rest"]]


@case("customers")
def split_get(df):
    return df["name"].str.split().str.get(0).rename("first")


@case("customers")
def last_name_by_rsplit(df):
    return df["name"].str.rsplit(" ", n=1).str[-1].rename("last")


@case("customers", raises=("none",))
def partition_email(df):
    return df["email"].str.partition("@")[[0, 2]].set_axis(["user", "domain"], axis=1)


@case("titanic")
def title_by_extract(df):
    df["Title"] = df["Name"].str.extract(r" ([A-Za-z]+)\.", expand=False)
    return df[["Title"]]


@case("titanic")
def title_grouped(df):
    df["Title"] = df["Name"].str.extract(r" ([A-Za-z]+)\.", expand=False)
    df["Title"] = df["Title"].replace(["Lady", "Countess", "Col", "Dr", "Rev"], "Rare")
    df["Title"] = df["Title"].map({"Mr": 1, "Miss": 2, "Mrs": 3, "Master": 4, "Rare": 5}).fillna(0)
    return df[["Title"]]


@case("titanic")
def title_by_split(df):
    df["Title"] = df["Name"].str.split(", ").str[1].str.split(".").str[0]
    df["Surname"] = df["Name"].str.split(",").str[0]
    return df[["Title", "Surname"]]


@case("titanic")
def deck_letter(df):
    df["Deck"] = df["Cabin"].str.slice(0, 1)
    df["Rooms"] = (df["Cabin"].str.count(" ") + 1).fillna(0)
    return df[["Deck", "Rooms"]]


@case("titanic")
def name_length(df):
    df["NameLen"] = df["Name"].str.len()
    return df[["NameLen"]]


@case("titanic")
def ticket_is_number(df):
    return df["Ticket"].str.isdigit().fillna(False).astype(int).rename("number")


@case("titanic")
def sex_initial(df):
    return df["Sex"].str[0].str.upper().rename("s")


@case("orders")
def sku_parts(df):
    parts = df["sku"].str.extract(r"^([A-Z]+)-(\d+)-([A-Z])$")
    parts.columns = ["family", "number", "variant"]
    return parts


@case("orders")
def sku_number(df):
    df["number"] = pd.to_numeric(df["sku"].str.extract(r"-(\d+)-")[0])
    return df[["number"]]


@case("orders")
def named_groups(df):
    return df["sku"].str.extract(r"(?P<family>[A-Z]{2})-(?P<number>\d+)")


@case("orders")
def text_to_number(df):
    df["amount"] = pd.to_numeric(df["amount"], errors="coerce")
    return df[["amount"]]


@case("orders")
def text_to_number_cleaned(df):
    df["amount"] = pd.to_numeric(df["amount"].str.replace(",", "").str.replace("%", ""), errors="coerce").fillna(0)
    return df[["amount"]]


@case("orders")
def joined_with_literal(df):
    df["key"] = df["product"] + "/" + df["channel"].fillna("none")
    df["tag"] = "sku:" + df["sku"]
    return df[["key", "tag"]]


@case("orders")
def concat_columns(df):
    return df["product"].str.cat(df["sku"], sep="_").rename("key")


@case("orders")
def concat_with_na_rep(df):
    return df["product"].str.cat([df["channel"], df["sku"]], sep="|", na_rep="?").rename("key")


@case("orders")
def int_to_text(df):
    return ("C" + df["customer_id"].astype(str)).rename("key")


@case("orders")
def count_characters(df):
    return pd.DataFrame({"dashes": df.sku.str.count("-"), "digits": df.sku.str.count(r"\d")})


@case("orders")
def replace_literal(df):
    return df["sku"].str.replace("-", "", regex=False).rename("sku")


@case("orders")
def replace_regex(df):
    return pd.DataFrame(
        {"d": df.sku.str.replace(r"\d+", "#", regex=True), "l": df.sku.str.replace(r"[^A-Z]", "", regex=True)}
    )


@case("orders")
def replace_groups(df):
    return df["sku"].str.replace(r"(\w+)-(\d+)", r"\2-\1", regex=True).rename("sku")


@case("orders")
def zfill_and_pad(df):
    return pd.DataFrame(
        {"z": df.amount.str.zfill(6), "l": df["product"].str.ljust(8, "."), "r": df["product"].str.rjust(8)}
    )


@case("orders")
def slices_of_text(df):
    return pd.DataFrame(
        {"head": df.sku.str[:2], "tail": df.sku.str[-1], "mid": df.sku.str[3:5], "year": df.day.str[:4]}
    )


@case("orders")
def remove_prefix_suffix(df):
    return pd.DataFrame({"p": df.sku.str.removeprefix("AB-"), "s": df.sku.str.removesuffix("-Y")})


@case("orders")
def compare_text(df):
    return pd.DataFrame(
        {"eq": df["product"] == "lamp", "ne": df.channel != "web", "both": df["product"].eq(df.channel)}
    )


@case("orders")
def ordered_text(df):
    return pd.DataFrame({"lt": df["product"].fillna("") < "desk", "ge": df.sku.fillna("") >= "CD"})


@case("orders")
def find_position(df):
    return df["sku"].str.find("-").rename("at")


@case("logs")
def path_parts(df):
    parts = df["path"].str.split("/")
    return pd.DataFrame({"top": parts.str[1], "second": parts.str[2], "depth": df.path.str.count("/")})


@case("logs")
def path_without_query(df):
    df["page"] = df["path"].str.split("?").str[0].str.lower()
    df["query"] = df["path"].str.split("?").str[1].fillna("")
    return df[["page", "query"]]


@case("logs")
def key_value_pairs(df):
    df["a"] = pd.to_numeric(df["pairs"].str.extract(r"a=(\d+)", expand=False))
    df["b"] = pd.to_numeric(df["pairs"].str.extract(r"b=(\d+)", expand=False)).fillna(0)
    return df[["a", "b"]]


@case("logs")
def browser_family(df):
    agent = df["agent"].fillna("").str.lower()
    df["kind"] = "browser"
    df.loc[agent.str.contains("bot"), "kind"] = "bot"
    df.loc[agent.str.startswith("curl"), "kind"] = "tool"
    df.loc[agent == "", "kind"] = "none"
    return df[["kind"]]


@case("logs")
def agent_version(df):
    return df["agent"].str.extract(r"/(\d+)\.(\d+)").set_axis(["major", "minor"], axis=1)


@case("logs")
def first_octet(df):
    return pd.to_numeric(df["ip"].str.split(".").str[0], errors="coerce").rename("octet")


@case("logs")
def is_private_address(df):
    return (df.ip.str.startswith("10.") | df.ip.str.startswith("192.168.")).fillna(False).rename("private")


@case("customers")
def phone_digits(df):
    df["digits"] = df["phone"].str.replace(r"[^0-9]", "", regex=True)
    df["long"] = df["digits"].str.len() > 8
    return df[["digits", "long"]]


@case("customers")
def nullable_text(df):
    return pd.DataFrame(
        {"u": df.note.str.upper(), "n": df.note.str.len(), "v": df.note.str.contains("vip", case=False)}
    )


@case("customers")
def word_count(df):
    return df["note"].fillna("").str.split().str.len().rename("words")


@case("customers")
def keyword_flags(df):
    for word in ["vip", "refund", "late"]:
        df["has_" + word] = df["note"].str.lower().str.contains(word).fillna(False).astype(bool)
    return df.filter(like="has_")


@case("customers")
def kinds_of_characters(df):
    return pd.DataFrame(
        {
            "a": df.city.str.isalpha(),
            "u": df.city.str.isupper(),
            "l": df.city.str.islower(),
            "n": df.city.str.isnumeric(),
            "s": df.city.str.isspace(),
        }
    )


@case("customers")
def repeat_text(df):
    return df["city"].str.repeat(2).rename("city")


@case("customers")
def country_lower(df):
    return df["country"].str.lower().rename("country")


@case("houses")
def yes_no(df):
    df["CentralAir"] = (df["CentralAir"].str.upper() == "Y").astype(int)
    return df[["CentralAir"]]


@case("customers")
def regex_replace_spaces(df):
    return df["name"].str.strip().str.replace(r"\s+", " ", regex=True).rename("name")


@case("customers")
def dummies_from_text(df):
    return df["note"].fillna("").str.contains("|".join(["vip", "VIP"])).astype(int).rename("vip")
