"""Choices, bounds, ranks and rows of unusual dtypes."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("odds")
def edges_group_two_levels(df):
    a = df.groupby("kind")["count"].transform("sum")
    b = df.groupby(["kind", "rows"])["count"].transform("sum")
    df["share"] = b / a
    return df[["share"]]


@case("odds")
def edges_fillna_by_group_then_global(df):
    df["size"] = df["size"].fillna(df.groupby("kind")["size"].transform("median")).fillna(df["size"].median())
    return df[["size"]]


@case("odds")
def edges_cut_duplicates(df):
    return pd.cut(df["values"], [0, 10, 10, 50, 100], duplicates="drop", labels=False).to_frame("c")


@case("odds")
def edges_cut_float32(df):
    return pd.DataFrame(
        {
            "a": pd.cut(df["f32"], [-1, 0.1, 0.2, 3], labels=False),
            "b": pd.cut(df["u8"], [0, 100, 255], labels=["l", "h"]),
            "c": pd.cut(df["whole"].astype(float), [0, 1, 2], labels=False),
        }
    )


@case("odds")
def edges_cut_nullable(df):
    return pd.cut(df["whole"], [0, 1, 3], labels=["l", "h"]).to_frame("c")


@case("odds")
def edges_cut_right_false_lowest(df):
    return pd.cut(df["count"], [0, 1, 2, 4], right=False, include_lowest=True, labels=["a", "b", "c"]).to_frame("c")


@case("odds")
def edges_cut_numpy_edges(df):
    return pd.cut(df["values"], np.linspace(0, 100, 5), labels=range(4)).to_frame("c")


@case("odds")
def edges_cut_map(df):
    return (
        pd.cut(df["values"], [-np.inf, 10, 50, np.inf], labels=["a", "b", "c"])
        .map({"a": 1, "b": 2, "c": 3})
        .astype(float)
        .to_frame("c")
    )


@case("odds")
def edges_where_other_kinds(df):
    return pd.DataFrame(
        {
            "a": df["count"].where(df["count"] > 1, 0.5),
            "b": df["count"].where(df["count"] > 1, df["size"]),
            "c": df["i8"].where(df["i8"] > 0, 0),
            "d": df["flag"].where(df["count"] > 1, False),
            "e": df["u8"].where(df["flag"], 255),
        }
    )


@case("odds")
def edges_np_where_kinds(df):
    df["a"] = np.where(df["flag"], df["i8"], df["u8"])
    df["b"] = np.where(df["flag"], df["f32"], 1.5)
    df["c"] = np.where(df["flag"], 1, df["f32"])
    df["d"] = np.where(df["flag"], df["i8"], 1)
    df["e"] = np.where(df["size"] > 0, True, False)
    df["f"] = np.where(df["flag"], df["count"], np.nan)
    df["g"] = np.where(df["count"] > 1, df["count"] > 2, df["flag"])
    return df[["a", "b", "c", "d", "e", "f", "g"]]


@case("odds")
def edges_np_where_text(df):
    df["a"] = np.where(df["name"].isna(), "none", df["name"])
    df["b"] = np.where(df["flag"], df["name"].fillna(""), df["kind"].fillna("?"))
    return df[["a", "b"]]


@case("odds")
def edges_clip_kinds(df):
    return pd.DataFrame(
        {
            "a": df["i8"].clip(-5, 5),
            "b": df["u8"].clip(upper=100),
            "c": df["count"].clip(0.5, 2.5),
            "d": df["whole"].clip(lower=1),
            "e": df["count"].clip(lower=df["index"]),
            "f": np.clip(df["f32"], 0, 1),
        }
    )


@case("odds")
def edges_frame_round(df):
    return df[["size", "a.b", "count"]].round({"size": 0, "a.b": 1})


@case("odds")
def edges_frame_abs_astype(df):
    return df[["count", "index"]].abs().astype({"count": "float32"}).assign(k=lambda d: d["count"] / 3)


@case("odds")
def edges_frame_arithmetic(df):
    part = df[["count", "index"]]
    return (part - part.min()) / (part.max() - part.min())


@case("odds")
def edges_frame_times_series(df):
    return df[["count", "size"]].mul(df["index"], axis=0).add_suffix("_m")


@case("odds")
def edges_frame_div_row_sum(df):
    part = df[["count", "rows"]]
    return part.div(part.sum(axis=1), axis="index")


@case("odds")
def edges_frame_compare(df):
    return (df[["count", "index"]] > 1).astype(int).rename(columns=lambda c: f"{c}_gt")


@case("odds")
def edges_frame_min_of_two(df):
    df["lo"] = df[["count", "index"]].min(axis=1)
    df["hi"] = df[["big", "count"]].max(axis=1)
    df["md"] = df[["count", "index", "rows"]].median(axis=1)
    df["sd"] = df[["count", "index", "rows"]].std(axis=1)
    return df[["lo", "hi", "md", "sd"]]


@case("odds")
def edges_row_sum_kinds(df):
    df["a"] = df[["i8", "u8"]].sum(axis=1)
    df["b"] = df[["f32", "count"]].sum(axis=1)
    df["c"] = df[["flag", "count"]].sum(axis=1)
    return df[["a", "b", "c"]]


@case("odds")
def edges_arithmetic_fill_value(df):
    return pd.DataFrame(
        {
            "a": df["size"].add(df["values"], fill_value=0),
            "b": df["size"].sub(1, fill_value=5),
            "c": df["values"].div(df["count"], fill_value=1),
            "d": df["count"].rsub(10),
            "e": df["count"].floordiv(2),
            "f": df["size"].pow(2),
        }
    )


@case("odds")
def edges_isin_small(df):
    return pd.DataFrame(
        {
            "a": df["u8"].isin([255, 300, -1]),
            "b": df["i8"].isin([1.5, 2]),
            "c": df["flag"].isin([True]),
            "d": df["whole"].isin([1, None]),
            "e": df["nano"].isin([pd.Timestamp("1970-01-01")]),
            "f": df["level"].isin(["low"]),
        }
    )


@case("odds")
def edges_mask_chain(df):
    s = df["size"].mask(df["size"] > 5, 5).mask(df["size"] < -5, -5).where(df["flag"])
    return s.rename("s").to_frame()


@case("odds")
def edges_cum_small(df):
    return pd.DataFrame(
        {
            "a": df["i8"].cumsum(),
            "b": df["u8"].cumsum(),
            "c": df["f32"].cumsum(),
            "d": df["flag"].cumsum(),
            "e": df["i8"].cummax(),
            "f": df["u8"].diff(),
            "g": df["i8"].shift(1),
        }
    )


@case("odds")
def edges_rank_kinds(df):
    return pd.DataFrame(
        {
            "a": df["i8"].rank(),
            "b": df["big"].rank(method="min"),
            "c": df["flag"].rank(),
            "d": df["level"].rank(),
            "e": df["nano"].rank(),
            "f": df["name"].rank(),
            "g": df["count"].rank(ascending=False, pct=True),
        }
    )


@case("odds")
def edges_duplicates_of_floats(df):
    return df[["values", "size"]].drop_duplicates()


@case("odds")
def edges_duplicates_missing(df):
    return df[["name", "whole", "maybe"]].drop_duplicates(ignore_index=True)


@case("odds")
def edges_nunique_forms(df):
    df["a"] = df["name"].nunique()
    df["b"] = df["name"].nunique(dropna=False)
    df["c"] = df["size"].nunique()
    return df[["a", "b", "c"]]


@case("odds")
def edges_any_all(df):
    df["a"] = df["flag"].any()
    df["b"] = (df["count"] > 0).all()
    df["c"] = df["size"].isna().any()
    df["d"] = df["size"].isna().mean()
    df["e"] = df["flag"].sum() / len(df)
    return df[["a", "b", "c", "d", "e"]]


@case("odds")
def edges_get_dummies_bool_level(df):
    return pd.get_dummies(df[["level", "shade", "count"]], dtype=float)


@case("odds")
def edges_get_dummies_drop_first_na(df):
    return pd.get_dummies(df["level"], drop_first=True, dummy_na=True)


@case("odds")
def edges_select_dtypes_forms(df):
    a = df.select_dtypes(include=["int64", "float64"]).columns
    b = df.select_dtypes("bool").columns
    c = df.select_dtypes(exclude=["number", "object", "str", "string", "datetime", "category"]).columns
    return df[a.union(b).union(c.intersection(["flag"]))][["count", "flag"]]


@case("odds")
def edges_filter_forms(df):
    return pd.concat([df.filter(like="i"), df.filter(regex="^u")], axis=1)[["i8", "i16", "u8", "u32"]]


@case("odds")
def edges_squeeze_item(df):
    s = df[["count"]].squeeze("columns")
    return s.to_frame()


@case("odds")
def edges_transform_list(df):
    return df[["values", "count"]].transform(lambda s: s * 2)


@case("odds")
def edges_transform_sqrt(df):
    return df[["values", "count"]].apply(np.sqrt)


@case("odds")
def edges_apply_row_sum(df):
    return df[["count", "index"]].apply(lambda r: r.sum(), axis=1).to_frame("s")


@case("odds", raises=("none",))
def edges_apply_row_tuple(df):
    out = df.apply(lambda r: (r["count"], r["index"] * 2), axis=1, result_type="expand")
    out.columns = ["a", "b"]
    return out


@case("odds")
def edges_loc_chained_conditions(df):
    df["g"] = "none"
    df.loc[df["count"] > 0, "g"] = "some"
    df.loc[(df["count"] > 1) & (df["size"] > 0), "g"] = "many"
    df.loc[df["name"].isna(), "g"] = df["kind"]
    return df[["g"]]


@case("odds")
def edges_loc_int_column_gets_float(df):
    df["x"] = 0.0
    df.loc[df["count"] > 1, "x"] = df["size"]
    df.loc[df["flag"], "x"] += 1
    return df[["x"]]


@case("odds")
def edges_loc_missing(df):
    df.loc[df["size"] < 0, "size"] = np.nan
    df.loc[df["kind"] == "x", "name"] = None
    return df[["size", "name"]]
