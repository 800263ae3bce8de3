"""Unusual names of columns, unusual dtypes and values at their limits."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("odds")
def odd_method_names(df):
    df["twice"] = df["count"] * 2 + df["size"]
    df["has_name"] = df["name"].notna()
    df["v"] = df["values"].fillna(0) + df["index"]
    return df[["count", "size", "twice", "has_name", "v"]]


@case("odds")
def odd_attribute_named_as_ours(df):
    df["is_x"] = df.kind == "x"
    df["more"] = df.rows + 1
    return df[["is_x", "more"]]


@case("odds")
def odd_set_attribute_named_as_ours(df):
    df.rows = df.rows * 2
    df.kind = df.kind.fillna("none")
    return df[["rows", "kind"]]


@case("odds")
def odd_names_with_spaces(df):
    df["full name"] = df["first name"].fillna("?") + " " + df["name"].fillna("?")
    df["c.d"] = df["a.b"].abs()
    return df[["full name", "c.d", "a.b"]]


@case("odds")
def odd_query_backticks(df):
    return df.query("`a.b` > 0 and `first name` == 'Ann'")[["a.b", "first name"]]


@case("odds")
def odd_query_method_names(df):
    limit = 1
    return df.query("count > @limit and values < 90")[["count", "values"]]


@case("odds")
def odd_eval_chained(df):
    df["ok"] = df.eval("0 < count <= 3")
    return df[["ok"]]


@case("odds")
def odd_int8_overflow(df):
    return pd.DataFrame({"a": df.i8 + df.i8, "b": df.i8 * 2, "c": -df.i8, "d": df.i8.abs(), "e": df.i8 - 1})


@case("odds")
def odd_uint8_wrap(df):
    return pd.DataFrame({"a": df.u8 + 1, "b": df.u8 - 1, "c": -df.u8, "d": df.u8 * df.u8, "e": ~df.u8})


@case("odds")
def odd_int8_uint8(df):
    return pd.DataFrame({"a": df.i8 + df.u8, "b": df.i8 * df.u8, "c": df.i16 + df.i8, "d": df.u32 + df.i8})


@case("odds")
def odd_int8_with_wide_constant(df):
    return pd.DataFrame({"a": df.i16 + 300, "b": df.u8 / 2, "c": df.u8 // 7, "d": df.u8 % 7})


@case("odds")
def odd_int8_division(df):
    return pd.DataFrame({"a": df.i8 / df.u8, "b": df.i8 // 3, "c": df.i8 % 3, "d": df.i8 // -3, "e": df.i8 % -5})


@case("odds")
def odd_floordiv_by_zero(df):
    return pd.DataFrame(
        {"a": df["count"] // df["index"], "b": df["count"] % df["index"], "c": df["count"] / df["index"]}
    )


@case("odds")
def odd_small_int_by_zero(df):
    return pd.DataFrame({"a": df.i8 // (df.i8 * 0), "b": df.i8 % (df.i8 * 0), "c": df.u8 // (df.u8 - df.u8)})


@case("odds")
def odd_float_mod_negative(df):
    return pd.DataFrame({"a": df["size"] % 3, "b": df["size"] % -3, "c": df["size"] // 0.7, "d": 5 % df["size"]})


@case("odds")
def odd_int8_sum(df):
    df["total"] = df.i8.sum()
    df["u"] = df.u8.sum()
    df["m"] = df.i8.mean()
    df["p"] = df.i16.cumsum()
    return df[["total", "u", "m", "p"]]


@case("odds")
def odd_int8_max_minus_min(df):
    df["range"] = df.i8.max() - df.i8
    return df[["range"]] if True else None


@case("odds")
def odd_round_halves(df):
    return pd.DataFrame({"a": df["size"].round(), "b": (df["size"] * 10).round(-1), "c": np.rint(df["size"])})


@case("odds")
def odd_float32_stays(df):
    return pd.DataFrame(
        {"a": df.f32 * 0.1, "b": df.f32 + 1, "c": df.f32 / 3, "d": df.f32**2, "e": np.sqrt(df.f32.abs())}
    )


@case("odds")
def odd_float32_compare_constant(df):
    return pd.DataFrame({"a": df.f32 == 0.1, "b": df.f32 > 0.2, "c": df.f32.isin([0.5, 3.0]), "d": df.f32 <= 0.1})


@case("odds")
def odd_float32_with_int(df):
    return pd.DataFrame(
        {"a": df.f32 + df["count"], "b": df.f32 + df.i8, "c": df.f32 * df.flag, "d": df.f32 + df["size"]}
    )


@case("odds")
def odd_float32_where(df):
    df["a"] = np.where(df.f32 > 0, df.f32, 0)
    df["b"] = df.f32.where(df.f32 > 0, 0.1)
    df["c"] = df.f32.fillna(0.1)
    df["d"] = df.f32.clip(0.1, 0.9)
    return df[["a", "b", "c", "d"]]


@case("odds")
def odd_float32_stats(df):
    df["z"] = (df.f32 - df.f32.min()) / 7
    return df[["z"]]


@case("odds")
def odd_big_ints(df):
    return pd.DataFrame(
        {"a": df.big + 1, "b": df.big * 3, "c": df.big - df["count"], "d": df.big // 10, "e": df.big % 1000}
    )


@case("odds")
def odd_big_compare(df):
    return pd.DataFrame(
        {
            "a": df.big == 2**53 + 1,
            "b": df.big > 2**53,
            "c": df.big.isin([2**53 + 1]),
            "d": df.big.between(2**53, 2**53 + 1),
        }
    )


@case("odds")
def odd_big_compare_float(df):
    return pd.DataFrame({"a": df.big == 2.0**53, "b": df.big > 2.0**53, "c": df.big < df["size"]})


@case("odds")
def odd_big_where(df):
    df["a"] = np.where(df.flag, df.big, -1)
    df["b"] = df.big.where(df.flag, 0)
    df["c"] = df.big.clip(lower=0)
    df["d"] = df.big.mask(df.flag)
    return df[["a", "b", "c", "d"]]


@case("odds")
def odd_big_abs_neg(df):
    return pd.DataFrame({"a": df.big.abs(), "b": -df.big, "c": np.sign(df.big)})


@case("odds")
def odd_big_map(df):
    return df.big.map({2**53 + 1: "odd", 2**53: "even"}).fillna("other").to_frame("m")


@case("odds")
def odd_big_shift(df):
    return pd.DataFrame({"a": df.big.shift(1, fill_value=0), "b": df.big.diff().isna(), "c": df.big.cummax()})


@case("odds")
def odd_big_groupby(df):
    return df.groupby("big")["count"].sum().reset_index()


@case("odds")
def odd_big_sort(df):
    return df.sort_values("big")[["big", "count"]]


@case("odds")
def odd_bool_arithmetic(df):
    return pd.DataFrame(
        {"a": df.flag + df.flag, "b": df.flag * 3, "c": df.flag * df.flag, "d": df.flag + 1, "e": df.flag * 1.5}
    )


@case("odds")
def odd_bool_sum_of_conditions(df):
    df["n"] = (df["count"] > 1).astype(int) + (df["size"] > 0) + (df["kind"] == "x")
    return df[["n"]]


@case("odds")
def odd_bool_logic(df):
    return pd.DataFrame(
        {"a": df.flag & (df["count"] > 1), "b": df.flag | df["size"].isna(), "c": df.flag ^ True, "d": ~df.flag}
    )


@case("odds")
def odd_bool_int_logic(df):
    return pd.DataFrame({"a": df["count"] & 1, "b": df["count"] | df["index"], "c": df["count"] ^ 3, "d": ~df["count"]})


@case("odds")
def odd_nullable_bool(df):
    return pd.DataFrame(
        {
            "a": df.maybe & df.flag,
            "b": df.maybe | True,
            "c": ~df.maybe,
            "d": df.maybe.fillna(False),
            "e": df.maybe.astype("Int64"),
        }
    )


@case("odds")
def odd_nullable_bool_filter(df):
    return df[df.maybe & (df["count"] > 0)][["count", "maybe"]]


@case("odds")
def odd_nullable_bool_where(df):
    df["a"] = np.where(df.maybe.fillna(False), 1, 0)
    df["b"] = df["count"].where(df.maybe.fillna(True).astype(bool))
    return df[["a", "b"]]


@case("odds")
def odd_nullable_int(df):
    return pd.DataFrame(
        {
            "a": df.whole + 1,
            "b": df.whole / 2,
            "c": df.whole // 2,
            "d": df.whole % 2,
            "e": df.whole * df.part,
            "f": -df.whole,
            "g": df.whole**2,
        }
    )


@case("odds")
def odd_nullable_compare(df):
    return pd.DataFrame(
        {"a": df.whole > 1, "b": df.whole == df["count"], "c": df.part != 0.5, "d": (df.whole > 1).fillna(False)}
    )


@case("odds")
def odd_nullable_with_plain(df):
    return pd.DataFrame(
        {"a": df.whole + df["count"], "b": df.whole + df["size"], "c": df.part * df["size"], "d": df.whole + df.f32}
    )


@case("odds")
def odd_nullable_float(df):
    return pd.DataFrame(
        {
            "a": df.part.round(1),
            "b": df.part.abs(),
            "c": df.part.isna(),
            "d": df.part.fillna(df.part.mean()),
            "e": np.exp(df.part),
        }
    )


@case("odds")
def odd_nullable_stats(df):
    df["s"] = df.whole.sum()
    df["m"] = df.whole.mean()
    df["x"] = df.part.max()
    df["c"] = df.whole.count()
    return df[["s", "m", "x", "c"]]


@case("odds")
def odd_nullable_to_numpy(df):
    return pd.DataFrame(
        {
            "a": df.whole.astype("float64"),
            "b": df.part.astype("float64"),
            "c": df.whole.fillna(0).astype(int),
            "d": df.part.astype("float32"),
        }
    )


@case("odds")
def odd_nullable_where(df):
    return pd.DataFrame({"a": df.whole.where(df.whole > 1, 0), "b": df.whole.mask(df.flag), "c": df.part.clip(0, 1)})


@case("odds")
def odd_nullable_string(df):
    return pd.DataFrame(
        {
            "a": df.word == "up",
            "b": df.word.fillna("none"),
            "c": df.word.isin(["up", "Up"]),
            "d": df.word.isna(),
            "e": df.word + "!",
        }
    )


@case("odds")
def odd_nullable_groupby(df):
    return df.groupby("whole")[["count", "size"]].sum().reset_index()


@case("odds")
def odd_all_missing(df):
    return pd.DataFrame(
        {"a": df.gone.fillna(0), "b": df.gone + 1, "c": df.gone.isna(), "d": df.gone.fillna(df["size"])}
    )


@case("odds")
def odd_all_missing_stats(df):
    df["m"] = df.gone.mean()
    df["s"] = df.gone.sum()
    df["x"] = df.gone.max()
    df["f"] = df.gone.fillna(df.gone.median())
    df["p"] = df.gone.prod()
    return df[["m", "s", "x", "f", "p"]]


@case("odds")
def odd_all_missing_windows(df):
    return pd.DataFrame(
        {
            "a": df.gone.cumsum(),
            "b": df.gone.ffill(),
            "c": df.gone.rolling(3, min_periods=1).mean(),
            "d": df.gone.rank(),
        }
    )


@case("odds")
def odd_units(df):
    return pd.DataFrame(
        {"a": df.sec - df.nano, "b": df.sec > df.nano, "c": df.sec == df.nano, "d": df.sec.fillna(df.nano)}
    )


@case("odds")
def odd_units_constants(df):
    return pd.DataFrame(
        {
            "a": df.sec > "2000-01-01",
            "b": df.nano < pd.Timestamp("2000-01-01 00:00:00.5"),
            "c": df.sec - pd.Timestamp("2000-01-01"),
        }
    )


@case("odds")
def odd_units_where(df):
    df["a"] = df.sec.where(df.flag, df.nano)
    df["b"] = df.nano.where(df.flag)
    df["c"] = df.sec.mask(df.flag, pd.Timestamp("2020-01-01"))
    return df[["a", "b", "c"]]


@case("odds")
def odd_units_stats(df):
    df["a"] = (df.sec.max() - df.sec).dt.days
    df["b"] = df.nano.min()
    return df[["a", "b"]]


@case("odds")
def odd_ordered_compare(df):
    return pd.DataFrame(
        {
            "a": df.level > "low",
            "b": df.level <= "mid",
            "c": df.level == "high",
            "d": df.level != "low",
            "e": df.level.isin(["low", "high"]),
        }
    )


@case("odds")
def odd_ordered_stats(df):
    df["codes"] = df.level.cat.codes
    df["m"] = df.level.map({"low": 1, "mid": 2, "high": 3}).astype("float64")
    return df[["codes", "m"]]


@case("odds")
def odd_category_fillna(df):
    df["a"] = df.shade.cat.add_categories("none").fillna("none")
    df["b"] = df.shade.astype(object).fillna("none")
    df["c"] = df.shade.astype(str)
    return df[["a", "b", "c"]]


@case("odds")
def odd_category_groupby(df):
    return df.groupby("shade", observed=True)["count"].sum().reset_index()


@case("odds")
def odd_category_groupby_all(df):
    return df.groupby("shade", observed=False)["count"].sum().reset_index()


@case("odds")
def odd_category_sort(df):
    return df.sort_values(["level", "count"])[["level", "count"]]


@case("odds")
def odd_category_where(df):
    return df.shade.where(df.flag).to_frame("s")


@case("odds")
def odd_negative_zero(df):
    return pd.DataFrame(
        {
            "a": 1 / df["a.b"],
            "b": np.sign(df["a.b"]),
            "c": df["a.b"] == 0,
            "d": df["a.b"].abs(),
            "e": np.maximum(df["a.b"], 0),
        }
    )


@case("odds")
def odd_inf(df):
    df["x"] = df["size"].replace([np.inf, -np.inf], np.nan)
    df["y"] = np.isinf(df["size"])
    df["z"] = np.isfinite(df["size"])
    df["w"] = df["size"] - df["size"]
    return df[["x", "y", "z", "w"]]


@case("odds")
def odd_nan_comparisons(df):
    return pd.DataFrame(
        {"a": df["size"] == df["size"], "b": df["size"] != df["size"], "c": ~(df["size"] > 0), "d": df["size"] < np.nan}
    )


@case("odds")
def odd_powers(df):
    return pd.DataFrame(
        {"a": df["count"] ** 2, "b": df["size"] ** 0.5, "c": 2.0 ** df["index"], "d": df["size"] ** 0, "e": df.i8**2}
    )


@case("odds")
def odd_log_family(df):
    return pd.DataFrame(
        {
            "a": np.log1p(df["count"]),
            "b": np.log(df["size"]),
            "c": np.log10(df["values"]),
            "d": np.expm1(df["a.b"]),
            "e": np.log2(df["values"] + 1),
        }
    )


@case("odds")
def odd_float_to_int(df):
    df["a"] = df["values"].fillna(0).replace(np.inf, 0).astype("int32")
    df["b"] = (df["values"].fillna(-1).clip(0, 50) * 1.9).astype(int)
    df["c"] = df["a.b"].clip(-1, 1).fillna(0).astype("int8")
    return df[["a", "b", "c"]]


@case("odds")
def odd_int_narrowing(df):
    return pd.DataFrame(
        {
            "a": df["count"].astype("int8"),
            "b": df["index"].astype("uint8"),
            "c": df.big.astype("int32"),
            "d": df.i16.astype("int8"),
        }
    )


@case("odds")
def odd_to_float32(df):
    return pd.DataFrame(
        {
            "a": df["size"].astype("float32"),
            "b": df.big.astype("float32"),
            "c": df.big.astype("float64"),
            "d": df["values"].astype(np.float32) * 2,
        }
    )


@case("odds")
def odd_bool_casts(df):
    return pd.DataFrame(
        {
            "a": df["count"].astype(bool),
            "b": df["size"].astype(bool),
            "c": df.flag.astype("float32"),
            "d": df.flag.astype("int8"),
            "e": df.i8.astype(bool),
        }
    )


@case("odds")
def odd_divmod(df):
    whole, rest = divmod(df["count"], 3)
    return pd.DataFrame({"whole": whole, "rest": rest})


@case("odds")
def odd_reversed_operators(df):
    return pd.DataFrame(
        {
            "a": 10 - df["count"],
            "b": 1 / df["values"],
            "c": 100 // (df["count"] + 1),
            "d": True & df.flag,
            "e": 7 % (df["count"] + 2),
        }
    )
