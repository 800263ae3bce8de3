"""Groups, and merges with tables that are constant."""

import numpy as np
import pandas as pd
from frame_cases import case

REGIONS = pd.DataFrame(
    {"region": ["north", "south", "east"], "unemployment": [4.5, 6.1, 5.0], "capital": ["Oslo", "Rome", None]}
)
PRODUCTS = pd.DataFrame(
    {
        "product": ["lamp", "desk", "chair", "bed"],
        "weight": [1.5, 30.0, 8.0, 60.0],
        "fragile": [True, False, False, False],
    }
)
LEVELS = pd.DataFrame({"term": [12, 24, 36], "level": [1, 2, 3]})
PRICES = pd.DataFrame({"product": ["lamp", "lamp", "desk"], "channel": ["web", "store", "web"], "fee": [1.0, 2.0, 3.0]})


@case("orders")
def merge_left(df):
    return df.merge(PRODUCTS, on="product", how="left")[["order_id", "product", "weight", "fragile"]]


@case("orders")
def merge_inner(df):
    return df[["order_id", "product"]].merge(PRODUCTS, on="product")


@case("orders")
def merge_two_keys(df):
    return df[["order_id", "product", "channel"]].merge(PRICES, on=["product", "channel"], how="left")


@case("loans")
def merge_text_of_category(df):
    df["region"] = df["region"].astype(object)
    return df[["id", "region"]].merge(REGIONS, how="left", on="region")


@case("loans")
def merge_int_key(df):
    return df[["id", "term"]].merge(LEVELS, on="term", how="left").fillna({"level": 0})


@case("loans")
def merge_left_on_right_on(df):
    table = LEVELS.rename(columns={"term": "months"})
    return df[["id", "term"]].merge(table, left_on="term", right_on="months", how="left").drop(columns="months")


@case("orders")
def merge_function(df):
    both = pd.merge(df[["order_id", "product", "qty"]], PRODUCTS[["product", "weight"]], on="product", how="left")
    both["load"] = both.qty * both.weight.fillna(1)
    return both


@case("orders")
def merge_with_suffixes(df):
    table = PRODUCTS.rename(columns={"weight": "price"})
    return df[["product", "price"]].merge(table[["product", "price"]], on="product", how="left", suffixes=("", "_list"))


@case("orders")
def merge_indicator(df):
    both = df[["order_id", "product"]].merge(PRODUCTS, on="product", how="left", indicator=True)
    both["known"] = both["_merge"] == "both"
    return both[["order_id", "known"]]


@case("orders")
def join_on_index(df):
    return df[["order_id", "product"]].join(PRODUCTS.set_index("product")["weight"], on="product")


@case("orders")
def group_mean_transform(df):
    df["mean_price"] = df.groupby("customer_id")["price"].transform("mean")
    return df[["customer_id", "mean_price"]]


@case("orders")
def group_sum_transform(df):
    df["total"] = df.groupby("customer_id")["qty"].transform("sum")
    df["share"] = df["qty"] / df["total"]
    return df[["total", "share"]]


@case("orders")
def group_count_transform(df):
    g = df.groupby("product")
    return pd.DataFrame(
        {
            "n": g["order_id"].transform("count"),
            "size": g["price"].transform("size"),
            "nu": g["channel"].transform("nunique"),
        }
    )


@case("orders")
def group_min_max_transform(df):
    g = df.groupby("customer_id")["qty"]
    return pd.DataFrame(
        {"min": g.transform("min"), "max": g.transform("max"), "range": g.transform("max") - g.transform("min")}
    )


@case("orders", near=1e-8)
def group_std_transform(df):
    return df.groupby("customer_id")["discount"].transform("std").fillna(0).rename("std")


@case("orders")
def group_median_transform(df):
    return df.groupby("product")["qty"].transform("median").rename("median")


@case("orders")
def group_first_last_transform(df):
    g = df.groupby("customer_id")
    return pd.DataFrame(
        {"f": g["qty"].transform("first"), "l": g["discount"].transform("last"), "when": g["ordered"].transform("min")}
    )


@case("orders", near=1e-6)
def group_centred(df):
    return (df["qty"] - df.groupby("customer_id")["qty"].transform("mean")).rename("centred")


@case("orders")
def group_share_lambda(df):
    return df.groupby("product")["qty"].transform(lambda x: x / x.sum()).rename("share")


@case("orders")
def group_two_keys(df):
    df["n"] = df.groupby(["customer_id", "product"])["order_id"].transform("count")
    return df[["n"]]


@case("orders")
def group_keep_missing_key(df):
    return df.groupby("channel", dropna=False)["qty"].transform("sum").rename("total")


@case("orders")
def aggregate_sum(df):
    return df.groupby("customer_id")["qty"].sum().reset_index()


@case("orders")
def aggregate_mean_as_index(df):
    return df.groupby("customer_id")["price"].mean()


@case("orders")
def aggregate_named(df):
    return (
        df.groupby("customer_id")
        .agg(n=("order_id", "count"), total=("qty", "sum"), top=("qty", "max"), first=("ordered", "min"))
        .reset_index()
    )


@case("orders")
def aggregate_named_no_index(df):
    return df.groupby("product", as_index=False).agg(mean=("qty", "mean"), kinds=("channel", "nunique"))


@case("orders")
def aggregate_dict(df):
    return df.groupby("customer_id").agg({"qty": "sum", "discount": "mean", "ordered": "max"}).reset_index()


@case("orders")
def aggregate_lists_flattened(df):
    found = df.groupby("customer_id").agg({"qty": ["min", "max"], "discount": ["mean"]})
    found.columns = ["_".join(c) for c in found.columns]
    return found.reset_index()


@case("orders")
def aggregate_size(df):
    return df.groupby("customer_id").size().reset_index(name="n")


@case("orders")
def aggregate_two_keys(df):
    return df.groupby(["customer_id", "channel"], as_index=False)["qty"].sum()


@case("orders")
def aggregate_sorted(df):
    found = df.groupby("customer_id", as_index=False).agg(total=("qty", "sum"))
    return found.sort_values(["total", "customer_id"], ascending=[False, True])


@case("orders")
def aggregate_category_observed(df):
    return df.groupby("status", observed=True)["qty"].sum().reset_index()


@case("orders")
def aggregate_category_all(df):
    return df.groupby("status", observed=False)["qty"].sum().reset_index()


@case("orders")
def aggregate_then_merge(df):
    totals = df.groupby("customer_id", as_index=False)["qty"].sum().rename(columns={"qty": "total"})
    return df[["order_id", "customer_id"]].merge(totals, on="customer_id", how="left")


@case("orders")
def aggregate_by_year(df):
    return df.groupby(df["ordered"].dt.year)["qty"].sum().reset_index()


@case("orders")
def aggregate_by_bool(df):
    return df.assign(big=df.qty > 5).groupby("big", as_index=False)["qty"].sum()


@case("orders")
def aggregate_unsorted(df):
    return df.groupby("customer_id", sort=False, as_index=False)["qty"].sum()


@case("orders")
def group_map_of_counts(df):
    df["freq"] = df["product"].map(df["product"].value_counts())
    return df[["freq"]]


@case("orders")
def group_rank(df):
    df["rank"] = df.groupby("customer_id")["qty"].rank(method="first", ascending=False)
    return df[["rank"]]


@case("orders")
def group_cumcount(df):
    df["nth"] = df.groupby("customer_id").cumcount() + 1
    return df[["customer_id", "nth"]]


@case("orders")
def group_cumsum(df):
    df["so_far"] = df.groupby("customer_id")["qty"].cumsum()
    return df[["so_far"]]


@case("orders")
def group_shift(df):
    df["previous"] = df.groupby("customer_id")["qty"].shift(1)
    df["change"] = df["qty"] - df["previous"]
    return df[["previous", "change"]]


@case("sensors")
def group_diff(df):
    return df.groupby("device")["count"].diff().fillna(0).rename("diff")


@case("orders")
def group_ngroup(df):
    return df.groupby("customer_id").ngroup().rename("group")


@case("orders")
def group_head(df):
    return df.groupby("customer_id").head(1)[["customer_id", "order_id"]]


@case("orders")
def group_filter_by_size(df):
    return df[df.groupby("customer_id")["order_id"].transform("size") > 2][["order_id"]]


@case("logs")
def sessions_per_user(df):
    found = df.groupby("user").agg(
        hits=("status", "size"), errors=("status", lambda s: (s >= 400).sum()), slowest=("took", "max")
    )
    return found.reset_index()


@case("titanic")
def survival_rate(df):
    return df.groupby(["Pclass", "Sex"])["Survived"].mean().reset_index(name="rate")


@case("titanic")
def ticket_sharing(df):
    df["Shared"] = df.groupby("Ticket")["PassengerId"].transform("count").fillna(0).astype(int) > 1
    return df[["Shared"]]


@case("houses")
def price_against_neighbourhood(df):
    typical = df.groupby("Neighborhood")["SalePrice"].transform("median")
    df["vs"] = df["SalePrice"] / typical
    df["above"] = np.where(df["vs"] > 1, 1, 0)
    return df[["vs", "above"]]


@case("orders")
def aggregate_any_all(df):
    df["big"] = df["qty"] > 5
    return df.groupby("customer_id")["big"].agg(["any", "all"]).reset_index()


@case("orders")
def value_counts_frame(df):
    return df["customer_id"].value_counts().sort_index().reset_index()


@case("orders")
def merge_that_repeats_rows(df):
    table = pd.DataFrame({"product": ["lamp", "lamp", "desk"], "colour": ["red", "blue", "red"]})
    return df.merge(table, on="product")[["order_id", "colour"]]
