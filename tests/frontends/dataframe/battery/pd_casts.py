"""Casts, applied lambdas, and statistics of the sample."""

import numpy as np
import pandas as pd
from frame_cases import case

import onward


@case("loans")
def bool_to_int(df):
    return pd.DataFrame(
        {"i": df.employed.astype(int), "f": df.employed.astype(float), "u": df.employed.astype("uint8")}
    )


@case("loans")
def int_to_float(df):
    return pd.DataFrame({"f": df.term.astype(float), "f32": df.late.astype("float32"), "i": df.score.astype("int64")})


@case("loans")
def float_to_int_after_fill(df):
    return pd.DataFrame({"age": df.age.fillna(0).astype(int), "rate": df.rate.fillna(-1).astype("int32")})


@case("loans")
def int_to_bool(df):
    return df["late"].astype(bool).rename("late")


@case("loans")
def float_to_bool(df):
    return df["loan"].fillna(0).astype(bool).rename("any")


@case("loans")
def to_single_precision(df):
    return df[["age", "rate"]].astype("float32")


@case("loans")
def astype_by_dict(df):
    return df[["late", "term", "employed"]].astype({"late": "float64", "term": "int32", "employed": "int8"})


@case("loans")
def narrow_ints_wrap(df):
    return df["late"].astype("int8").rename("late")


@case("loans")
def int_to_text_cast(df):
    return df["term"].astype(str).rename("term")


@case("loans")
def text_of_bool(df):
    return df["employed"].astype(str).rename("employed")


@case("loans")
def to_nullable_int(df):
    return pd.DataFrame({"age": df.age.round().astype("Int64"), "late": df.late.astype("Int64")})


@case("loans")
def to_nullable_bool(df):
    return df["employed"].astype("boolean").rename("employed")


@case("loans")
def to_nullable_text(df):
    return df["grade"].astype("string").rename("grade")


@case("loans")
def nullable_to_numpy(df):
    return pd.DataFrame({"d": df.dependents.astype(float), "v": df.verified.astype("float64")})


@case("loans")
def to_numeric_of_numbers(df):
    return pd.to_numeric(df["late"]).rename("late")


@case("customers")
def nullable_mean_fill(df):
    return df["tickets"].fillna(0).astype("int32").rename("tickets")


@case("orders", raises=("edge",))
def text_to_float_cast(df):
    return df["amount"].astype(float).rename("amount")


@case("loans", raises=("edge",))
def float_to_int_with_missing(df):
    return df["loan"].astype(int).rename("loan")


@case("loans")
def apply_arithmetic(df):
    return df["age"].apply(lambda x: x * 2 + 1).rename("x")


@case("loans")
def apply_conditional(df):
    return df["late"].apply(lambda n: "late" if n > 0 else "clean").rename("status")


@case("loans")
def apply_nested_conditional(df):
    df["band"] = df["score"].apply(lambda s: "low" if s < 580 else ("mid" if s < 740 else "high"))
    return df[["band"]]


@case("loans")
def apply_numpy_function(df):
    return df["loan"].apply(np.abs).apply(np.sqrt).rename("root")


@case("loans")
def apply_text_method(df):
    return df["grade"].fillna("?").apply(lambda s: s.lower()).rename("grade")


@case("loans")
def apply_row_arithmetic(df):
    df["x"] = df.apply(lambda row: row["loan"] / (row["late"] + 10), axis=1)
    return df[["x"]]


@case("loans")
def apply_row_conditional(df):
    df["x"] = df.apply(lambda r: r["rate"] * 2 if r["late"] > 1 else r["rate"], axis=1)
    return df[["x"]]


@case("titanic")
def apply_row_attributes(df):
    df["kin"] = df.apply(lambda r: r.SibSp + r.Parch, axis=1)
    return df[["kin"]]


def band(rate):
    if rate < 5:
        return "low"
    elif rate < 12:
        return "mid"
    return "high"


@case("loans")
def apply_named_function(df):
    df["band"] = df["rate"].apply(band)
    return df[["band"]]


@case("loans")
def map_lambda(df):
    return df["term"].map(lambda t: t / 12).rename("years")


@case("loans")
def transform_lambda(df):
    return df["rate"].transform(lambda s: s - 5).rename("rate")


@case("customers")
def apply_with_arguments(df):
    def scale(x, by, plus=0):
        return x * by + plus

    return df["visits"].apply(scale, args=(2,), plus=1).rename("v")


@case("loans")
def apply_dictionary(df):
    return df["purpose"].apply(lambda p: {"car": 1, "home": 2}.get(p, 0)).rename("code")


@case("loans")
def apply_max_of_two(df):
    return df["late"].apply(lambda n: max(n, 1)).rename("late")


def sample_median(df, sample):
    return df.assign(age=df["age"].fillna(sample["age"].median()))[["age"]]


@case("loans", as_if=sample_median)
def fitted_median(df):
    df["age"] = df["age"].fillna(onward.fitted(df["age"].median()))
    return df[["age"]]


@case("loans", as_if=sample_median, freeze=("age.median",))
def frozen_median(df):
    df["age"] = df["age"].fillna(df["age"].median())
    return df[["age"]]


def sample_scaled(df, sample):
    return ((df["rate"] - sample["rate"].mean()) / sample["rate"].std()).rename("z")


@case("loans", as_if=sample_scaled, near=1e-13)
def fitted_standardized(df):
    mean, std = onward.fitted(df["rate"].mean()), onward.fitted(df["rate"].std())
    return ((df["rate"] - mean) / std).rename("z")


@case("loans", as_if=sample_scaled, freeze=("rate.mean", "rate.std"), near=1e-13)
def frozen_standardized(df):
    return ((df["rate"] - df["rate"].mean()) / df["rate"].std()).rename("z")


def sample_capped(df, sample):
    return df["loan"].clip(upper=sample["loan"].quantile(0.9)).rename("loan")


@case("loans", as_if=sample_capped)
def fitted_cap(df):
    return df["loan"].clip(upper=onward.fitted(df["loan"].quantile(0.9))).rename("loan")


def sample_target_means(df, sample):
    return df["Sex"].map(sample.groupby("Sex")["Survived"].mean()).fillna(0.4).rename("rate")


@case("titanic", as_if=sample_target_means)
def fitted_target_means(df):
    return df["Sex"].map(onward.fitted(df.groupby("Sex")["Survived"].mean())).fillna(0.4).rename("rate")


def sample_frequencies(df, sample):
    return df["product"].map(sample["product"].value_counts()).fillna(0).rename("n")


@case("orders", as_if=sample_frequencies)
def fitted_frequencies(df):
    return df["product"].map(onward.fitted(df["product"].value_counts())).fillna(0).rename("n")


def sample_quartiles(df, sample):
    edges = [-np.inf, *sample["loan"].quantile([0.25, 0.5, 0.75]), np.inf]
    return pd.cut(df["loan"], edges, labels=False).rename("quartile")


@case("loans", as_if=sample_quartiles)
def fitted_quartiles(df):
    edges = [-np.inf, *onward.fitted(df["loan"].quantile([0.25, 0.5, 0.75])), np.inf]
    return pd.cut(df["loan"], edges, labels=False).rename("quartile")


def sample_mode(df, sample):
    return df["Embarked"].fillna(sample["Embarked"].mode()[0]).rename("Embarked")


@case("titanic", as_if=sample_mode)
def fitted_mode(df):
    return df["Embarked"].fillna(onward.fitted(df["Embarked"].mode()[0])).rename("Embarked")
