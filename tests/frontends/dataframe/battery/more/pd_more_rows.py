"""Functions of rows, queries and single rows asked for in a plain way."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("odds")
def plain_empty_filter_stats(df):
    part = df[df["count"] < -100]
    df["a"] = part["size"].mean()
    df["b"] = part["size"].sum()
    df["c"] = part["count"].max()
    df["d"] = len(part)
    df["e"] = part["size"].isna().any()
    return df[["a", "b", "c", "d", "e"]]


@case("odds")
def plain_shape_use(df):
    df["share"] = df["count"] / df.shape[0]
    df["k"] = df.shape[1]
    df["l"] = len(df.columns)
    return df[["share", "k", "l"]]


@case("odds")
def plain_isnull_share(df):
    df["miss"] = df[["size", "name", "whole"]].isnull().sum(axis=1) / 3
    df["any"] = df[["size", "name"]].isna().any(axis=1)
    return df[["miss", "any"]]


@case("odds")
def plain_frame_scalar_ops(df):
    p = df[["count", "size"]]
    return (1 - p / 2) ** 2


@case("odds")
def plain_frame_bool_filter(df):
    p = df[["count", "index"]]
    return p[(p > 0).all(axis=1)]


@case("odds")
def plain_frame_where_nan(df):
    p = df[["count", "index"]]
    return p[p > 0]


@case("odds")
def plain_frame_stats_by_col(df):
    p = df[["size", "values"]]
    return p.fillna(p.median()) - p.mean()


@case("odds")
def plain_frame_clip_quant(df):
    p = df[["count", "index"]]
    return p.clip(lower=p.quantile(0.1), upper=p.quantile(0.9), axis=1)


@case("odds")
def plain_frame_diff(df):
    return df[["count", "size"]].diff().add_prefix("d_")


@case("odds")
def plain_frame_cum(df):
    return df[["count", "index"]].cumsum()


@case("odds")
def plain_frame_agg_assign(df):
    m = df[["count", "index"]].max()
    df["a"] = df["count"] / m["index"]
    return df[["a"]]


@case("odds")
def plain_stack_like(df):
    df["x"] = df[["count", "index"]].apply(lambda r: r["count"] - r["index"], axis=1)
    df["y"] = df[["count", "index"]].max(axis=1) - df[["count", "index"]].min(axis=1)
    return df[["x", "y"]]


@case("odds")
def plain_idxmax_cols(df):
    df["t"] = df[["count", "index", "rows"]].idxmax(axis=1)
    return df[["t"]]


@case("odds")
def plain_apply_row_missing(df):

    def f(r):
        if pd.isnull(r["size"]):
            return r["values"]
        elif r["kind"] in ("x", "y"):
            return r["size"] * 2
        else:
            return 0

    return df.apply(f, axis=1).to_frame("v")


@case("odds")
def plain_apply_row_and_or(df):
    return df.apply(lambda r: 1 if (r["count"] > 1 and r["flag"]) or not r["index"] > 0 else 0, axis=1).to_frame("v")


@case("odds")
def plain_apply_row_chain(df):
    return df.apply(lambda r: "a" if 0 < r["count"] < 3 else "b" if r["count"] == 0 else "c", axis=1).to_frame("v")


@case("odds")
def plain_apply_int_div(df):
    return df["count"].apply(lambda v: v // 3 if v % 2 == 0 else v / 2).to_frame("v")


@case("odds")
def plain_apply_min_max(df):
    return df.apply(lambda r: max(r["count"], r["index"]) - min(r["count"], 0), axis=1).to_frame("v")


@case("odds")
def plain_apply_round(df):
    return df["values"].fillna(0).replace(np.inf, 0).apply(lambda v: round(v)).to_frame("v")


@case("odds")
def plain_apply_round1(df):
    return df["values"].apply(lambda v: round(v, 1)).to_frame("v")


@case("odds")
def plain_apply_int(df):
    return df["values"].fillna(0).replace(np.inf, 0).apply(lambda v: int(v)).to_frame("v")


@case("odds")
def plain_apply_abs(df):
    return df["index"].apply(abs).to_frame("v")


@case("odds")
def plain_apply_float_none(df):
    return df["size"].apply(lambda v: None if v > 0 else v).to_frame("v")


@case("odds")
def plain_apply_bool(df):
    return df["count"].apply(lambda v: v > 1 and v < 4).to_frame("v")


@case("odds")
def plain_apply_loop(df):

    def f(v):
        t = 0
        for lim in (1, 2, 3):
            if v > lim:
                t += 1
        return t

    return df["count"].apply(f).to_frame("v")


@case("odds")
def plain_apply_dict(df):
    d = {"x": 1, "y": 2}
    return df["kind"].apply(lambda k: d[k] if k in d else 0).to_frame("v")  # noqa: SIM401


@case("odds")
def plain_apply_set(df):
    return df["kind"].map(lambda k: k in {"x", "z"}).to_frame("v")


@case("odds")
def plain_query_str(df):
    return df.query("name == 'ann' or kind in ('x','z') and flag")[["name"]]


@case("odds")
def plain_query_null(df):
    return df.query("name.isnull() or size != size")[["size"]]


@case("odds")
def plain_query_level(df):
    k = "x"  # noqa: F841
    return df.query("kind != @k and -2 < index <= 2 and not flag")[["kind"]]


@case("odds")
def plain_eval_multi(df):
    return df.eval("a = count * 2\nb = a + index\nc = a > b")[["a", "b", "c"]]


@case("odds")
def plain_eval_backtick(df):
    return df.eval("z = `a.b` * 2 - count")[["z"]]


@case("odds")
def plain_iloc_ops(df):
    return df.iloc[2:8, [0, 2]]


@case("odds")
def plain_iloc_neg(df):
    return df.iloc[-3:][["count"]]


@case("odds")
def plain_loc_slice(df):
    return df.loc[:, "count":"index"]


@case("odds")
def plain_sample_tail(df):
    return df[::2][["count"]]


@case("odds", raises=("none",))
def plain_first_row_value(df):
    df["d"] = df["count"] - df["count"].iloc[0]
    return df[["d"]]


@case("odds", raises=("none",))
def plain_last_row_value(df):
    df["d"] = df["count"] / df["count"].iloc[-1]
    return df[["d"]]
