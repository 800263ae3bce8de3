"""Expressions of Polars on columns: arithmetic, choices, missing values, strings, times."""

import polars as pl
import polars.selectors as cs
from frame_cases import case


@case("loans")
def pl_ratio(df):
    return df.with_columns(dti=pl.col("loan") / pl.col("income")).select("id", "dti")


@case("loans")
def pl_select_arithmetic(df):
    return df.select((pl.col("loan") * (1 + pl.col("rate") / 100)).alias("total"), pl.col("late") + 1, -pl.col("rate"))


@case("loans")
def pl_integer_division(df):
    return df.select(years=pl.col("term") // 12, months=pl.col("term") % 12, exact=pl.col("term") / 12)


@case("loans")
def pl_division_by_zero(df):
    return df.select(
        a=pl.col("loan") / pl.col("late"), b=pl.col("term") // pl.col("late"), c=pl.col("term") % pl.col("late")
    )


@case("loans")
def pl_functions(df):
    return df.select(
        log=pl.col("loan").clip(1).log(),
        log1p=pl.col("rate").clip(0).log1p(),
        exp=(pl.col("rate") / 50).exp(),
        root=pl.col("age").sqrt(),
    )


@case("loans")
def pl_rounding(df):
    return df.select(
        pl.col("rate").round(1),
        up=pl.col("rate").ceil(),
        down=pl.col("rate").floor(),
        size=(pl.col("loan") - 5000).abs(),
    )


@case("loans")
def pl_trigonometry(df):
    return df.select(
        s=pl.col("rate").sin(), c=pl.col("rate").cos(), t=(pl.col("rate") / 100).tanh(), p=pl.col("late").pow(2)
    )


@case("loans")
def pl_single_precision(df):
    return df.select(free=1 - pl.col("used"), wide=pl.col("used") * pl.col("rate"))


@case("loans")
def pl_small_ints(df):
    return df.select(a=pl.col("score") + 1, b=pl.col("score") / 2, c=pl.col("score").cast(pl.Int64) * 3)


@case("loans")
def pl_when_then(df):
    return df.with_columns(
        size=pl.when(pl.col("loan") > 10000).then(pl.lit("large")).otherwise(pl.lit("small"))
    ).select("size")


@case("loans")
def pl_when_chain(df):
    return df.select(
        pl.when(pl.col("score") < 580)
        .then(pl.lit("poor"))
        .when(pl.col("score") < 670)
        .then(pl.lit("fair"))
        .otherwise(pl.lit("good"))
        .alias("band")
    )


@case("loans")
def pl_when_without_otherwise(df):
    return df.select(x=pl.when(pl.col("employed")).then(pl.col("income")))


@case("loans")
def pl_fill_null(df):
    return df.select(pl.col("age").fill_null(35), pl.col("grade").fill_null("none"), pl.col("dependents").fill_null(0))


@case("loans")
def pl_fill_nan(df):
    return df.select(
        pl.col("income").fill_nan(None).fill_null(0.0), nan=pl.col("rate").is_nan(), null=pl.col("rate").is_null()
    )


@case("loans")
def pl_fill_median(df):
    return df.select(
        pl.col("late").fill_null(pl.col("late").median()), age=pl.col("dependents").fill_null(strategy="zero")
    )


@case("sensors")
def pl_forward_fill(df):
    return df.select(pl.col("fault").forward_fill(), back=pl.col("humidity").fill_null(strategy="backward"))


@case("loans")
def pl_coalesce(df):
    return df.select(x=pl.coalesce("age", "rate", pl.lit(0.0)))


@case("loans")
def pl_clip(df):
    return df.select(pl.col("age").clip(18, 100), pl.col("score").clip(300, 850), pl.col("rate").clip(upper_bound=20))


@case("loans")
def pl_is_in(df):
    return df.select(
        a=pl.col("purpose").is_in(["car", "home"]), b=pl.col("term").is_in([12, 24]), c=~pl.col("late").is_in([1, 3])
    )


@case("loans")
def pl_is_between(df):
    return df.select(a=pl.col("late").is_between(1, 3), b=pl.col("score").is_between(580, 670, closed="left"))


@case("loans")
def pl_logic(df):
    return df.select(
        a=pl.col("employed") & pl.col("verified"), o=pl.col("employed") | pl.col("verified"), n=~pl.col("verified")
    )


@case("loans")
def pl_comparisons(df):
    return df.select(
        gt=pl.col("loan") > pl.col("income"),
        ne=pl.col("grade") != "A",
        eq=pl.col("late") == 0,
        em=pl.col("grade").eq_missing("A"),
    )


@case("loans")
def pl_replace_strict(df):
    return df.select(pl.col("grade").replace_strict({"A": 1, "B": 2, "C": 3}, default=None, return_dtype=pl.Int64))


@case("loans")
def pl_replace(df):
    return df.select(pl.col("purpose").replace({"car": "vehicle", "boat": "vehicle"}), pl.col("term").replace({12: 0}))


@case("loans")
def pl_replace_default(df):
    return df.select(pl.col("grade").replace_strict({"A": 0.01, "B": 0.02}, default=0.5))


@case("loans")
def pl_cast(df):
    return df.select(
        pl.col("employed").cast(pl.Int8),
        pl.col("term").cast(pl.Float64),
        pl.col("late").cast(pl.String),
        pl.col("late").cast(pl.Int32).alias("n"),
    )


@case("loans")
def pl_cast_floats(df):
    return df.select(pl.col("rate").fill_nan(0).fill_null(0).cast(pl.Int64), pl.col("age").cast(pl.Float32))


@case("orders")
def pl_cast_text_loosely(df):
    return df.select(pl.col("amount").cast(pl.Float64, strict=False))


@case("loans")
def pl_enum_codes(df):
    return df.select(
        code=pl.col("region").to_physical(), text=pl.col("region").cast(pl.String), north=pl.col("region") == "north"
    )


@case("loans")
def pl_horizontal(df):
    return df.select(
        s=pl.sum_horizontal("loan", "rate"),
        m=pl.max_horizontal("late", "term"),
        n=pl.min_horizontal("late", "term"),
        a=pl.any_horizontal("employed", pl.col("late") > 0),
    )


@case("loans")
def pl_mean_horizontal(df):
    return df.select(m=pl.mean_horizontal("late", "term"), al=pl.all_horizontal("employed", pl.col("late") > 0))


@case("customers")
def pl_upper_lower(df):
    return df.select(
        u=pl.col("city").str.to_uppercase(), l=pl.col("city").str.to_lowercase(), s=pl.col("note").str.strip_chars()
    )


@case("logs")
def pl_contains(df):
    return df.select(
        a=pl.col("path").str.contains("shop", literal=True),
        b=pl.col("path").str.contains(r"/\d+"),
        c=pl.col("agent").str.contains("(?i)bot"),
    )


@case("logs")
def pl_starts_ends(df):
    return df.select(a=pl.col("path").str.starts_with("/api"), b=pl.col("path").str.ends_with(".js"))


@case("orders")
def pl_replace_text(df):
    return df.select(
        a=pl.col("sku").str.replace("-", "_", literal=True),
        b=pl.col("sku").str.replace_all("-", ""),
        c=pl.col("sku").str.replace_all(r"\d", "#"),
    )


@case("orders")
def pl_slices(df):
    return df.select(a=pl.col("sku").str.slice(0, 2), b=pl.col("sku").str.head(3), c=pl.col("sku").str.tail(1))


@case("customers")
def pl_lengths(df):
    return df.select(c=pl.col("city").str.len_chars(), b=pl.col("city").str.len_bytes())


@case("customers")
def pl_split_get(df):
    return df.select(
        domain=pl.col("email").str.split("@").list.get(1, null_on_oob=True),
        first=pl.col("name").str.split(" ").list.first(),
    )


@case("titanic")
def pl_extract(df):
    return df.select(title=pl.col("Name").str.extract(r" ([A-Za-z]+)\.", 1))


@case("orders")
def pl_count_matches(df):
    return df.select(n=pl.col("sku").str.count_matches("-"), d=pl.col("sku").str.count_matches(r"\d"))


@case("orders")
def pl_concat_text(df):
    return df.select(
        a=pl.concat_str("product", "channel", separator="/"),
        b=pl.col("product") + "!",
        c=pl.format("{}-{}", "sku", "qty"),
    )


@case("orders")
def pl_pad(df):
    return df.select(
        a=pl.col("product").str.pad_start(8, "."),
        b=pl.col("amount").str.zfill(6),
        c=pl.col("sku").str.strip_prefix("AB-"),
    )


@case("loans")
def pl_date_parts(df):
    when = pl.col("applied").dt
    return df.select(
        y=when.year(), m=when.month(), d=when.day(), q=when.quarter(), w=when.weekday(), o=when.ordinal_day()
    )


@case("logs")
def pl_time_parts(df):
    when = pl.col("at").dt
    return df.select(
        h=when.hour(), m=when.minute(), s=when.second(), us=when.microsecond(), week=when.week(), iso=when.iso_year()
    )


@case("customers")
def pl_date_only(df):
    return df.select(
        d=pl.col("birth").dt.date(),
        end=pl.col("date").dt.month_end(),
        start=pl.col("birth").dt.month_start(),
        leap=pl.col("date").dt.is_leap_year(),
    )


@case("customers")
def pl_difference(df):
    gap = pl.col("last_seen") - pl.col("signup")
    return df.select(gap=gap, days=gap.dt.total_days(), hours=gap.dt.total_hours(), long=gap > pl.duration(days=30))


@case("orders")
def pl_truncate(df):
    return df.select(
        d=pl.col("ordered").dt.truncate("1d"),
        h=pl.col("ordered").dt.truncate("1h"),
        m=pl.col("ordered").dt.truncate("1mo"),
    )


@case("orders")
def pl_offsets(df):
    return df.select(
        a=pl.col("ordered") + pl.duration(days=30),
        b=pl.col("ordered").dt.offset_by("1mo"),
        c=pl.col("date").dt.offset_by("1y"),
    )


@case("orders")
def pl_parse_dates(df):
    return df.select(
        d=pl.col("day").str.to_date("%Y-%m-%d"), t=pl.col("day").str.strptime(pl.Datetime("us"), "%Y-%m-%d")
    )


@case("orders")
def pl_epoch(df):
    return df.select(
        s=pl.col("ordered").dt.epoch("s"), us=pl.col("ordered").dt.timestamp("us"), d=pl.col("date").cast(pl.Int32)
    )


@case("orders")
def pl_compare_times(df):
    return df.select(a=pl.col("ordered") >= pl.datetime(2024, 2, 29), b=pl.col("date") == pl.date(2024, 2, 29))


@case("loans")
def pl_selectors(df):
    return df.select(cs.float().fill_nan(0).fill_null(0), cs.boolean().cast(pl.Int8))


@case("loans")
def pl_selectors_by_name(df):
    return df.select(cs.starts_with("a") - cs.by_name("applied"), cs.contains("at").exclude("rate").name.suffix("_x"))


@case("loans")
def pl_all_columns(df):
    return df.select(pl.all().is_null())


@case("loans")
def pl_many_columns_at_once(df):
    return df.with_columns((pl.col("age", "rate", "loan") / 10).name.prefix("tenth_")).select(cs.starts_with("tenth_"))


@case("loans")
def pl_cut(df):
    return df.select(pl.col("loan").cut([1000, 5000, 20000], labels=["xs", "s", "m", "l"]).cast(pl.String))


@case("loans")
def pl_pipe_and_helpers(df):
    def add(frame, name, expr):
        return frame.with_columns(expr.alias(name))

    return df.pipe(add, "x", pl.col("rate") * 2).pipe(add, "y", pl.col("x") + 1).select("x", "y")


@case("loans")
def pl_sql_like_lazy(df):
    return (
        df.lazy()
        .with_columns(dti=pl.col("loan") / pl.col("income"))
        .with_columns(heavy=pl.col("dti") > 0.4)
        .select("id", "dti", "heavy")
        .collect()
    )


@case("loans")
def pl_series_arithmetic(df):
    return df.select(((df["loan"] - df["rate"]) * 2).alias("x"))


@case("loans")
def pl_literal_columns(df):
    return df.select("id", pl.lit(1).alias("one"), pl.lit("x").alias("text"), half=0.5)


@case("loans")
def pl_to_dummies_by_hand(df):
    return df.select((pl.col("grade") == g).cast(pl.UInt8).alias(f"grade_{g}") for g in "ABC")
