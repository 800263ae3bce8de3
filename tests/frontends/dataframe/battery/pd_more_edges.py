"""Edges of single methods: arguments in other forms, changes in place, doubles of names, numpy's own statistics."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def edges_np_std(df):
    df["a"] = np.std(df["rate"])
    df["b"] = np.var(df["rate"], ddof=1)
    df["c"] = np.mean(df["rate"])
    df["d"] = np.sum(df["late"])
    df["e"] = np.max(df["rate"])
    return df[["a", "b", "c", "d", "e"]]


@case("sensors")
def edges_np_median_of_missing(df):
    df["m"] = np.median(df["humidity"])
    return df[["m"]]


@case("sensors")
def edges_np_percentile_of_missing(df):
    df["p"] = np.percentile(df["humidity"], 90)
    df["q"] = np.quantile(df["humidity"], 0.5)
    return df[["p", "q"]]


@case("sensors")
def edges_np_percentile_list(df):
    low, high = np.percentile(df["count"], [25, 75])
    return df["count"].clip(low, high).to_frame("c")


@case("sensors")
def edges_np_nan_functions(df):
    df["a"] = np.nanmean(df["humidity"])
    df["b"] = np.nanmax(df["humidity"])
    df["c"] = np.nanpercentile(df["humidity"], 25)
    df["d"] = np.nanstd(df["humidity"])
    return df[["a", "b", "c", "d"]]


@case("odds")
def edges_big_min_max(df):
    df["since"] = df["big"] - df["big"].min()
    df["left"] = df["big"].max() - df["big"]
    return df[["since", "left"]]


@case("odds")
def edges_filtered_max(df):
    df["m"] = df[df["flag"]]["count"].max()
    df["n"] = df.loc[df["count"] > 10**12, "count"].min()
    return df[["m", "n"]]


@case("odds")
def edges_big_filtered_max(df):
    df["m"] = df[df["big"] == 2**53 + 1]["big"].max() == 2**53 + 1
    return df[["m"]]


@case("odds")
def edges_big_map_values(df):
    return df["name"].map({"ann": 2**53 + 1, "bob": 3}).fillna(0).to_frame("m")


@case("odds")
def edges_big_sum(df):
    df["s"] = df["index"].sum() + 2**53
    return df[["s"]]


@case("odds")
def edges_small_mean_then_compare(df):
    df["m"] = df["u8"] > df["u8"].mean()
    df["r"] = df["u8"].max() - df["u8"].min()
    df["n"] = (df["i8"] - df["i8"].min()) / 2
    return df[["m", "r", "n"]]


@case("loans")
def edges_replace_in_place(df):
    s = df["late"]
    s.replace(0, 100, inplace=True)
    df["s"] = s
    return df[["late", "s"]]


@case("loans")
def edges_clip_in_place(df):
    s = df["rate"].copy()
    s.clip(5, 10, inplace=True)
    t = df["rate"].copy()
    t.where(t > 5, 0, inplace=True)
    u = df["rate"].copy()
    u.mask(u > 5, inplace=True)
    return pd.DataFrame({"s": s, "t": t, "u": u})


@case("loans")
def edges_ffill_in_place(df):
    df.ffill(inplace=True)
    s = df["age"].copy()
    s.bfill(inplace=True)
    return df[["age", "income"]].assign(s=s)


@case("loans")
def edges_dropna_in_place(df):
    df.dropna(subset=["age", "grade"], inplace=True)
    df.reset_index(drop=True, inplace=True)
    return df[["id", "age"]]


@case("loans")
def edges_dropna_thresh(df):
    return df[["age", "income", "grade"]].dropna(thresh=2)


@case("loans")
def edges_dropna_how_all(df):
    return df[["age", "income"]].dropna(how="all", axis="index")


@case("loans")
def edges_sort_in_place(df):
    df.sort_values("loan", ascending=False, inplace=True, kind="stable")
    df.drop_duplicates("grade", inplace=True)
    return df[["id", "grade"]]


@case("loans")
def edges_sort_ignore_index(df):
    out = df.sort_values(by="loan", kind="mergesort", ignore_index=True)
    out["i"] = out.index
    return out[["id", "i"]]


@case("loans")
def edges_dropna_series_ignore_index(df):
    s = df["age"].dropna(ignore_index=True)
    return s.to_frame("s").reset_index()


@case("loans")
def edges_fillna_in_place(df):
    df.fillna({"age": 0, "grade": "?"}, inplace=True)
    df.replace({"late": {0: -1}}, inplace=True)
    return df[["age", "grade", "late"]]


@case("loans")
def edges_fillna_means(df):
    num = ["age", "income", "rate"]
    df[num] = df[num].fillna(df[num].mean())
    return df[num]


@case("loans")
def edges_fillna_frame_zero(df):
    return df[["age", "late", "rate"]].fillna(0)


@case("loans")
def edges_fillna_several_by_loop(df):
    for c, v in {"age": df["age"].median(), "grade": "Z"}.items():
        df[c] = df[c].fillna(v)
    return df[["age", "grade"]]


@case("odds")
def edges_reset_index_named_index(df):
    return df[["index", "count"]].reset_index()


@case("odds")
def edges_reset_index_of_filtered(df):
    return df[df["flag"]][["count"]].reset_index()


@case("odds")
def edges_set_index_and_back(df):
    return df[["count", "name", "size"]].set_index("name").reset_index()


@case("odds")
def edges_set_index_keep(df):
    return df[["count", "name"]].set_index("name", drop=False)[["count"]].reset_index(drop=True)


@case("odds")
def edges_previous_flag_not(df):
    df["p"] = ~df["flag"].shift(1, fill_value=False)
    df["q"] = df["flag"].shift().fillna(False).astype(bool)
    return df[["p", "q"]]


@case("odds")
def edges_groupby_method_names(df):
    return df.groupby("kind")["count"].sum().reset_index(name="total")


@case("odds")
def edges_groupby_named_count(df):
    return df.groupby(["rows"]).agg(count=("count", "sum"), size=("size", "count")).reset_index()


@case("odds")
def edges_groupby_small_ints(df):
    return df.groupby("rows")[["i8", "u8", "i16"]].sum().reset_index()


@case("odds")
def edges_groupby_small_int_stats(df):
    return (
        df.groupby("rows")
        .agg(a=("i8", "max"), b=("u8", "min"), c=("i8", "mean"), d=("f32", "sum"), e=("f32", "mean"))
        .reset_index()
    )


@case("odds")
def edges_groupby_big(df):
    g = df.groupby("rows")["big"]
    return pd.DataFrame({"a": g.max(), "b": g.min(), "c": g.first()}).reset_index()


@case("odds")
def edges_groupby_bool_key(df):
    return df.groupby(["flag", "rows"])["count"].sum().reset_index()


@case("odds")
def edges_groupby_small_key(df):
    df["m"] = df.groupby("i8")["count"].transform("sum")
    df["n"] = df.groupby("u8")["count"].transform("size")
    return df[["m", "n"]]


@case("odds")
def edges_groupby_float_key(df):
    return df.groupby("values")["count"].sum().reset_index()


@case("odds")
def edges_groupby_time_key(df):
    return df.groupby("nano")["count"].sum().reset_index()


@case("odds")
def edges_groupby_maybe(df):
    return df.groupby("maybe")["count"].sum().reset_index()


@case("odds")
def edges_groupby_word(df):
    return df.groupby("word")["count"].max().reset_index()


@case("odds")
def edges_groupby_level(df):
    df["m"] = df.groupby("level", observed=True)["values"].transform("max")
    return df[["m"]]


@case("odds")
def edges_groupby_sort_false(df):
    return df.groupby("kind", sort=False)["count"].sum().reset_index()


@case("odds")
def edges_group_transform_small(df):
    g = df.groupby("rows")
    df["a"] = g["i8"].transform("max")
    df["b"] = g["i8"].transform("sum")
    df["c"] = g["big"].transform("min")
    df["d"] = df["big"] - df["c"]
    df["e"] = g["f32"].transform("mean")
    df["f"] = g["f32"].cumsum()
    return df[["a", "b", "c", "d", "e", "f"]]


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
def edges_np_where_times(df):
    df["a"] = np.where(df["flag"], df["nano"], pd.NaT)
    return df[["count"]]


@case("odds")
def edges_np_where_of_times(df):
    df["a"] = np.where(df["flag"], df["nano"], df["nano"].min())
    return df[["a"]]


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
def edges_round_kinds(df):
    return pd.DataFrame(
        {
            "a": df["f32"].round(1),
            "b": df["count"].round(-1),
            "c": df["size"].round(decimals=1),
            "d": np.round(df["a.b"], 2),
            "e": round(df["a.b"], 1),
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
def edges_compare_methods(df):
    return pd.DataFrame(
        {
            "a": df["size"].gt(0),
            "b": df["size"].ne(df["values"]),
            "c": df["count"].eq(df["index"], fill_value=0),
            "d": df["size"].le(0.5),
        }
    )


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
def edges_replace_kinds(df):
    return pd.DataFrame(
        {
            "a": df["flag"].replace({True: 1, False: 0}) if False else df["flag"].map({True: 1, False: 0}),
            "b": df["i8"].replace(1, 2),
            "c": df["size"].replace({np.inf: 0, -np.inf: 0, np.nan: -1}),
            "d": df["name"].replace("ann", "anna"),
            "e": df["count"].replace(0, 0.5),
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
    return (
        df[["count", "index"]].apply(sum, axis=1).to_frame("s")
        if False
        else df[["count", "index"]].apply(lambda r: r.sum(), axis=1).to_frame("s")
    )


@case("odds")
def edges_apply_row_expand(df):
    def both(r):
        return pd.Series({"s": r["count"] + r["index"], "d": r["count"] - r["index"]})

    return df.apply(both, axis=1)


@case("odds")
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
