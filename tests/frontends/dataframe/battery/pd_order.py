"""Order and neighbours: sort, rank, shift, diff, running totals, windows."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def sort_by_number(df):
    return df.sort_values("rate", kind="stable")[["id", "rate"]]


@case("loans")
def sort_descending(df):
    return df.sort_values("loan", ascending=False, kind="stable").reset_index(drop=True)[["id", "loan"]]


@case("loans")
def sort_two_keys(df):
    return df.sort_values(["term", "rate"], ascending=[True, False])[["id", "term", "rate"]]


@case("loans")
def sort_missing_first(df):
    return df.sort_values("age", na_position="first", kind="stable")[["id", "age"]]


@case("orders")
def sort_by_text(df):
    return df.sort_values(["product", "order_id"])[["order_id", "product"]]


@case("orders")
def sort_by_time(df):
    return df.sort_values("ordered", kind="stable")[["order_id", "ordered"]]


@case("customers")
def sort_by_ordered_category(df):
    return df.sort_values(["plan", "customer_id"])[["customer_id", "plan"]]


@case("loans")
def sort_a_series(df):
    return df["rate"].sort_values().reset_index(drop=True)


@case("loans")
def sort_back_by_index(df):
    return df.sort_values("rate").assign(n=lambda d: d["late"] + 1).sort_index()[["id", "n"]]


@case("loans")
def rank_average(df):
    return pd.DataFrame(
        {"avg": df.late.rank(), "min": df.late.rank(method="min"), "dense": df.late.rank(method="dense")}
    )


@case("loans")
def rank_missing(df):
    return pd.DataFrame({"r": df.age.rank(), "d": df.age.rank(ascending=False), "f": df.age.rank(method="first")})


@case("loans")
def rank_percent(df):
    return df["score"].rank(pct=True).rename("pct")


@case("loans")
def rank_max_bottom(df):
    return df["rate"].rank(method="max", na_option="bottom").rename("rank")


@case("sensors")
def shift_forward(df):
    df["prev"] = df["temp"].shift(1)
    df["next"] = df["temp"].shift(-1)
    return df[["prev", "next"]]


@case("sensors")
def shift_ints(df):
    return pd.DataFrame({"missing": df["count"].shift(), "filled": df["count"].shift(2, fill_value=0)})


@case("sensors")
def shift_text(df):
    return (df["device"] != df["device"].shift()).rename("changed")


@case("sensors")
def shift_times(df):
    return (df["at"] - df["at"].shift()).rename("gap")


@case("sensors")
def diff_one(df):
    return pd.DataFrame({"d1": df["temp"].diff(), "d2": df["count"].diff(2), "ahead": df["temp"].diff(-1)})


@case("sensors")
def percent_change(df):
    return df["humidity"].pct_change(fill_method=None).rename("change")


@case("sensors")
def running_totals(df):
    return pd.DataFrame({"sum": df["count"].cumsum(), "max": df["count"].cummax(), "min": df["count"].cummin()})


@case("sensors", near=1e-9)
def running_float_totals(df):
    return pd.DataFrame({"sum": df["humidity"].cumsum(), "max": df["temp"].cummax(), "min": df["temp"].cummin()})


@case("sensors")
def running_product(df):
    return (1 + df["humidity"].clip(0, 100) / 10000).cumprod().rename("grown")


@case("sensors")
def running_share(df):
    total = df["level"].astype("int64")
    return (total.cumsum() / total.sum()).rename("share")


@case("sensors", near=1e-9)
def rolling_mean(df):
    return df["humidity"].rolling(3).mean().rename("mean")


@case("sensors", near=1e-9)
def rolling_mean_min_periods(df):
    return df["humidity"].rolling(window=5, min_periods=1).mean().rename("mean")


@case("sensors", near=1e-9)
def rolling_sum_of_ints(df):
    return df["code"].rolling(4).sum().rename("sum")


@case("sensors")
def rolling_min_max(df):
    r = df["humidity"].rolling(3, min_periods=1)
    return pd.DataFrame({"min": r.min(), "max": r.max(), "range": r.max() - r.min()})


@case("sensors", near=1e-6)
def rolling_std(df):
    return df["humidity"].rolling(4).std().rename("std")


@case("sensors", near=1e-9)
def rolling_centred(df):
    return df["humidity"].rolling(3, center=True).mean().rename("smooth")


@case("sensors")
def rolling_median(df):
    return df["humidity"].rolling(3).median().rename("median")


@case("sensors")
def rolling_count(df):
    return df["humidity"].rolling(3, min_periods=1).count().rename("n")


@case("sensors", near=1e-9)
def rolling_by_device(df):
    return df.groupby("device")["humidity"].transform(lambda x: x.rolling(2, min_periods=1).mean()).rename("mean")


@case("sensors", near=1e-9)
def rolling_of_shifted(df):
    return df["humidity"].shift(1).rolling(3).mean().rename("past")


@case("sensors", near=1e-9)
def expanding_mean(df):
    return df["humidity"].expanding().mean().rename("mean")


@case("sensors")
def expanding_max(df):
    return pd.DataFrame({"max": df["humidity"].expanding().max(), "min": df["humidity"].expanding(2).min()})


@case("sensors", near=1e-9)
def expanding_sum(df):
    return df["humidity"].expanding(min_periods=1).sum().rename("sum")


@case("sensors")
def lags_in_a_loop(df):
    for lag in (1, 2, 3):
        df[f"temp_lag{lag}"] = df["temp"].shift(lag)
    return df.filter(like="_lag")


@case("sensors")
def lags_by_device(df):
    for lag in (1, 2):
        df[f"lag{lag}"] = df.groupby("device")["temp"].shift(lag)
    return df[["lag1", "lag2"]]


@case("sensors")
def runs_of_equal_values(df):
    return (df["ok"] != df["ok"].shift()).cumsum().rename("run")


@case("sensors")
def new_session_after_gap(df):
    gap = df["at"].diff() > pd.Timedelta(minutes=40)
    return gap.cumsum().rename("session")


@case("loans")
def largest_rows(df):
    return df.nlargest(5, "loan")[["id", "loan"]]


@case("loans")
def smallest_rows(df):
    return df.nsmallest(3, ["late", "rate"])[["id", "late", "rate"]]


@case("loans")
def head_after_sort(df):
    return df.sort_values("score", ascending=False, kind="stable").head(5)[["id", "score"]]


@case("loans")
def tail_rows(df):
    return df.tail(3)[["id"]]


@case("loans")
def reversed_rows(df):
    return df.iloc[::-1][["id", "rate"]]


@case("loans")
def every_other_row(df):
    return df.iloc[::2].reset_index(drop=True)[["id"]]


@case("loans")
def row_numbers(df):
    return pd.DataFrame({"n": np.arange(len(df)), "id": df["id"]})


@case("loans")
def row_number_of_index(df):
    df["n"] = df.index + 1
    return df[["n", "id"]]


@case("loans")
def reset_index_kept(df):
    return df[df["late"] == 0][["id"]].reset_index()


@case("loans")
def exponential_mean(df):
    return df["score"].clip(300, 850).ewm(alpha=0.5, adjust=False).mean().rename("ewm")
