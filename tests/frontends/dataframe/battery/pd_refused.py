"""Functions of pandas that should be refused, each with the word that its message should have."""

import hashlib
import io
import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
from frame_cases import refused


@refused("loans", "branch")
def branch_on_mean(df):
    if df["rate"].mean() > 10:
        df["rate"] = df["rate"] / 100
    return df[["rate"]]


@refused("loans", "branch")
def branch_on_any(df):
    df["flag"] = 1 if (df["late"] > 0).any() else 0
    return df[["flag"]]


@refused("loans", "branch")
def branch_on_empty(df):
    if df.empty:
        return df[["id"]]
    return df[["id"]] * 2


@refused("loans", "branch")
def while_on_values(df):
    while df["rate"].max() > 100:
        df["rate"] = df["rate"] / 10
    return df[["rate"]]


@refused("loans", "branch")
def assert_on_values(df):
    assert (df["term"] > -100).all()
    return df[["term"]]


@refused("loans", "branch")
def truth_of_column(df):
    return df[["id"]] if df["rate"].sum() else df[["term"]]


@refused("loans", "iterrows")
def loop_iterrows(df):
    found = []
    for _, row in df.iterrows():
        found.append(row["loan"] * 2)
    return pd.DataFrame({"x": found})


@refused("loans", "itertuples")
def loop_itertuples(df):
    return pd.DataFrame({"x": [row.loan * 2 for row in df.itertuples()]})


@refused("loans", "iterat")
def loop_over_values(df):
    return pd.DataFrame({"x": [value + 1 for value in df["loan"]]})


@refused("loans", "iterat")
def loop_zip(df):
    return pd.DataFrame({"x": [a + b for a, b in zip(df["loan"], df["rate"], strict=True)]})


@refused("loans", "tolist")
def through_a_list(df):
    return pd.DataFrame({"x": df["loan"].tolist()})


@refused("loans", "unique")
def loop_over_unique(df):
    for value in df["grade"].unique():
        df[f"is_{value}"] = df["grade"] == value
    return df.filter(like="is_")


@refused("loans", "get_dummies")
def open_dummies(df):
    return pd.get_dummies(df["purpose"])


@refused("loans", "get_dummies")
def open_dummies_of_frame(df):
    return pd.get_dummies(df[["age", "grade"]])


@refused("logs", "get_dummies")
def text_dummies(df):
    return df["pairs"].str.get_dummies(sep=";")


@refused("orders", "pivot")
def open_pivot(df):
    return df.pivot_table(index="customer_id", columns="product", values="qty", aggfunc="sum").reset_index()


@refused("orders", "crosstab")
def open_crosstab(df):
    return pd.crosstab(df["customer_id"], df["product"])


@refused("orders", "unstack")
def open_unstack(df):
    return df.groupby(["customer_id", "product"])["qty"].sum().unstack()


@refused("loans", "transpose")
def transposed(df):
    return df[["age", "rate"]].T


@refused("loans", "hash")
def built_in_hash(df):
    return df["grade"].apply(hash).rename("h")


@refused("loans", "hash")
def pandas_hash(df):
    return pd.util.hash_pandas_object(df["grade"]).rename("h")


@refused("customers", "hash")
def digest_of_email(df):
    return df["email"].fillna("").apply(lambda s: hashlib.sha256(s.encode()).hexdigest()).rename("h")


@refused("loans", "sample")
def random_rows(df):
    return df.sample(frac=0.5)


@refused("loans", "random")
def random_noise(df):
    return (df["loan"] + np.random.normal(size=len(df))).rename("x")


@refused("loans", "random")
def random_from_generator(df):
    return (df["loan"] + np.random.default_rng(0).random(len(df))).rename("x")


@refused("loans", "random")
def random_in_lambda(df):
    return df["loan"].apply(lambda x: x + random.random()).rename("x")


@refused("sensors", "resample")
def resample_hours(df):
    return df.set_index("at")[["temp"]].resample("h").mean().reset_index()


@refused("sensors", "asfreq")
def as_frequency(df):
    return df.set_index("at")[["temp"]].asfreq("h").reset_index()


@refused("loans", "text")
def float_as_text(df):
    return df["rate"].astype(str).rename("rate")


@refused("loans", "text")
def float_formatted(df):
    return df["rate"].map("{:.2f}".format).rename("rate")


@refused("loans", "text")
def float_in_f_string(df):
    return df["rate"].apply(lambda r: f"{r:.1f}%").rename("rate")


@refused("loans", "f-string")
def float_in_plain_f_string(df):
    return df["rate"].apply(lambda r: f"{r}%").rename("rate")


@refused("loans", "f-string")
def f_string_in_capitals(df):
    return df["grade"].apply(lambda g: f"{g}-x".upper()).rename("grade")


@refused("loans", "f-string")
def f_string_compared(df):
    return df["late"].apply(lambda n: 1 if f"{n}" == "1" else 0).rename("late")


@refused("loans", "f-string")
def f_string_of_another_function(df):
    def name(n):
        return f"{n}"

    return df["late"].apply(lambda n: len(name(n))).rename("late")


@refused("logs", "time zone")
def localized(df):
    return df["at"].dt.tz_localize("Europe/Berlin", ambiguous="NaT", nonexistent="NaT").rename("at")


@refused("logs", "time zone")
def converted_zone(df):
    return df["at"].dt.tz_localize("UTC").dt.tz_convert("America/New_York").dt.hour.rename("hour")


@refused("logs", "time zone")
def parsed_as_utc(df):
    return pd.to_datetime(df["path"], utc=True, errors="coerce", format="%Y").rename("at")


@refused("orders", "many-to-many")
def merge_with_itself(df):
    return df[["product", "qty"]].merge(df[["product", "price"]], on="product")


@refused("logs", "opaque")
def json_in_lambda(df):
    return df["pairs"].apply(lambda s: len(json.dumps(s))).rename("n")


@refused("titanic", "opaque")
def try_in_apply(df):
    def number(text):
        try:
            return int(text.split()[-1])
        except (ValueError, AttributeError, IndexError):
            return -1

    return df["Ticket"].apply(number).rename("n")


@refused("loans", "read")
def reads_a_file(df):
    table = pd.read_csv(io.StringIO("term,level\n12,1\n24,2\n"))
    return df.merge(table, on="term", how="left")[["id", "level"]]


@refused("loans", "write")
def writes_a_file(df):
    df[["id"]].to_csv(Path("/dev/null"))
    return df[["id"]]


@refused("loans", "numpy")
def through_numpy(df):
    return pd.DataFrame({"x": np.asarray(df["loan"]).cumsum()})


@refused("loans", "float(")
def python_float(df):
    return (df["loan"] / float(df["loan"].max())).rename("x")


@refused("orders", "explode")
def exploded(df):
    return df.assign(part=df["sku"].str.split("-"))[["order_id", "part"]].explode("part")


@refused("loans", "now")
def age_now(df):
    return (pd.Timestamp.now() - df["applied"]).dt.days.rename("days")
