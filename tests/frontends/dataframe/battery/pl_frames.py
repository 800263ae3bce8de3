"""Frames of Polars: rows, groups, joins, windows, order."""

import polars as pl
from frame_cases import case

PRODUCTS = pl.DataFrame(
    {"product": ["lamp", "desk", "chair"], "weight": [1.5, 30.0, 8.0], "fragile": [True, False, False]}
)
LEVELS = pl.DataFrame({"term": [12, 24, 36], "level": [1, 2, 3]})


@case("loans")
def pl_filter(df):
    return df.filter((pl.col("rate") > 10) & (pl.col("late") == 0)).select("id", "rate")


@case("loans")
def pl_filter_constraints(df):
    return df.filter(pl.col("employed"), grade="A").select("id")


@case("loans")
def pl_filter_lazy(df):
    return df.lazy().filter(pl.col("late") > 0).with_columns(x=pl.col("loan") / 2).select("id", "x").collect()


@case("loans")
def pl_drop_nulls(df):
    return df.select("id", "age", "grade").drop_nulls()


@case("loans")
def pl_rename_drop(df):
    return df.rename({"age": "years"}).drop("applied", "region").select("years", "id")


@case("orders")
def pl_join_left(df):
    return df.join(PRODUCTS, on="product", how="left", maintain_order="left").select(
        "order_id", "product", "weight", "fragile"
    )


@case("orders")
def pl_join_inner(df):
    return df.select("order_id", "product").join(PRODUCTS, on="product", maintain_order="left")


@case("loans")
def pl_join_lazy(df):
    return df.lazy().select("id", "term").join(LEVELS.lazy(), on="term", how="left", maintain_order="left").collect()


@case("orders")
def pl_join_semi(df):
    return df.join(PRODUCTS, on="product", how="semi", maintain_order="left").select("order_id")


@case("orders")
def pl_join_anti(df):
    return df.join(PRODUCTS, on="product", how="anti", maintain_order="left").select("order_id")


@case("orders")
def pl_over_sum(df):
    return df.with_columns(total=pl.col("qty").sum().over("customer_id")).select("customer_id", "total")


@case("orders")
def pl_over_mean(df):
    return df.select(share=pl.col("qty") / pl.col("qty").mean().over("product"), n=pl.len().over("product"))


@case("orders")
def pl_over_min_max(df):
    return df.select(a=pl.col("qty").min().over("customer_id"), b=pl.col("ordered").max().over("customer_id"))


@case("orders")
def pl_over_two_keys(df):
    return df.select(n=pl.col("order_id").count().over("customer_id", "channel"))


@case("sensors")
def pl_over_shift(df):
    return df.select(
        "device", prev=pl.col("count").shift(1).over("device"), nth=pl.col("count").cum_count().over("device")
    )


@case("orders")
def pl_group_agg(df):
    return df.group_by("customer_id").agg(pl.col("qty").sum(), n=pl.len(), top=pl.col("qty").max()).sort("customer_id")


@case("orders")
def pl_group_agg_ordered(df):
    return df.group_by("product", maintain_order=True).agg(
        pl.col("qty").mean(), pl.col("discount").first().alias("first")
    )


@case("orders")
def pl_group_two_keys(df):
    return df.group_by("customer_id", "channel").agg(pl.col("qty").sum()).sort("customer_id", "channel")


@case("orders")
def pl_group_by_expression(df):
    return (
        df.group_by(pl.col("ordered").dt.year().alias("year"))
        .agg(pl.col("qty").sum(), kinds=pl.col("product").n_unique())
        .sort("year")
    )


@case("orders")
def pl_group_filtered_agg(df):
    return df.group_by("customer_id").agg(big=pl.col("qty").filter(pl.col("qty") > 5).sum()).sort("customer_id")


@case("orders")
def pl_sort(df):
    return df.sort("qty", "order_id", descending=[True, False]).select("order_id", "qty")


@case("orders")
def pl_sort_text_nulls_last(df):
    return df.sort("product", "order_id", nulls_last=True).select("order_id", "product")


@case("orders")
def pl_unique(df):
    return df.unique("customer_id", keep="first", maintain_order=True).select("customer_id", "order_id")


@case("orders")
def pl_rank(df):
    return df.select(
        a=pl.col("qty").rank("min"), d=pl.col("qty").rank("dense", descending=True), o=pl.col("qty").rank("ordinal")
    )


@case("sensors")
def pl_shift_diff(df):
    return df.select(
        s=pl.col("count").shift(1),
        f=pl.col("count").shift(1, fill_value=0),
        d=pl.col("count").diff(),
        g=pl.col("at").diff(),
    )


@case("sensors")
def pl_cumulative(df):
    return df.select(s=pl.col("count").cum_sum(), m=pl.col("count").cum_max(), n=pl.col("count").cum_min())


@case("sensors", near=1e-6)
def pl_rolling(df):
    return df.select(
        m=pl.col("code").cast(pl.Float64).rolling_mean(3),
        s=pl.col("code").cast(pl.Int64).rolling_sum(4),
        x=pl.col("count").rolling_max(3, min_samples=1),
    )


@case("loans", near=1e-9)
def pl_aggregates_beside(df):
    return df.select(
        pl.col("late") - pl.col("late").mean(),
        z=(pl.col("late") - pl.col("late").min()) / (pl.col("late").max() - pl.col("late").min()),
    )


@case("loans")
def pl_only_aggregates(df):
    return df.select(pl.col("late").sum(), n=pl.len(), top=pl.col("score").max(), kinds=pl.col("grade").n_unique())


@case("loans")
def pl_head_tail(df):
    return df.sort("late", "id", descending=True).head(5).select("id", "late")


@case("loans")
def pl_row_index(df):
    return df.with_row_index("n").select("n", "id")


@case("loans")
def pl_horizontal_concat(df):
    return pl.concat([df.select("age"), df.select(x=pl.col("rate") * 2)], how="horizontal")


@case("orders")
def pl_unnest_struct(df):
    return df.select(pl.struct(a="qty", b=pl.col("price") * 2).alias("s")).unnest("s")


@case("loans")
def pl_top_k(df):
    return df.top_k(3, by=["late", "id"]).sort("id").select("id", "late")
