"""Changes in place, statistics of numpy, keys of groups of all dtypes."""

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


@case("sensors", raises=("none",))
def edges_np_percentile_of_missing(df):
    df["p"] = np.percentile(df["humidity"], 90)
    df["q"] = np.quantile(df["humidity"], 0.5)
    return df[["p", "q"]]


@case("sensors", raises=("none",))
def edges_np_percentile_list(df):
    low, high = np.percentile(df["count"], [25, 75])
    return df["count"].clip(low, high).to_frame("c")


@case("sensors", raises=("none",))
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
