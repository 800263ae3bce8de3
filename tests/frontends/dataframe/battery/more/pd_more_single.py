"""Functions of single values, and columns of a part of the rows."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("odds")
def single_is_str(df):
    return df["kind"].apply(lambda v: v.lower() if isinstance(v, str) else "none").to_frame()


@case("odds")
def single_is_float(df):
    return df["kind"].apply(lambda v: "none" if isinstance(v, float) else v).to_frame()


@case("odds")
def single_is_int(df):
    return df["count"].apply(lambda v: v + 1 if isinstance(v, int) else 0).to_frame()


@case("odds")
def single_type_str(df):
    return df["kind"].apply(lambda v: v.lower() if type(v) == str else "none").to_frame()  # noqa: E721


@case("odds")
def single_type_is_str(df):
    return df["kind"].apply(lambda v: v if type(v) is str else "none").to_frame()


@case("odds")
def single_is_nan(df):
    return df["size"].apply(lambda v: 0.0 if v is np.nan else v).to_frame()


@case("odds")
def single_np_isnan(df):
    return df["size"].apply(lambda v: 0.0 if np.isnan(v) else v).to_frame()


@case("odds")
def single_truthy(df):
    return df["kind"].apply(lambda v: v if v else "empty").to_frame()


@case("odds")
def single_truthy_or(df):
    return df["kind"].apply(lambda v: v or "empty").to_frame()


@case("odds")
def single_not_v(df):
    return df["count"].apply(lambda v: not v).to_frame()


@case("odds")
def single_str_of(df):
    return df["count"].apply(lambda v: str(v) + "x").to_frame()


@case("odds")
def single_in_range(df):
    return df["count"].apply(lambda v: v in range(3)).to_frame()


@case("odds")
def single_int_max(df):
    return df["count"].apply(lambda v: min(max(v, 1), 3)).to_frame()


@case("odds")
def single_sum_list(df):
    return df.apply(lambda r: sum([r["count"], r["index"]]), axis=1).to_frame("v")


@case("odds")
def single_row_any(df):
    return df.apply(lambda r: any([r["count"] > 2, r["flag"]]), axis=1).to_frame("v")


@case("odds")
def single_sub_s(df):
    s = df[df["flag"]].copy()
    s["y"] = df["count"]
    s["z"] = df["size"].fillna(0)
    return s[["y", "z"]]


@case("odds")
def single_sub_fill(df):
    s = df[df["flag"]].copy()
    s["size"] = s["size"].fillna(df["values"])
    s["w"] = s["count"].where(df["count"] > 1, 0)
    s["c"] = s["count"].clip(upper=df["index"])
    return s[["size", "w", "c"]]


@case("odds")
def single_sub_cond(df):
    s = df[df["flag"]]
    return s[df["count"] > 1][["count"]]


@case("odds")
def single_sort_cond(df):
    s = df.sort_values("index", kind="stable")
    return s[df["count"] > 1][["count"]]


@case("odds", raises=("none",))
def single_iloc_scalar(df):
    df["v"] = df["count"].iloc[0]
    return df[["v"]]


@case("odds")
def single_len_apply(df):
    return df["name"].fillna("").apply(lambda s: len(s)).to_frame()


@case("odds")
def single_len_apply2(df):
    return df["name"].fillna("").apply(lambda s: len(s) * 2 if len(s) > 2 else 0).to_frame()


@case("odds")
def single_np_isin(df):
    return pd.DataFrame({"a": np.isin(df["kind"], ["x"]), "b": df["count"].values == 1})


@case("loans")
def f_string_of_rows(df):
    return df.apply(lambda r: f"{r.grade}-{r['late']}/{r.employed}", axis=1).rename("key").to_frame()


@case("loans")
def f_string_of_integers(df):
    return pd.DataFrame({"id": df["id"].map(lambda v: f"id_{v}"), "plain": df["late"].apply(lambda v: f"{v}")})


@case("loans")
def f_string_of_texts(df):
    return pd.DataFrame({"g": df["grade"].map(lambda v: f"<{v}>"), "e": df["employer"].map(lambda v: f"{v}!")})


@case("loans")
def f_string_in_a_branch(df):
    return df["late"].map(lambda v: f"late {v} ({v + 1})" if v > 0 else "in time").to_frame()


@case("loans")
def range_of_rows(df):
    return df.assign(first=range(len(df)), second=range(1, len(df) + 1), two=sum(range(3)))[["first", "second", "two"]]
