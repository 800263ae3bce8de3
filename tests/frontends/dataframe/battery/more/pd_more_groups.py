"""Groups and windows in forms less often written."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("orders")
def sets_transform_lambda_steps(df):
    g = df.groupby("customer_id")["qty"]
    df["z"] = g.transform(lambda s: (s - s.mean()) / (s.max() - s.min() + 1))
    return df[["z"]]


@case("orders")
def sets_transform_lambda_fillna(df):
    df["price"] = df.groupby("product")["price"].transform(lambda s: s.fillna(s.mean()))
    return df[["price"]]


@case("orders")
def sets_nan_keys_dropped(df):
    return df.groupby("channel")["qty"].sum().reset_index()


@case("orders")
def sets_nan_keys_kept(df):
    return df.groupby("channel", dropna=False)["qty"].sum().reset_index()


@case("orders")
def sets_nan_keys_transform(df):
    df["n"] = df.groupby("channel")["qty"].transform("count")
    df["m"] = df.groupby("channel", dropna=False)["qty"].transform("mean")
    return df[["n", "m"]]


@case("orders")
def sets_group_of_filtered(df):
    part = df[df["qty"] > 3]
    return part.groupby("customer_id").agg(total=("qty", "sum"), best=("price", "max")).reset_index()


@case("orders")
def sets_group_by_computed(df):
    return df.groupby(df["qty"] > 5)["price"].mean().reset_index()


@case("orders")
def sets_group_by_two_with_missing(df):
    return df.groupby(["channel", "product"], as_index=False)["qty"].sum()


@case("orders")
def sets_agg_dict(df):
    return df.groupby("customer_id", as_index=False).agg({"qty": "sum", "price": "mean", "order_id": "count"})


@case("orders")
def sets_agg_dict_lists(df):
    out = df.groupby("customer_id").agg({"qty": ["min", "max"], "order_id": ["count"]})
    out.columns = ["_".join(c) for c in out.columns]
    return out.reset_index()


@case("orders")
def sets_agg_named_lambda(df):
    return df.groupby("customer_id").agg(spread=("qty", lambda s: s.max() - s.min()), n=("qty", "size")).reset_index()


@case("orders")
def sets_agg_nunique_first_last(df):
    return (
        df.groupby("customer_id")
        .agg(p=("product", "nunique"), f=("product", "first"), l=("product", "last"), c=("channel", "count"))
        .reset_index()
    )


@case("orders", near=1e-6)
def sets_agg_std_var(df):
    return df[df["price"] < 1e6].groupby("customer_id")["price"].agg(["std", "var", "mean"]).reset_index()


@case("orders")
def sets_agg_median_quantile(df):
    g = df.groupby("customer_id")["qty"]
    return pd.DataFrame({"m": g.median(), "q": g.quantile(0.25)}).reset_index()


@case("orders")
def sets_group_size_merge(df):
    sizes = df.groupby("customer_id").size().rename("n").reset_index()
    return df[["order_id", "customer_id"]].merge(sizes, on="customer_id", how="left")


@case("orders")
def sets_group_agg_mapped(df):
    totals = df.groupby("customer_id")["qty"].sum()
    df["total"] = df["customer_id"].map(totals)
    return df[["total"]]


@case("orders")
def sets_value_counts_mapped(df):
    df["freq"] = df["product"].map(df["product"].value_counts())
    df["share"] = df["product"].map(df["product"].value_counts(normalize=True))
    return df[["freq", "share"]]


@case("orders")
def sets_cumcount_and_rank(df):
    df["nth"] = df.groupby("customer_id").cumcount() + 1
    df["r"] = df.groupby("customer_id")["qty"].rank(method="dense", ascending=False)
    return df[["nth", "r"]]


@case("orders")
def sets_group_shift_diff(df):
    g = df.groupby("customer_id")["qty"]
    df["prev"] = g.shift(1)
    df["next"] = g.shift(-1)
    df["d"] = g.diff()
    df["filled"] = g.shift(1, fill_value=0)
    return df[["prev", "next", "d", "filled"]]


@case("orders")
def sets_group_cum(df):
    g = df.groupby("customer_id")
    df["s"] = g["qty"].cumsum()
    df["m"] = g["discount"].cummax()
    df["p"] = g["discount"].cumsum()
    return df[["s", "m", "p"]]


@case("orders")
def sets_group_cum_missing_key(df):
    df["s"] = df.groupby("channel")["qty"].cumsum()
    df["r"] = df.groupby("channel")["qty"].rank()
    df["n"] = df.groupby("channel").cumcount()
    return df[["s", "r", "n"]]


@case("orders")
def sets_group_ffill(df):
    df["d"] = df.groupby("customer_id")["discount"].ffill()
    df["b"] = df.groupby("customer_id")["discount"].bfill()
    return df[["d", "b"]]


@case("orders")
def sets_group_share(df):
    df["share"] = df["qty"] / df.groupby("product")["qty"].transform("sum")
    return df[["share"]]


@case("orders")
def sets_group_head(df):
    return df.sort_values(["customer_id", "order_id"]).groupby("customer_id").head(2)[["customer_id", "order_id"]]


@case("orders")
def sets_last_per_group(df):
    return df.sort_values("order_id").drop_duplicates("customer_id", keep="last")[["customer_id", "order_id"]]


@case("orders")
def sets_duplicated(df):
    df["dup"] = df.duplicated(["customer_id", "product"])
    df["dup_any"] = df.duplicated(subset=["customer_id"], keep=False)
    df["dup_last"] = df["channel"].duplicated(keep="last")
    return df[["dup", "dup_any", "dup_last"]]


@case("orders")
def sets_one_group(df):
    df["all"] = 1
    return df.groupby("all")["qty"].agg(["sum", "max"]).reset_index()


@case("orders")
def sets_group_filter_large(df):
    return df[df.groupby("customer_id")["order_id"].transform("size") > 2][["order_id"]]


@case("orders")
def sets_group_any_all(df):
    df["big"] = df["qty"] > 8
    df["any_big"] = df.groupby("customer_id")["big"].transform("any")
    df["all_big"] = df.groupby("customer_id")["big"].transform("all")
    df["n_big"] = df.groupby("customer_id")["big"].transform("sum")
    return df[["any_big", "all_big", "n_big"]]


@case("orders")
def sets_group_max_is_row(df):
    df["is_max"] = df["qty"] == df.groupby("customer_id")["qty"].transform("max")
    return df[["is_max"]]


@case("orders")
def sets_group_text_min(df):
    return df.groupby("customer_id")["product"].agg(["min", "max"]).reset_index()


@case("orders")
def sets_group_times(df):
    g = df.groupby("customer_id")["ordered"]
    df["first"] = g.transform("min")
    df["since"] = (df["ordered"] - g.transform("min")).dt.days
    return df[["first", "since"]]


@case("sensors")
def sets_rank_methods(df):
    return pd.DataFrame({m: df["temp"].rank(method=m) for m in ("average", "min", "max", "first", "dense")})


@case("sensors")
def sets_rank_options(df):
    return pd.DataFrame(
        {
            "p": df["temp"].rank(pct=True),
            "t": df["temp"].rank(na_option="top"),
            "b": df["temp"].rank(na_option="bottom", ascending=False),
            "i": df["level"].rank(method="min"),
        }
    )


@case("sensors")
def sets_rank_text(df):
    return df["device"].rank(method="dense").to_frame("r")


@case("sensors", near=1e-6)
def sets_rolling_forms(df):
    t = df["humidity"]
    return pd.DataFrame(
        {
            "a": t.rolling(3).mean(),
            "b": t.rolling(3, min_periods=1).sum(),
            "c": t.rolling(5, min_periods=2, center=True).mean(),
            "d": t.rolling(window=4).max(),
            "e": t.rolling(2).min(),
            "f": t.rolling(3).count(),
        }
    )


@case("sensors")
def sets_rolling_int(df):
    return pd.DataFrame({"a": df["count"].rolling(2).sum(), "b": df["level"].rolling(3, 1).max()})


@case("sensors")
def sets_expanding(df):
    h = df["humidity"]
    return pd.DataFrame({"a": h.expanding().mean(), "b": h.expanding(min_periods=3).max(), "c": h.expanding().count()})


@case("sensors")
def sets_shift_forms(df):
    return pd.DataFrame(
        {
            "a": df["count"].shift(),
            "b": df["count"].shift(-2),
            "c": df["count"].shift(1, fill_value=-1),
            "d": df["device"].shift(1),
            "e": df["ok"].shift(1, fill_value=False),
            "f": df["at"].shift(1),
            "g": df["count"].shift(periods=3),
            "h": df["count"].shift(0),
            "i": df["level"].shift(1, fill_value=0),
        }
    )


@case("sensors")
def sets_shift_far(df):
    return pd.DataFrame(
        {"a": df["humidity"].shift(100), "b": df["humidity"].shift(-100), "c": df["count"].shift(50, fill_value=0)}
    )


@case("sensors")
def sets_changed_flag(df):
    df["changed"] = df["device"] != df["device"].shift()
    df["block"] = df["changed"].cumsum()
    df["n"] = df.groupby("block").cumcount()
    return df[["changed", "block", "n"]]


@case("sensors")
def sets_diff_forms(df):
    return pd.DataFrame(
        {
            "a": df["count"].diff(),
            "b": df["humidity"].diff(2),
            "c": df["at"].diff().dt.total_seconds(),
            "d": df["count"].diff(-1),
            "e": df["count"].pct_change(),
        }
    )


@case("sensors")
def sets_fill_limits(df):
    return pd.DataFrame(
        {
            "a": df["temp"].ffill(),
            "b": df["temp"].bfill(),
            "c": df["temp"].ffill().bfill().fillna(0),
            "d": df["device"].ffill(),
        }
    )


@case("sensors")
def sets_sort_ties(df):
    return df.sort_values(["ok", "count"], ascending=[False, True], kind="stable")[["ok", "count", "level"]]


@case("sensors")
def sets_sort_nan_first(df):
    return df.sort_values("temp", na_position="first", kind="stable")[["temp", "level"]]


@case("sensors")
def sets_sort_descending_nan(df):
    return df.sort_values(by=["temp", "level"], ascending=False)[["temp", "level"]]


@case("sensors")
def sets_sort_text_missing(df):
    return df.sort_values(["device", "count", "level"])[["device", "count", "level"]]


@case("sensors")
def sets_nlargest(df):
    return df.nlargest(3, "level")[["level"]]


@case("sensors")
def sets_sort_then_shift(df):
    s = df.sort_values("count", kind="stable")
    s["gap"] = s["count"] - s["count"].shift(1)
    return s.sort_index()[["count", "gap"]]


@case("sensors")
def sets_sorted_cumsum_back(df):
    df["run"] = df.sort_values("level", kind="stable")["count"].cumsum()
    return df[["run"]]


regions = pd.DataFrame(
    {"region": ["north", "south", "east", None], "tax": [0.1, 0.2, np.nan, 0.5], "code": [1, 2, 3, 4]}
)


grades = pd.DataFrame({"g": ["A", "B", "C"], "rate": [1.0, 2.0, 3.0], "id": [7, 8, 9]})


@case("loans")
def sets_merge_two_names(df):
    return df[["id", "grade", "rate"]].merge(grades, left_on="grade", right_on="g", how="left")
