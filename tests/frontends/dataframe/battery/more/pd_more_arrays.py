"""Arrays, frames and groups asked for in a plain way."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("sensors")
def plain_arr_mean(df):
    df["a"] = df["humidity"].values.mean()
    df["b"] = df["count"].values.std()
    df["c"] = df["count"].to_numpy().sum()
    return df[["a", "b", "c"]]


@case("sensors", raises=("none",))
def plain_arr_nan_max(df):
    df["a"] = np.max(df["humidity"].to_numpy())
    df["b"] = np.nanmax(df["humidity"].to_numpy())
    df["c"] = np.mean(np.where(df["ok"], 1, 0))
    return df[["a", "c"]]


@case("odds")
def plain_arr_mod_const(df):
    df["a"] = df["count"].values % 3
    df["b"] = df["count"].values // 2
    df["c"] = df["count"].values / df["index"].values
    return df[["a", "b", "c"]]


@case("odds")
def plain_np_mod_series(df):
    df["a"] = np.mod(df["count"], df["index"])
    df["b"] = np.floor_divide(df["count"], df["index"])
    return df[["a", "b"]]


@case("odds")
def plain_fill_both_missing(df):
    df["a"] = df["size"].add(df["values"], fill_value=0)
    df["b"] = df["size"].div(df["values"], fill_value=1)
    df["c"] = df["size"].sub(2, fill_value=1)
    return df[["a", "b", "c"]]


@case("sensors")
def plain_nlargest_all(df):
    return df.nlargest(60, "humidity")[["humidity"]]


@case("sensors")
def plain_nsmallest_series(df):
    return df["humidity"].nsmallest(60).to_frame()


@case("odds")
def plain_merge_self_stats(df):
    g = df.groupby("kind", as_index=False)["count"].mean().rename(columns={"count": "avg"})
    return df[["kind", "count"]].merge(g, on="kind", how="left")


@case("odds")
def plain_merge_filtered_back(df):
    g = df[df["flag"]].groupby("kind")["count"].mean().rename("avg").reset_index()
    return df[["kind"]].merge(g, how="left", on="kind").fillna({"avg": -1})


@case("odds")
def plain_map_group(df):
    df["m"] = df["kind"].map(df.groupby("kind")["count"].mean())
    return df[["m"]]


@case("odds")
def plain_mask_na_bool(df):
    return df[df["flag"].shift(1) == True][["count"]]  # noqa: E712


@case("odds")
def plain_bool_shift_sum(df):
    df["n"] = df["flag"].shift(1).fillna(False).astype(int) + 1
    return df[["n"]]


@case("odds")
def plain_where_no_else_bool(df):
    df["n"] = df["flag"].where(df["count"] > 1)
    return df[["n"]]


@case("odds")
def plain_inv_int(df):
    df["a"] = ~df["count"]
    df["b"] = -df["u8"]
    df["c"] = +df["i8"]
    return df[["a", "b", "c"]]


@case("odds")
def plain_shift_ops(df):
    df["a"] = df["count"].shift(1) > df["count"]
    df["b"] = df["name"].shift(-1) == df["name"]
    df["c"] = df["maybe"].shift(1)
    df["d"] = df["whole"].shift(1, fill_value=0)
    return df[["a", "b", "c", "d"]]


@case("odds")
def plain_pct(df):
    df["a"] = df["count"].pct_change()
    df["b"] = df["values"].pct_change(2)
    df["c"] = df["f32"].pct_change()
    return df[["a", "b", "c"]]


@case("odds")
def plain_f32_stats(df):
    df["a"] = df["f32"].mean()
    df["b"] = df["f32"].sum()
    df["c"] = df["f32"].std()
    df["d"] = df["f32"].median()
    df["e"] = df["f32"].quantile(0.3)
    return df[["a", "b", "c", "d", "e"]]


@case("odds")
def plain_f32_roll(df):
    return pd.DataFrame(
        {
            "a": df["f32"].rolling(2).mean(),
            "b": df["f32"].expanding().sum(),
            "c": df["f32"].rank(),
            "d": df["f32"].diff(),
            "e": df["f32"].shift(),
            "f": df["f32"].ffill(),
        }
    )


@case("odds")
def plain_i8_more(df):
    return pd.DataFrame(
        {
            "d": df["i8"].diff(),
            "e": df["i16"].diff(),
            "f": df["u32"].diff(),
            "g": df["i8"].pct_change(),
            "h": df["i8"] // 2,
            "i": df["i8"] ** 3,
            "j": np.abs(df["i8"]),
            "k": np.square(df["i8"]),
            "l": np.sign(df["i8"]),
            "m": np.sqrt(df["u8"]),
        }
    )


@case("odds")
def plain_i8_compare_wide(df):
    return pd.DataFrame(
        {
            "a": df["i8"] > 200,
            "b": df["u8"] == -1,
            "c": df["u8"] < 300,
            "d": df["i8"] > -1000,
            "e": df["u8"] > df["i8"],
            "f": df["u32"] > df["index"],
        }
    )


@case("odds")
def plain_where_int_const(df):
    df["a"] = df["i8"].where(df["flag"], -1)
    df["c"] = df["f32"].where(df["flag"], -1)
    df["d"] = df["u8"].mask(df["flag"], 0)
    return df[["a", "c", "d"]]


@case("odds")
def plain_between_more(df):
    return pd.DataFrame(
        {
            "a": df["size"].between(-1, 1),
            "b": df["nano"].between("1970-01-01", "2000-01-01"),
            "c": df["name"].between("a", "b"),
            "d": df["f32"].between(0.1, 0.2),
            "e": df["whole"].between(1, 2),
        }
    )


@case("odds")
def plain_eq_mixed(df):
    return pd.DataFrame(
        {
            "a": df["name"] == df["kind"],
            "b": df["name"] != "ann",
            "c": df["name"] > "b",
            "d": df["count"] == df["size"],
            "e": df["flag"] == 1,
            "f": df["flag"] == df["count"],
            "g": df["count"] == "x",
            "h": df["name"] == 1,
        }
    )


@case("odds")
def plain_text_in_numbers(df):
    return pd.DataFrame({"a": df["count"].isin(["1", 2]), "b": df["name"].isin([1, "ann"])})


@case("odds")
def plain_assign_overwrite_order(df):
    return df.assign(count=df["count"] + 1, z=lambda d: d["count"] * 10)[["count", "z"]]


@case("odds")
def plain_astype_text(df):
    return pd.DataFrame(
        {
            "a": df["count"].astype(str),
            "b": df["flag"].astype(str),
            "c": df["name"].astype(str),
            "d": df["whole"].astype("string"),
            "e": df["shade"].astype(str),
            "f": df["i8"].astype(str) + "_" + df["kind"].fillna(""),
        }
    )


@case("odds")
def plain_to_numeric(df):
    return pd.DataFrame(
        {
            "a": pd.to_numeric(df["count"]),
            "b": pd.to_numeric(df["name"], errors="coerce"),
            "c": pd.to_numeric(df["flag"]),
            "d": pd.to_numeric(df["count"], downcast="integer") if False else df["count"],
        }
    )


@case("odds")
def plain_group_multi(df):
    g = df.groupby(["kind", "flag"]).agg(n=("count", "size"), s=("size", "sum"), m=("values", "mean")).reset_index()
    return g[g["n"] > 1]


@case("odds")
def plain_group_agg_sorted(df):
    return df.groupby("kind")["count"].sum().sort_values(ascending=False, kind="stable").reset_index()


@case("odds")
def plain_group_nlargest_idx(df):
    return (
        df.loc[df.groupby("kind")["index"].idxmax().dropna()][["kind", "index"]]
        if False
        else df.sort_values(["kind", "index"], ascending=[True, False], kind="stable")
        .groupby("kind")
        .head(1)[["kind", "index"]]
    )


@case("odds")
def plain_group_transform_len(df):
    df["r"] = df.groupby("kind")["count"].transform(len)
    df["f"] = df.groupby("kind")["size"].transform("first")
    df["l"] = df.groupby("kind")["name"].transform("last")
    df["n"] = df.groupby("kind")["name"].transform("count")
    return df[["r", "f", "l", "n"]]


@case("odds")
def plain_group_zscore_std(df):
    g = df.groupby("rows")["index"]
    df["z"] = (df["index"] - g.transform("mean")) / g.transform("std")
    return df[["z"]]


@case("odds")
def plain_group_filter(df):
    return df.groupby("kind").filter(lambda g: len(g) > 2)[["kind", "count"]]


@case("odds")
def plain_group_first_cat(df):
    return (
        df.groupby("rows")
        .agg(s=("shade", "first"), l=("level", "last"), t=("nano", "max"), u=("sec", "min"))
        .reset_index()
    )


@case("odds")
def plain_group_series_by(df):
    return df["count"].groupby(df["kind"]).sum().reset_index()


@case("odds")
def plain_group_cut(df):
    b = pd.cut(df["values"], [-1, 10, 50, 100], labels=["a", "b", "c"])
    return df.groupby(b, observed=True)["count"].sum().reset_index()


@case("odds")
def plain_crosstab_like(df):
    for k in ("x", "y"):
        df[f"n_{k}"] = (df["kind"] == k).groupby(df["rows"]).transform("sum")
    return df[["n_x", "n_y"]]
