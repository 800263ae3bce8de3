"""Values looked up: map, replace, cut, qcut, dummies, categories, codes."""

import numpy as np
import pandas as pd
from frame_cases import case

GRADE_RISK = {"A": 0.01, "B": 0.02, "C": 0.05, "D": 0.1, "E": 0.2}
QUALITY = {"Ex": 5, "Gd": 4, "TA": 3, "Fa": 2, "Po": 1}
RATES = pd.Series({"lamp": 1.5, "desk": 2.5, "chair": 3.5})


@case("loans")
def map_to_float(df):
    df["risk"] = df["grade"].map(GRADE_RISK)
    return df[["risk"]]


@case("loans")
def map_and_fill(df):
    df["risk"] = df["grade"].map(GRADE_RISK).fillna(0.5)
    return df[["grade", "risk"]]


@case("loans")
def map_to_text(df):
    return df["grade"].map({"A": "low", "B": "low", "C": "mid"}).rename("band")


@case("loans")
def map_int_keys(df):
    return df["term"].map({12: "short", 24: "short", 36: "mid", 60: "long"}).fillna("odd").rename("kind")


@case("loans")
def map_float_keys(df):
    return df["age"].map({25.0: 1, 40.0: 2, 65.0: 3}).rename("age")


@case("loans")
def map_bool(df):
    return pd.DataFrame({"e": df.employed.map({True: "yes", False: "no"}), "n": df.employed.map({True: 1, False: 0})})


@case("loans")
def map_to_bool(df):
    return df["grade"].map({"A": True, "B": True, "C": False}).rename("good")


@case("loans")
def map_category(df):
    return df["region"].map({"north": 1, "south": 2, "east": 3, "west": 4}).astype(float).rename("region")


@case("orders")
def map_series(df):
    df["factor"] = df["product"].map(RATES)
    return df[["product", "factor"]]


@case("houses")
def map_quality_columns(df):
    for column in ["ExterQual", "BsmtQual"]:
        df[column] = df[column].map(QUALITY).fillna(0).astype(int)
    return df[["ExterQual", "BsmtQual"]]


@case("titanic")
def map_sex(df):
    df["Sex"] = df["Sex"].map({"female": 1, "male": 0})
    df["Embarked"] = df["Embarked"].map({"S": 0, "C": 1, "Q": 2})
    return df[["Sex", "Embarked"]]


@case("loans")
def map_with_get(df):
    return df["grade"].map(lambda g: GRADE_RISK.get(g, 0.3)).rename("risk")


@case("loans")
def replace_value(df):
    return df["purpose"].replace("Other", "misc").rename("purpose")


@case("loans")
def replace_dict(df):
    df["purpose"] = df["purpose"].replace({"car": "vehicle", "home": "property", "boat": "vehicle"})
    return df[["purpose"]]


@case("loans")
def replace_list(df):
    return df["term"].replace([12, 24], 0).rename("term")


@case("loans")
def replace_numbers(df):
    return pd.DataFrame(
        {
            "late": df.late.replace({5: 4, 6: 4}),
            "age": df.age.replace(0, np.nan),
            "rate": df.rate.replace([0, 100], [1, 99]),
        }
    )


@case("loans")
def replace_in_frame(df):
    return df[["grade", "purpose"]].replace({"grade": {"A": "AA"}, "purpose": {"car": "auto"}})


@case("loans")
def replace_many_columns(df):
    return df[["late", "term"]].replace(-1, 0)


@case("loans")
def cut_with_labels(df):
    df["segment"] = pd.cut(df.age, [0, 25, 40, 65, 120], labels=["young", "mid", "late", "old"])
    return df[["segment"]]


@case("loans")
def cut_codes(df):
    df["bin"] = pd.cut(df["score"], bins=[0, 580, 670, 740, 800, 850], labels=False)
    return df[["bin"]]


@case("loans")
def cut_left_closed(df):
    return pd.cut(df["rate"], [0, 5, 10, 20, 100], right=False, labels=["a", "b", "c", "d"]).rename("band")


@case("loans")
def cut_include_lowest(df):
    return pd.cut(df["late"], bins=[0, 1, 3, 10], include_lowest=True, labels=[1, 2, 3]).astype(float).rename("late")


@case("loans")
def cut_to_infinity(df):
    bins = [-np.inf, 1000, 5000, 20000, np.inf]
    return pd.cut(df["loan"], bins, labels=["xs", "s", "m", "l"]).astype(str).rename("size")


@case("loans")
def cut_intervals_as_text(df):
    return pd.cut(df["age"], [0, 18, 65, 120]).astype(str).rename("interval")


@case("loans")
def cut_code_accessor(df):
    return pd.cut(df["age"], bins=[0, 30, 50, 100]).cat.codes.rename("code")


@case("titanic")
def cut_age_then_map(df):
    df["AgeGroup"] = pd.cut(df["Age"], [0, 16, 32, 48, 64, np.inf], labels=["child", "young", "adult", "senior", "old"])
    df["AgeGroup"] = df["AgeGroup"].map({"child": 0, "young": 1, "adult": 2, "senior": 3, "old": 4}).astype(float)
    return df[["AgeGroup"]]


@case("loans", raises=("one", "none"))
def qcut_quartiles(df):
    return pd.qcut(df["rate"], 4, labels=False).rename("quartile")


@case("loans", raises=("one", "none"))
def qcut_ranked(df):
    return pd.qcut(df["loan"].rank(method="first"), 2, labels=["low", "high"]).rename("half")


@case("houses")
def digitize(df):
    return pd.DataFrame({"bin": np.digitize(df["LotArea"], [1000, 5000, 10000])})


@case("houses")
def search_sorted(df):
    return pd.DataFrame({"bin": np.searchsorted([1940, 1960, 1980, 2000], df["YearBuilt"], side="right")})


@case("loans")
def dummies_of_category(df):
    return pd.get_dummies(df["region"])


@case("loans")
def dummies_with_prefix(df):
    return pd.get_dummies(df["region"], prefix="region", dtype=int)


@case("loans")
def dummies_of_frame(df):
    return pd.get_dummies(df[["age", "region"]], columns=["region"], drop_first=True)


@case("loans")
def dummies_of_fixed_categories(df):
    df["grade"] = pd.Categorical(df["grade"], categories=["A", "B", "C", "D", "E"])
    return pd.get_dummies(df[["id", "grade"]], columns=["grade"])


@case("loans")
def dummies_with_missing(df):
    return pd.get_dummies(df["region"], dummy_na=True, prefix="r").set_axis(["n", "s", "e", "w", "na"], axis=1)


@case("loans")
def dummies_reindexed(df):
    wanted = ["term_12", "term_24", "term_36"]
    kinds = pd.Categorical(df["term"], categories=[12, 24, 36])
    return pd.get_dummies(pd.Series(kinds, name="term"), prefix="term", dtype=float).reindex(
        columns=wanted, fill_value=0
    )


@case("loans")
def dummies_by_loop(df):
    for value in ["car", "home", "small_business"]:
        df["purpose_" + value] = (df["purpose"] == value).astype(int)
    return df.filter(like="purpose_")


@case("customers")
def category_codes(df):
    df["country_code"] = df["country"].cat.codes
    return df[["country_code"]]


@case("customers")
def ordered_category_codes(df):
    return df["plan"].cat.codes.astype("int64").rename("plan")


@case("customers")
def ordered_category_compared(df):
    return pd.DataFrame({"paying": df.plan > "free", "pro": df.plan == "pro", "low": df.plan <= "basic"})


@case("customers")
def astype_fixed_categories(df):
    dtype = pd.CategoricalDtype(["Paris", "Berlin", "Oslo"])
    df["city"] = df["city"].astype(dtype)
    return pd.DataFrame({"city": df.city, "code": df.city.cat.codes})


@case("customers")
def rename_categories(df):
    return df["country"].cat.rename_categories({"FR": "France", "DE": "Germany"}).rename("country")


@case("customers")
def set_categories(df):
    return df["country"].cat.set_categories(["FR", "DE"]).rename("country")


@case("customers")
def categories_to_text(df):
    return (df["country"].astype(str) + "-" + df["plan"].astype(str)).rename("key")


@case("customers")
def categorical_from_codes(df):
    codes = df["visits"].clip(0, 2)
    return (
        codes.map({0: "none", 1: "one", 2: "many"})
        .astype(pd.CategoricalDtype(["none", "one", "many"], ordered=True))
        .rename("n")
    )


@case("customers")
def target_encoding_table(df):
    means = {"Paris": 0.31, "Berlin": 0.22, "Oslo": 0.4}
    df["city_te"] = df["city"].map(means).fillna(0.27)
    return df[["city_te"]]


@case("customers")
def frequency_table_map(df):
    counts = pd.Series([10, 20, 5], index=["Paris", "Berlin", "Oslo"])
    return df["city"].map(counts).fillna(0).astype("int64").rename("n")


@case("orders")
def map_of_map(df):
    room = {"lamp": "any", "desk": "office", "chair": "office", "sofa": "living"}
    points = {"any": 1, "office": 2, "living": 3}
    return df["product"].map(room).map(points).rename("points")


@case("loans")
def factorized_by_table(df):
    labels = {label: i for i, label in enumerate(sorted(["car", "home", "Other"]))}
    return df["purpose"].map(labels).fillna(-1).astype(int).rename("label")
