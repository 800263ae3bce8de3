"""Unusual names of columns, and dtypes at their limits."""

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
    limit = 1  # noqa: F841
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
    return df[["range"]]


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
    return df.sort_values("big", kind="stable")[["big", "count"]]


@case("odds")
def odd_bool_arithmetic(df):
    return pd.DataFrame(
        {"a": df.flag + df.flag, "b": df.flag * 3, "c": df.flag * df.flag, "d": df.flag + 1, "e": df.flag * 1.5}
    )


@case("odds")
def odd_bool_sum_of_conditions(df):
    df["n"] = (df["count"] > 1).astype(int) + (df["size"] > 0) + (df["kind"] == "x")
    return df[["n"]]
