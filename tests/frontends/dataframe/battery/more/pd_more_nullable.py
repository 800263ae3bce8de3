"""Nullable dtypes, categories and times of other units."""

import numpy as np
import pandas as pd
from frame_cases import case


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
def odd_units_constants(df):
    return pd.DataFrame(
        {
            "a": df.sec > "2000-01-01",
            "b": df.nano < pd.Timestamp("2000-01-01 00:00:00.5"),
            "c": df.sec - pd.Timestamp("2000-01-01"),
        }
    )


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
