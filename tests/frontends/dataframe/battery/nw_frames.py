"""Functions on frames of narwhals: decorated ones, and plain ones on its frames."""

import narwhals as nw
import narwhals.selectors as ncs
from frame_cases import case


@case("loans")
@nw.narwhalify
def nw_ratio(df):
    return df.with_columns(dti=nw.col("loan") / nw.col("income")).select("id", "dti")


@case("loans", backend="polars")
@nw.narwhalify
def nw_ratio_polars(df):
    return df.with_columns(dti=nw.col("loan") / nw.col("income")).select("id", "dti")


@case("loans")
def nw_plain_arithmetic(df):
    return df.select(a=nw.col("loan") * 2 + 1, b=-nw.col("rate"), c=nw.col("term") % 12, d=nw.col("late") ** 2)


@case("loans", backend="polars")
def nw_plain_arithmetic_polars(df):
    return df.select(a=nw.col("loan") * 2 + 1, c=nw.col("term") % 12, e=nw.col("term") // 12)


@case("loans")
@nw.narwhalify
def nw_when(df):
    return df.select("id", size=nw.when(nw.col("loan") > 10000).then(nw.lit("large")).otherwise(nw.lit("small")))


@case("loans", backend="polars")
@nw.narwhalify
def nw_when_polars(df):
    return df.select(x=nw.when(nw.col("employed")).then(nw.col("late")).otherwise(nw.lit(-1)))


@case("loans")
@nw.narwhalify
def nw_fill_null(df):
    return df.select(nw.col("age").fill_null(35.0), nw.col("grade").fill_null("none"))


@case("loans", backend="polars")
@nw.narwhalify
def nw_fill_null_polars(df):
    return df.select(nw.col("age").fill_null(35.0), nw.col("dependents").fill_null(0))


@case("loans")
@nw.narwhalify
def nw_clip_round(df):
    return df.select(nw.col("age").clip(18, 100), nw.col("rate").round(1), x=(nw.col("loan") - 5000).abs())


@case("loans")
@nw.narwhalify
def nw_is_in_between(df):
    return df.select(a=nw.col("purpose").is_in(["car", "home"]), b=nw.col("late").is_between(1, 3))


@case("loans", backend="polars")
@nw.narwhalify
def nw_logic_polars(df):
    return df.select(a=nw.col("employed") & (nw.col("late") > 0), n=~nw.col("employed"), m=nw.col("age").is_null())


@case("loans")
@nw.narwhalify
def nw_cast(df):
    return df.select(nw.col("employed").cast(nw.Int64), nw.col("term").cast(nw.Float64), nw.col("late").cast(nw.Int32))


@case("loans")
@nw.narwhalify
def nw_replace_strict(df):
    return df.select(nw.col("employed").replace_strict([True, False], ["yes", "no"], return_dtype=nw.String))


@case("loans")
@nw.narwhalify
def nw_filter(df):
    return df.filter((nw.col("rate") > 10) & (nw.col("late") == 0)).select("id", "rate")


@case("loans", backend="polars")
@nw.narwhalify
def nw_filter_polars(df):
    return df.filter(nw.col("late") > 0).with_columns(x=nw.col("loan") / 2).select("id", "x")


@case("loans")
@nw.narwhalify
def nw_rename_drop(df):
    return df.rename({"age": "years"}).drop("applied").select("years", "id")


@case("loans")
@nw.narwhalify
def nw_selectors(df):
    return df.select(ncs.by_dtype(nw.Float64) * 2, ncs.boolean())


@case("loans", backend="polars")
@nw.narwhalify
def nw_selectors_polars(df):
    return df.select(ncs.numeric() + 1)


@case("customers")
@nw.narwhalify
def nw_text(df):
    return df.select(
        u=nw.col("city").str.to_uppercase(),
        c=nw.col("email").str.contains("mail"),
        s=nw.col("name").str.starts_with("A"),
    )


@case("customers", backend="polars")
@nw.narwhalify
def nw_text_polars(df):
    return df.select(
        u=nw.col("city").str.to_lowercase(),
        n=nw.col("city").str.len_chars(),
        r=nw.col("phone").str.replace_all(" ", ""),
    )


@case("orders")
@nw.narwhalify
def nw_slices(df):
    return df.select(
        a=nw.col("sku").str.slice(0, 2),
        b=nw.col("sku").str.strip_chars(),
        c=nw.concat_str("product", "sku", separator="/"),
    )


@case("customers")
@nw.narwhalify
def nw_dates(df):
    when = nw.col("signup").dt
    return df.select(y=when.year(), m=when.month(), d=when.day(), w=when.weekday(), o=when.ordinal_day())


@case("customers", backend="polars")
@nw.narwhalify
def nw_dates_polars(df):
    return df.select(
        y=nw.col("birth").dt.year(),
        h=nw.col("birth").dt.hour(),
        days=(nw.col("last_seen") - nw.col("signup")).dt.total_minutes(),
    )


@case("orders")
@nw.narwhalify
def nw_group_agg(df):
    return (
        df.group_by("customer_id")
        .agg(nw.col("qty").sum(), n=nw.len(), top=nw.col("order_id").max())
        .sort("customer_id")
    )


@case("orders", backend="polars")
@nw.narwhalify
def nw_group_agg_polars(df):
    return df.group_by("customer_id").agg(nw.col("qty").mean(), first=nw.col("ordered").min()).sort("customer_id")


@case("orders")
@nw.narwhalify
def nw_over(df):
    return df.select("customer_id", total=nw.col("qty").sum().over("customer_id"), n=nw.len().over("customer_id"))


@case("orders", backend="polars")
@nw.narwhalify
def nw_over_polars(df):
    return df.with_columns(share=nw.col("qty") / nw.col("qty").max().over("product")).select("share")


@case("orders")
@nw.narwhalify
def nw_sort(df):
    return df.sort("qty", "order_id", descending=[True, False]).select("order_id", "qty")


@case("orders")
@nw.narwhalify
def nw_unique(df):
    return df.unique("customer_id", keep="first", maintain_order=True).select("customer_id", "order_id")


@case("loans")
@nw.narwhalify
def nw_horizontal(df):
    return df.select(
        s=nw.sum_horizontal("loan", "rate"),
        m=nw.max_horizontal("late", "term"),
        a=nw.any_horizontal("employed", nw.col("late") > 0, ignore_nulls=False),
    )


@case("sensors")
@nw.narwhalify
def nw_shift_diff(df):
    return df.select(s=nw.col("humidity").shift(1), d=nw.col("humidity").diff(), c=nw.col("count").cum_sum())


@case("sensors", backend="polars")
@nw.narwhalify
def nw_shift_diff_polars(df):
    return df.select(s=nw.col("count").shift(1), d=nw.col("count").diff(), c=nw.col("count").cum_sum())


@case("loans", near=1e-9)
@nw.narwhalify
def nw_aggregates_beside(df):
    return df.select(nw.col("late") - nw.col("late").mean(), top=nw.col("score") == nw.col("score").max())


@case("loans", backend="polars")
def nw_plain_lazy(df):
    return df.lazy().with_columns(x=nw.col("rate") / 100).filter(nw.col("late") == 0).select("id", "x").collect()


@case("orders")
@nw.narwhalify
def nw_join_constant(df):
    table = nw.from_dict({"product": ["lamp", "desk"], "weight": [1.5, 30.0]}, backend=df.implementation)
    return df.select("order_id", "product").join(table, on="product", how="left")


@case("orders", backend="polars")
@nw.narwhalify
def nw_join_constant_polars(df):
    table = nw.from_dict({"product": ["lamp", "desk"], "weight": [1.5, 30.0]}, backend=df.implementation)
    return df.select("order_id", "product").join(table, on="product", how="left").sort("order_id")
