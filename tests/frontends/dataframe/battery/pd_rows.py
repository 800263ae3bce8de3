"""Rows kept and dropped: filters, query and eval strings, duplicates."""

import pandas as pd
from frame_cases import case


@case("loans")
def filter_by_mask(df):
    return df[df["rate"] > 10][["id", "rate"]]


@case("loans")
def filter_by_two(df):
    return df[(df["rate"] > 5) & (df["late"] == 0)].reset_index(drop=True)[["id", "rate", "late"]]


@case("loans")
def filter_by_loc(df):
    return df.loc[df["employed"] & df["age"].between(18, 65), ["id", "age"]]


@case("loans")
def filter_by_lambda(df):
    return df.loc[lambda d: d["loan"] > 1000, ["id", "loan"]]


@case("loans")
def filter_then_compute(df):
    kept = df[df["income"] > 0].copy()
    kept["dti"] = kept["loan"] / kept["income"]
    return kept[["id", "dti"]]


@case("loans")
def filter_then_statistics(df):
    kept = df[df["late"] > 0]
    return kept.assign(gap=kept["score"] - kept["score"].max())[["id", "gap"]]


@case("loans")
def filter_twice(df):
    df = df[df.age > 20]
    df = df[df.rate < 20]
    return df[["id", "age", "rate", "grade"]]


@case("loans")
def filter_isin_not(df):
    return df[~df["purpose"].isin(["Other", "car"])][["id", "purpose"]]


@case("loans")
def filter_text_and_category(df):
    return df[(df["grade"] == "A") | (df["region"] == "north")][["id", "grade", "region"]]


@case("loans")
def filter_nothing_left(df):
    return df[df["rate"] > 1e9][["id", "rate", "grade", "applied"]]


@case("loans")
def filter_nullable(df):
    return df[df["verified"].fillna(False)][["id", "verified", "dependents"]]


@case("loans")
def filter_series(df):
    return df["loan"][df["loan"] > 5000]


@case("loans")
def query_numbers(df):
    return df.query("rate > 10 and late == 0")[["id"]]


@case("loans")
def query_text(df):
    return df.query("grade == 'A' or purpose in ['car', 'home']")[["id", "grade", "purpose"]]


@case("loans")
def query_with_variable(df):
    limit = 15  # noqa: F841
    return df.query("rate < @limit & not employed")[["id", "rate"]]


@case("loans")
def query_chained_comparison(df):
    return df.query("18 <= age < 65")[["id", "age"]]


@case("loans")
def query_arithmetic(df):
    return df.query("loan / income < 0.5 and term != 12")[["id"]]


@case("loans")
def eval_assign(df):
    return df.eval("dti = loan / income")[["dti"]]


@case("loans")
def eval_several(df):
    return df.eval(
        """
        dti = loan / income
        heavy = dti > 0.4
        """
    )[["dti", "heavy"]]


@case("loans")
def eval_expression(df):
    return df.eval("loan * (1 + rate / 100)").rename("total")


@case("orders")
def query_quoted_names(df):
    renamed = df.rename(columns={"qty": "unit count"})
    return renamed.query("`unit count` > 3")[["order_id", "unit count"]]


@case("orders")
def unique_products(df):
    return df.drop_duplicates("product")[["product"]]


@case("orders")
def unique_pairs(df):
    return df[["customer_id", "channel"]].drop_duplicates().reset_index(drop=True)


@case("orders")
def last_of_customer(df):
    return df.sort_values("ordered", kind="stable").drop_duplicates("customer_id", keep="last")[
        ["customer_id", "order_id"]
    ]


@case("orders")
def drop_all_repeated(df):
    return df.drop_duplicates(subset=["customer_id", "product"], keep=False)[["customer_id", "product"]]


@case("orders")
def duplicated_flag(df):
    df["again"] = df.duplicated("customer_id")
    df["more"] = df["product"].duplicated(keep=False)
    return df[["again", "more"]]


@case("orders")
def drop_rows_by_condition(df):
    return df.drop(df[df["qty"] > 5].index)[["order_id", "qty"]]


@case("orders")
def rows_above_mean(df):
    return df[df["qty"] > df["qty"].mean()][["order_id", "qty"]]


@case("orders")
def rows_of_the_latest_day(df):
    return df[df["ordered"] == df["ordered"].max()][["order_id", "ordered"]]


@case("orders")
def outliers_dropped(df):
    low, high = df["qty"].quantile(0.05), df["qty"].quantile(0.95)
    return df[df["qty"].between(low, high)][["order_id", "qty"]]


@case("orders")
def winsorized(df):
    return df["qty"].clip(df["qty"].quantile(0.1), df["qty"].quantile(0.9)).rename("qty")


@case("orders", near=1e-15)
def centred(df):
    return (df["discount"] - df["discount"].mean()).rename("centred")


@case("orders", near=1e-12)
def standardized(df):
    return ((df["discount"] - df["discount"].mean()) / df["discount"].std()).rename("z")


@case("loans")
def min_max_scaled(df):
    low, high = df["age"].min(), df["age"].max()
    df["age01"] = (df["age"] - low) / (high - low)
    return df[["age01"]]


@case("loans", near=1e-13)
def robust_scaled(df):
    iqr = df["age"].quantile(0.75) - df["age"].quantile(0.25)
    return ((df["age"] - df["age"].median()) / iqr).rename("age")


@case("loans")
def share_of_total(df):
    return (df["late"] / df["late"].sum()).rename("share")


@case("loans", near=1e-13)
def standardized_columns(df):
    numbers = df[["age", "rate"]]
    return (numbers - numbers.mean()) / numbers.std()


@case("loans")
def counts_beside(df):
    df["n_rows"] = len(df)
    df["n_aged"] = df["age"].count()
    df["n_grades"] = df["grade"].nunique()
    return df[["n_rows", "n_aged", "n_grades"]]


@case("loans")
def any_and_all_beside(df):
    return df[["id"]].assign(any_late=(df.late > 0).any(), all_employed=df.employed.all())


@case("sensors")
def variance_of_ints(df):
    return df[["code"]].assign(var=df["code"].var(), std0=df["code"].std(ddof=0))


@case("logs")
def errors_only(df):
    kept = df[df.status >= 400]
    return kept[["at", "status", "method", "user"]].assign(hour=kept["at"].dt.hour)


@case("logs")
def filter_text_contains(df):
    return df[df["path"].str.contains("shop", na=False)][["path", "size"]]


@case("logs")
def filter_times(df):
    return df[(df["at"] >= "2024-02-28") & (df["at"] < "2024-03-02")][["at"]]


@case("titanic")
def only_adults(df):
    return pd.DataFrame(df[df.Age >= 18], columns=["PassengerId", "Age", "Cabin"])
