"""Columns chosen, renamed, added and joined; chains, helpers, loops; results of other shapes."""

import numpy as np
import pandas as pd
from frame_cases import case

FEATURES = ["age", "rate", "late"]
TABLE = {"car": 1, "home": 2}


@case("loans")
def as_it_is(df):
    return df


@case("loans")
def select_columns(df):
    return df[["grade", "age", "id"]]


@case("loans")
def drop_columns(df):
    return df.drop(columns=["id", "applied"]).drop(["region", "verified"], axis=1)


@case("loans")
def pop_a_column(df):
    loan = df.pop("loan")
    df["loan_k"] = loan / 1000
    return df[["loan_k", "rate"]]


@case("loans")
def delete_a_column(df):
    df = df[["id", "age", "rate"]].copy()
    del df["id"]
    return df


@case("loans")
def rename_columns(df):
    return df[["age", "rate"]].rename(columns={"age": "Age", "rate": "interest rate (%)"})


@case("loans")
def rename_by_function(df):
    return df[["age", "rate"]].rename(columns=str.upper)


@case("loans")
def columns_attribute(df):
    df = df[["age", "rate"]]
    df.columns = ["a", "b"]
    return df


@case("loans")
def columns_by_comprehension(df):
    df = df[["age", "rate"]].copy()
    df.columns = [c.title() + "_x" for c in df.columns]
    return df


@case("loans")
def prefix_and_suffix(df):
    return df[["age", "rate"]].add_prefix("num_").add_suffix("_raw")


@case("loans")
def reindex_columns(df):
    return df.reindex(columns=["rate", "age", "absent"])


@case("loans")
def reindex_filled(df):
    return df[["late", "term"]].reindex(columns=["term", "extra", "late"], fill_value=0)


@case("loans")
def filter_by_names(df):
    return df.filter(["age", "rate", "nothing"])


@case("loans")
def filter_names_by_regex(df):
    return df.filter(regex="^(age|in)")


@case("loans")
def select_by_dtype(df):
    return df.select_dtypes(include="number")


@case("loans")
def select_floats_scaled(df):
    return df.select_dtypes("float64") / 10


@case("loans")
def columns_by_position(df):
    return df.iloc[:, 1:4]


@case("loans")
def columns_by_slice(df):
    return df.loc[:, "age":"rate"]


@case("loans")
def columns_by_difference(df):
    return df[df.columns.difference(["id", "applied", "region"])][["age", "employed"]]


@case("loans")
def loop_with_dtype_test(df):
    out = {}
    for column in df.columns:
        if df[column].dtype == "float64":
            out[column] = df[column].fillna(0)
        elif pd.api.types.is_bool_dtype(df[column]) and column == "employed":
            out[column] = df[column].astype(int)
    return pd.DataFrame(out)


@case("loans")
def insert_first(df):
    df = df[["age", "rate"]].copy()
    df.insert(0, "key", df["age"] * 10)
    return df


@case("loans")
def assign_several(df):
    return df.assign(dti=df.loan / df.income, young=df.age < 30)[["dti", "young"]]


@case("loans")
def assign_lambdas(df):
    return df.assign(
        monthly=lambda d: d["income"] / 12,
        load=lambda d: d["loan"] / d["monthly"],
        heavy=lambda d: d["load"] > 3,
    )[["monthly", "load", "heavy"]]


@case("loans")
def assign_by_dict(df):
    return df.assign(**{"rate %": df["rate"] / 100, "n": 1, "source": "app"})[["rate %", "n", "source"]]


@case("loans")
def constant_columns(df):
    df["one"] = 1
    df["half"] = 0.5
    df["name"] = "x"
    df["yes"] = True
    df["when"] = pd.Timestamp("2024-02-29")
    return df[["one", "half", "name", "yes", "when"]]


def add_ratio(df, over, under, name):
    return df.assign(**{name: df[over] / df[under]})


def cap(series, top):
    return series.where(series <= top, top)


@case("loans")
def pipe_chain(df):
    return df.pipe(add_ratio, "loan", "income", "dti").pipe(add_ratio, "rate", "age", "rpa")[["dti", "rpa"]]


@case("loans")
def helper_functions(df):
    df["rate"] = cap(df["rate"], 15)
    df["late"] = cap(df["late"], 3)
    return add_ratio(df, "rate", "late", "x")[["rate", "late", "x"]]


@case("loans")
def long_chain(df):
    return (
        df.rename(columns={"loan": "amount"})
        .assign(amount=lambda d: d.amount.clip(lower=0))
        .query("late < 5")
        .assign(per_month=lambda d: d.amount / d.term.clip(lower=1))
        .drop(columns=["employer", "used"])
        .loc[:, ["id", "amount", "per_month", "grade"]]
        .reset_index(drop=True)
    )


@case("loans")
def series_result(df):
    return df["loan"] / df["income"].clip(lower=1)


@case("loans")
def series_to_frame(df):
    return df["rate"].mul(2).to_frame(name="double")


@case("loans")
def frame_of_dict(df):
    return pd.DataFrame({"a": df["age"], "b": df["rate"] > 10, "c": 0})


@case("loans")
def frame_of_index(df):
    out = pd.DataFrame(index=df.index)
    out["x"] = df["age"] + 1
    out["y"] = df["grade"].fillna("?")
    return out


@case("loans")
def concat_columns_of_frames(df):
    numbers = df[["age", "rate"]].fillna(0)
    flags = pd.DataFrame({"late": df.late > 0, "emp": df.employed})
    return pd.concat([numbers, flags], axis=1)


@case("loans")
def concat_series(df):
    return pd.concat([df["age"].rename("a"), (df["rate"] * 2).rename("b")], axis=1)


@case("loans")
def concat_with_dummies(df):
    return pd.concat([df[["age"]], pd.get_dummies(df["region"], prefix="r", dtype=int)], axis=1)


@case("loans")
def concat_with_keys(df):
    return pd.concat({"old": df["age"], "new": df["age"] + 1}, axis=1)


@case("loans")
def join_frames(df):
    return df[["id"]].join(df[["age"]].fillna(0)).join((df["rate"] / 100).rename("r"))


@case("loans")
def multiple_assignment(df):
    df[["a", "b"]] = df[["age", "rate"]] * 2
    return df[["a", "b"]]


@case("loans")
def multiple_assignment_of_scalars(df):
    df[["p", "q"]] = 0
    df[FEATURES] = df[FEATURES].fillna(0)
    return df[["p", "q", *FEATURES]]


@case("loans")
def loc_all_rows(df):
    df.loc[:, "rate"] = df["rate"] / 100
    return df[["rate"]]


@case("loans")
def squeeze_and_get(df):
    return df[["rate"]].squeeze("columns").add(df.get("age")).rename("sum")


@case("loans")
def copies_are_apart(df):
    other = df.copy()
    other["rate"] = 0.0
    df["gap"] = df["rate"] - other["rate"]
    return df[["gap"]]


@case("loans")
def condition_on_columns(df):
    if "score" in df.columns and len(df.columns) > 3:
        df["has"] = df["score"] > 600
    return df[["has"]]


@case("loans")
def condition_on_parameters(df, threshold=10.0, strict=True):
    flag = df["rate"] > threshold if strict else df["rate"] >= threshold
    return flag.rename("flag")


@case("loans")
def frame_apply_by_column(df):
    return df[["age", "rate"]].apply(lambda s: s.fillna(s.median()))


@case("loans")
def frame_apply_numpy(df):
    return df[["age", "rate"]].apply(np.sqrt)


@case("loans")
def frame_agg_row_functions(df):
    return df[FEATURES].agg("sum", axis=1).rename("sum")


@case("loans")
def frame_map_elementwise(df):
    return df[["age", "rate"]].map(lambda x: x * 2 + 1)


@case("loans")
def row_std_and_median(df):
    part = df[["age", "rate", "late"]]
    return pd.DataFrame({"med": part.median(axis=1), "prod": part.prod(axis=1), "n": (part > 5).sum(axis=1)})


@case("loans")
def idxmin_across(df):
    return df[["late", "term"]].idxmin(axis=1).rename("least")


@case("loans")
def swapped_columns(df):
    df["age"], df["rate"] = df["rate"], df["age"]
    return df[["age", "rate"]]


@case("houses")
def house_features(df):
    df = df.copy()
    df["TotalSF"] = df[["GrLivArea", "TotalBsmtSF"]].sum(axis=1)
    df["Qual_x_SF"] = df.OverallQual * df.TotalSF
    df["Old"] = (df.YrSold - df.YearBuilt > 50).astype("uint8")
    df["Lot_log"] = np.log1p(df.LotArea.clip(lower=0))
    return df.drop(["Id", "SalePrice", "Neighborhood", "ExterQual", "BsmtQual", "CentralAir"], axis=1)


@case("titanic")
def titanic_features(df):
    df = df.drop(columns=["PassengerId", "Ticket"])
    df["Title"] = df["Name"].str.extract(r", ([A-Za-z]+)\.", expand=False).fillna("None")
    df["Title"] = np.where(df["Title"].isin(["Mr", "Mrs", "Miss", "Master"]), df["Title"], "Rare")
    df["Sex"] = (df["Sex"] == "female").astype(int)
    df["FamilySize"] = df.SibSp + df.Parch + 1
    df["Family"] = pd.cut(df["FamilySize"], [0, 1, 4, 20], labels=["alone", "small", "large"]).astype(str)
    df["Deck"] = df["Cabin"].str[0].fillna("M")
    df["Fare"] = np.log1p(df["Fare"].clip(lower=0).fillna(0))
    return df.drop(columns=["Name", "Cabin", "SibSp", "Parch"])
