"""Missing values: filled, counted, dropped, told apart."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def fill_zero(df):
    return df.assign(income=df.income.fillna(0))[["income"]]


@case("loans")
def fill_median(df):
    df["age"] = df["age"].fillna(df["age"].median())
    return df[["age"]]


@case("loans")
def fill_mean(df):
    df["income"] = df["income"].replace(np.inf, np.nan)
    df["income"] = df["income"].fillna(df["income"].mean())
    return df[["income"]]


@case("loans")
def fill_by_dict(df):
    return df.fillna({"age": 35, "income": 0.0, "grade": "none"})[["age", "income", "grade"]]


@case("loans")
def fill_frame_of_numbers(df):
    return df[["age", "income", "rate"]].fillna(-1)


@case("loans")
def fill_frame_of_medians(df):
    numbers = df[["age", "rate"]]
    return numbers.fillna(numbers.median())


@case("loans")
def fill_text(df):
    df["grade"] = df["grade"].fillna("missing")
    df["employer"] = df["employer"].fillna("")
    return df[["grade", "employer"]]


@case("loans")
def fill_from_column(df):
    return df["income"].fillna(df["loan"] * 3).rename("income")


@case("loans")
def fill_category(df):
    df["region"] = df["region"].cat.add_categories("unknown").fillna("unknown")
    return df[["region"]]


@case("loans")
def fill_known_category(df):
    return df["region"].fillna("north").rename("region")


@case("loans")
def fill_category_as_text(df):
    return df["region"].astype("str").fillna("none").rename("region")


@case("loans")
def fill_nullable(df):
    return pd.DataFrame(
        {"dep": df.dependents.fillna(0), "ver": df.verified.fillna(False), "int": df.dependents.fillna(0).astype(int)}
    )


@case("loans")
def fill_time(df):
    return df["applied"].fillna(pd.Timestamp("2020-01-01")).rename("applied")


@case("loans")
def missing_flags(df):
    for column in ["age", "income", "grade", "applied", "region", "dependents"]:
        df[column + "_missing"] = df[column].isna()
    return df.filter(regex="_missing$")


@case("loans")
def missing_flags_as_ints(df):
    return df[["age", "grade"]].isnull().astype(int).add_suffix("_na")


@case("loans")
def count_missing_per_row(df):
    df["n_missing"] = df.isna().sum(axis=1)
    return df[["id", "n_missing"]]


@case("loans")
def count_present_per_row(df):
    return df[["age", "income", "grade"]].count(axis=1).rename("present")


@case("loans")
def drop_missing_rows(df):
    return df.dropna(subset=["age", "income"])[["id", "age", "income"]]


@case("loans")
def drop_missing_any(df):
    return df[["id", "age", "grade", "applied"]].dropna()


@case("loans")
def drop_missing_all(df):
    return df[["age", "income"]].dropna(how="all")


@case("loans")
def drop_missing_series(df):
    return df["grade"].dropna()


@case("loans")
def keep_present(df):
    return df[df["grade"].notna() & df["age"].notnull()][["id", "grade"]]


@case("loans")
def pd_isna_function(df):
    return pd.DataFrame({"a": pd.isna(df["age"]), "b": pd.notna(df["grade"]), "c": pd.isnull(df["applied"])})


@case("loans")
def numeric_and_text_in_loops(df):
    for column in ["age", "income", "rate"]:
        df[column] = df[column].fillna(0)
    for column in ["grade", "purpose"]:
        df[column] = df[column].fillna("unknown")
    return df[["age", "income", "rate", "grade", "purpose"]]


@case("loans")
def fill_by_dtype(df):
    numbers = df.select_dtypes("float64").columns
    df[numbers] = df[numbers].fillna(0)
    return df[list(numbers)]


@case("sensors")
def forward_fill(df):
    df["temp"] = df["temp"].ffill()
    return df[["temp"]]


@case("sensors")
def backward_fill(df):
    return df["temp"].bfill().rename("temp")


@case("sensors")
def forward_then_backward(df):
    return df[["temp", "humidity"]].ffill().bfill()


@case("sensors")
def forward_fill_limited(df):
    return df["humidity"].ffill(limit=1).rename("humidity")


@case("sensors")
def forward_fill_by_device(df):
    df["temp"] = df.groupby("device")["temp"].ffill()
    return df[["device", "temp"]]


@case("sensors")
def fill_device_mean(df):
    df["humidity"] = df["humidity"].fillna(df.groupby("device")["humidity"].transform("mean"))
    return df[["device", "humidity"]]


@case("sensors")
def zeros_are_missing(df):
    df["humidity"] = df["humidity"].replace(0, np.nan)
    return df[["humidity"]].fillna(50)


@case("sensors")
def all_null_column(df):
    return pd.DataFrame({"fault": df.fault.fillna(-1), "is": df.fault.isna(), "next": df.fault + 1})


@case("titanic")
def titanic_fills(df):
    df["Age"] = df["Age"].fillna(28)
    df["Embarked"] = df["Embarked"].fillna("S")
    df["Fare"] = df["Fare"].fillna(df["Fare"].median())
    return df[["Age", "Embarked", "Fare"]]


@case("titanic")
def age_by_class_median(df):
    df["Age"] = df.groupby(["Pclass", "Sex"])["Age"].transform(lambda x: x.fillna(x.median()))
    return df[["Pclass", "Sex", "Age"]]


@case("houses")
def none_means_no_basement(df):
    for col in ("BsmtQual", "ExterQual"):
        df[col] = df[col].fillna("None")
    df["LotFrontage"] = df.groupby("Neighborhood")["LotFrontage"].transform(lambda x: x.fillna(x.median()))
    return df[["BsmtQual", "ExterQual", "LotFrontage"]]


@case("customers")
def spend_or_zero(df):
    return df.assign(spend=df["spend"].fillna(0.0), had_spend=df["spend"].notna().astype("int8"))[
        ["spend", "had_spend"]
    ]


@case("customers")
def nullable_to_float(df):
    return df["tickets"].astype("float64").fillna(df["visits"]).rename("tickets")


@case("customers")
def empty_text_is_missing(df):
    df["note"] = df["note"].replace("", pd.NA)
    df["city"] = df["city"].replace("", np.nan)
    return pd.DataFrame({"note": df.note.isna(), "city": df.city.isna()})


@case("customers")
def interpolate_spend(df):
    return df["spend"].replace(np.inf, np.nan).interpolate().rename("spend")


@case("logs")
def referrer_or_direct(df):
    df["referrer"] = df["referrer"].fillna("direct").replace("-", "direct")
    df["size"] = df["size"].fillna(0).astype("int64")
    return df[["referrer", "size"]]
