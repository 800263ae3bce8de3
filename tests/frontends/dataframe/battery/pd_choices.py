"""Choices between values: where, mask, select, case_when, clip, between, isin, loc."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def where_two_values(df):
    df["size"] = np.where(df["loan"] > 10000, "large", "small")
    return df[["id", "size"]]


@case("loans")
def where_numbers(df):
    df["capped"] = np.where(df["rate"] > 20, 20, df["rate"])
    return df[["capped"]]


@case("loans")
def nested_where(df):
    df["band"] = np.where(
        df.score < 580, "poor", np.where(df.score < 670, "fair", np.where(df.score < 740, "good", "great"))
    )
    return df[["band"]]


@case("loans")
def where_flag_int(df):
    df["is_late"] = np.where(df["late"] > 0, 1, 0)
    return df[["is_late"]]


@case("loans")
def series_where(df):
    return df["income"].where(df["income"] > 0, 0).rename("income")


@case("loans")
def series_where_missing(df):
    return df["income"].where(df["income"].between(1, 1e6)).rename("income")


@case("loans")
def series_mask(df):
    return df["age"].mask(df["age"] > 100, 100).rename("age")


@case("loans")
def mask_to_nan(df):
    df["age"] = df["age"].mask((df["age"] < 18) | (df["age"] > 100))
    return df[["age"]]


@case("loans")
def mask_strings(df):
    return df["purpose"].mask(df["purpose"] == "Other", "misc").rename("purpose")


@case("loans")
def mask_ints_to_missing(df):
    return df["term"].mask(df["term"] <= 0).rename("term")


@case("loans")
def select_bands(df):
    conditions = [df["rate"] < 5, df["rate"] < 10, df["rate"] < 20]
    df["band"] = np.select(conditions, ["prime", "near", "sub"], default="deep")
    return df[["band"]]


@case("loans")
def select_numbers(df):
    return pd.DataFrame(
        {"fee": np.select([df.term <= 12, df.term <= 36], [df.loan * 0.01, df.loan * 0.02], default=df.loan * 0.03)}
    )


@case("loans")
def select_with_missing_default(df):
    df["pd"] = np.select([df.grade == "A", df.grade == "B"], [0.01, 0.03], default=np.nan)
    return df[["pd"]]


@case("loans")
def case_when_bands(df):
    df["band"] = df["grade"].case_when([(df.score >= 740, "great"), (df.score >= 600, "fair")])
    return df[["band"]]


@case("loans")
def case_when_numbers(df):
    base = pd.Series(0.0, index=df.index)
    return base.case_when([(df.late > 2, 1.0), (df.rate > 15, df.rate / 100)]).rename("risk")


@case("loans")
def clip_both_ends(df):
    return pd.DataFrame({"age": df.age.clip(18, 100), "score": df.score.clip(300, 850), "rate": df.rate.clip(upper=20)})


@case("loans")
def clip_by_column(df):
    return df["loan"].clip(upper=df["income"].fillna(1e9)).rename("loan")


@case("loans")
def clip_frame(df):
    return df[["age", "rate"]].clip(lower=0, upper=90)


@case("loans")
def between_flag(df):
    df["prime_age"] = df["age"].between(25, 55)
    df["open"] = df["age"].between(25, 55, inclusive="neither")
    df["left"] = df["late"].between(1, 3, inclusive="left")
    return df[["prime_age", "open", "left"]]


@case("loans")
def isin_strings(df):
    df["asset"] = df["purpose"].isin(["car", "home"])
    return df[["asset"]]


@case("loans")
def isin_numbers(df):
    return pd.DataFrame(
        {"std": df.term.isin([12, 24, 36]), "odd": ~df.late.isin({1, 3, 5}), "age": df.age.isin([25, 40, np.nan])}
    )


@case("loans")
def isin_category(df):
    return df["region"].isin(["north", "south"]).astype(int).rename("ns")


@case("loans")
def loc_assign_scalar(df):
    df["tier"] = "standard"
    df.loc[df["score"] > 740, "tier"] = "premium"
    df.loc[df["late"] > 2, "tier"] = "watch"
    return df[["id", "tier"]]


@case("loans")
def loc_assign_number(df):
    df.loc[df["age"] < 18, "age"] = 18
    df.loc[df["age"].isna(), "age"] = 40
    return df[["age"]]


@case("loans")
def loc_assign_column(df):
    df.loc[df.income <= 0, "income"] = df.loan
    return df[["income"]]


@case("loans")
def loc_assign_same_mask_both_sides(df):
    late = df["late"] > 0
    df.loc[late, "rate"] = df.loc[late, "rate"] + 2
    return df[["rate"]]


@case("loans", raises=("none",))
def loc_new_column_partly(df):
    df.loc[df["employed"], "bonus"] = 1.0
    return df[["employed", "bonus"]]


@case("loans")
def loc_two_conditions(df):
    df["flag"] = 0
    df.loc[(df["rate"] > 10) & (df["late"] > 0) | ~df["employed"], "flag"] = 1
    return df[["flag"]]


@case("loans")
def combine_first_columns(df):
    return df["age"].combine_first(df["rate"]).rename("age")


@case("loans")
def sum_of_flags(df):
    flags = [df.late > 0, df.rate > 15, df.income < 20000, ~df.employed]
    df["flags"] = sum(flag.astype(int) for flag in flags)
    return df[["flags"]]


@case("loans")
def any_and_all_of_row(df):
    checks = pd.DataFrame({"a": df.rate > 10, "b": df.late > 0, "c": df.employed})
    return checks.assign(any=checks.any(axis=1), all=checks.all(axis=1))


@case("loans")
def best_of_row(df):
    return df[["rate", "age"]].fillna(0).idxmax(axis=1).rename("which")


@case("loans")
def logical_functions(df):
    return pd.DataFrame(
        {
            "a": np.logical_and(df.rate > 10, df.employed),
            "o": np.logical_or(df.rate > 10, df.employed),
            "n": np.logical_not(df.employed),
        }
    )


@case("titanic")
def child_woman_man(df):
    df["Who"] = np.where(df.Age < 16, "child", df.Sex)
    return df[["Who"]]


@case("titanic", raises=("none",))
def fare_bins_by_loc(df):
    df["Fare"] = df["Fare"].fillna(14.45)
    df.loc[df["Fare"] <= 7.91, "FareBin"] = 0
    df.loc[(df["Fare"] > 7.91) & (df["Fare"] <= 14.454), "FareBin"] = 1
    df.loc[(df["Fare"] > 14.454) & (df["Fare"] <= 31), "FareBin"] = 2
    df.loc[df["Fare"] > 31, "FareBin"] = 3
    df["FareBin"] = df["FareBin"].astype(int)
    return df[["FareBin"]]


@case("titanic")
def has_cabin(df):
    df["Has_Cabin"] = df["Cabin"].notna().astype(int)
    df["Deck"] = df["Cabin"].str[0].fillna("U")
    return df[["Has_Cabin", "Deck"]]


@case("orders")
def shipping_fee(df):
    fee = pd.Series(np.where(df.price * df.qty >= 100, 0.0, 4.99), index=df.index, name="fee")
    return fee.where(df.channel != "store", 0.0)


@case("orders")
def where_nullable_flag(df):
    df["kept"] = df["qty"].where(~df["returned"].fillna(False), 0)
    return df[["kept"]]


@case("orders")
def where_of_categories(df):
    df["closed"] = np.where(df["status"].isin(["shipped", "returned"]), "closed", "open")
    return df[["closed"]]


@case("sensors")
def alarm_levels(df):
    df["alarm"] = 0
    df.loc[df.temp > 25, "alarm"] = 1
    df.loc[df.temp > 30, "alarm"] = 2
    df["alarm"] = df["alarm"].where(df.ok, -1)
    return df[["device", "alarm"]]


@case("sensors")
def times_chosen(df):
    cut = pd.Timestamp("2024-02-29")
    df["late"] = df["at"].where(df["at"] >= cut, cut)
    df["after"] = df["at"] > "2024-02-29 12:00"
    return df[["late", "after"]]


@case("logs")
def status_class(df):
    df["class"] = np.select(
        [df.status.between(200, 299), df.status.between(300, 399), df.status.between(400, 499)],
        ["ok", "redirect", "client error"],
        "server error",
    )
    df["slow"] = (df.took > 1) & (df.status == 200)
    return df[["class", "slow"]]


@case("logs")
def frame_where(df):
    numbers = df[["status", "took"]]
    return numbers.where(numbers > 0, -1)


@case("houses")
def has_flags(df):
    for column in ["GarageArea", "TotalBsmtSF"]:
        df["Has" + column] = df[column].apply(lambda x: 1 if x > 0 else 0)
    return df[["HasGarageArea", "HasTotalBsmtSF"]]


@case("houses")
def remodelled_age(df):
    df["Age"] = (df.YrSold - df.YearBuilt).clip(lower=0)
    df["Era"] = np.where(df.YearBuilt < 1946, "old", np.where(df.YearBuilt < 1980, "mid", "new"))
    df["IsNew"] = (df.YrSold == df.YearBuilt) * 1
    return df[["Age", "Era", "IsNew"]]
