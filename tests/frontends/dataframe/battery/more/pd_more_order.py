"""Rows that stand in another order, and labels that are set."""

import types

import numpy as np
import pandas as pd
from frame_cases import case

ns = types.SimpleNamespace(t={"x": 7})


@case("odds")
def look_ewm1(df):
    return df["count"].ewm(span=3).mean().to_frame()


@case("odds")
def look_interp(df):
    return df["a.b"].interpolate().to_frame()


@case("odds")
def look_sort_ties_stable(df):
    return df.sort_values("rows", kind="stable")[["rows", "count"]]


@case("odds")
def look_sort_multi_default(df):
    return df.sort_values(["rows", "flag"])[["rows", "flag", "count"]]


@case("odds")
def look_sort_desc_stable(df):
    return df.sort_values("rows", ascending=False, kind="stable")[["rows", "count"]]


@case("odds")
def look_dedupe_last(df):
    return df.drop_duplicates(["kind", "rows"], keep="last")[["kind", "rows", "count"]]


@case("odds")
def look_dedupe_none(df):
    return df.drop_duplicates(["kind", "rows"], keep=False)[["kind", "rows"]]


@case("odds")
def look_concat3(df):
    return pd.concat([df[["count"]], df["index"].rename("i"), pd.get_dummies(df["shade"], dtype=int)], axis=1)


@case("odds")
def look_concat_sorted(df):
    return pd.concat([df[["count"]], df.sort_values("index", kind="stable")["rows"]], axis=1)


@case("odds")
def look_frame_from_sorted(df):
    s = df.sort_values("index", kind="stable")
    return pd.DataFrame({"a": df["count"], "b": s["rows"]})


@case("odds")
def look_frame_index(df):
    s = df[df["flag"]]
    return pd.DataFrame({"a": df["count"]}, index=s.index)


@case("odds")
def look_series_index(df):
    df["a"] = pd.Series(0, index=df.index)
    df["b"] = pd.Series(np.where(df["flag"], 1, 2), index=df.index)
    df["c"] = pd.Series(df["count"].values, index=df.index, name="q")
    return df[["a", "b", "c"]]


@case("odds")
def look_series_index_filtered(df):
    s = df[df["flag"]]
    s = s.assign(w=pd.Series(np.where(s["count"] > 1, 1, 2), index=s.index))
    return s[["w"]]


@case("odds", raises=("none",))
def look_update_loop(df):
    for lim, lab in [(0, "a"), (2, "b"), (4, "c")]:
        df.loc[df["count"] >= lim, "lab"] = lab
    return df[["lab"]]


@case("odds")
def look_mask_assign_series(df):
    m = df["size"].isna()
    df.loc[m, "size"] = df.loc[~m, "size"].mean()
    return df[["size"]]


@case("odds")
def look_loc_sorted_assign(df):
    s = df.sort_values("index", kind="stable")
    s.loc[df["count"] > 1, "rows"] = 0
    return s[["rows"]]


@case("odds")
def look_mask_sorted(df):
    s = df.sort_values("index", kind="stable")
    return s[df["count"] > 1][["count"]]


@case("odds")
def look_where_sorted(df):
    s = df.sort_values("index", kind="stable")
    return s["count"].where(df["flag"], 0).to_frame()


@case("odds")
def look_arith_sorted(df):
    s = df.sort_values("index", kind="stable")
    return (s["count"] + df["rows"]).to_frame("v")


@case("odds")
def look_arith_sorted2(df):
    s = df.sort_values("index", kind="stable")
    return (df["rows"] - s["count"]).to_frame("v")


@case("odds")
def look_reset_then_align(df):
    s = df.sort_values("index", kind="stable").reset_index(drop=True)
    s["p"] = s["count"].shift(1)
    return s[["p"]]


@case("odds")
def look_head_sum(df):
    return (df["count"] + df["count"].head(3)).to_frame("v")


@case("odds")
def look_set_index_arith(df):
    s = df.set_index("name")
    return (s["count"] + s["index"]).reset_index(name="v")


@case("odds")
def look_set_index_loc(df):
    s = df.set_index("index").sort_index(kind="stable") if False else df.set_index("index")
    s["z"] = s["count"] * 2
    return s.reset_index()[["index", "z"]]


@case("odds")
def look_inplace_return(df):
    df["size"] = df["size"].fillna(0, inplace=True)
    return df[["size"]]


@case("odds")
def look_inplace_rename(df):
    s = df["count"].copy()
    s.rename("q", inplace=True)
    return s.to_frame()


@case("odds", raises=("none",))
def look_iat(df):
    df["v"] = df["count"].iat[0] if False else df["count"].values[0]
    return df[["v"]]


@case("odds")
def look_explode_like(df):
    return df[["count"]].apply(lambda s: s.map({0: 10, 1: 20}))


@case("odds")
def look_isinstance_series(df):
    x = df["count"]
    return (x * 2 if isinstance(x, pd.Series) else x).to_frame()


@case("odds")
def look_isinstance_frame(df):
    if not isinstance(df, pd.DataFrame):
        raise TypeError("no frame")
    return df[["count"]]


@case("odds")
def look_hasattr_col(df):
    return (df.count if False else df["count"]).to_frame() if hasattr(df, "flag") else df


@case("odds")
def look_quant_frame(df):
    return (df[["count", "index"]] > df[["count", "index"]].quantile(0.75)).astype(int)
