"""Tables that functions look values up in, and statistics of numpy."""

import functools
import types

import numpy as np
import pandas as pd
from frame_cases import case

CONFIG = {"pts": {"x": 1, "y": 2}, "big": {f"k{i}": i for i in range(300)} | {"x": 5}}


class Enc:
    table = {"x": 10}  # noqa: RUF012

    def __init__(self):
        self.own = {"y": 20}

    def __call__(self, v):
        return self.own[v] if v in self.own else self.table.get(v, 0)

    def rows(self, r):
        return self.own.get(r["kind"], -1) + r["count"]


enc = Enc()


ns = types.SimpleNamespace(t={"x": 7})


def helper(v, table={"x": 3}):  # noqa: B006
    return table.get(v, 0)


@case("odds")
def look_k_obj(df):
    return df["kind"].apply(enc).to_frame()


@case("odds")
def look_k_method(df):
    return df.apply(enc.rows, axis=1).to_frame("r")


@case("odds")
def look_k_helper(df):
    return df["kind"].apply(helper).to_frame()


@case("odds")
def look_k_helper2(df):
    return df["kind"].apply(lambda v: helper(v) + 1).to_frame()


@case("odds")
def look_k_partial(df):
    return df["kind"].apply(functools.partial(helper, table={"y": 9})).to_frame()


@case("odds")
def look_k_ns(df):
    return df["kind"].apply(lambda k: ns.t.get(k, 0)).to_frame()


@case("odds")
def look_k_runtime_set(df):
    words = ["x", "z"]
    return df["kind"].map(lambda k: k in set(words)).to_frame()


@case("odds")
def look_k_args(df):
    return df["kind"].apply(lambda k, t: t.get(k, 0), args=({"x": 4},)).to_frame()


@case("odds")
def look_k_bool(df):
    return df["flag"].map(lambda b: {True: "y", False: "n"}[b]).to_frame()


@case("odds")
def look_k_int(df):
    return df["count"].map(lambda b: {0: "zero", 1: "one"}.get(b, "more")).to_frame()


@case("odds")
def look_k_tuple(df):
    return df.apply(lambda r: {("x", 1): "a", ("y", 2): "b"}.get((r["kind"], r["rows"]), "c"), axis=1).to_frame("r")


@case("odds")
def look_k_list_in(df):
    return df["kind"].map(lambda k: k in ["x", "z"]).to_frame()


@case("odds")
def look_k_eq(df):
    return df["kind"].map(lambda k: 1 if k == "x" or k == "z" else 0).to_frame()


@case("odds")
def look_k_match(df):

    def f(k):
        match k:
            case "x":
                return 1
            case "y":
                return 2
            case _:
                return 0

    return df["kind"].map(f).to_frame()


@case("odds")
def look_k_split(df):
    return df["name"].fillna("a b").apply(lambda s: s.upper() if len(s) > 2 else s).to_frame()


@case("odds")
def look_g_np(df):
    df["a"] = df.groupby("kind")["index"].transform(lambda s: np.max(s) - np.min(s))
    df["b"] = df.groupby("kind")["index"].transform(np.mean)
    df["c"] = df.groupby("kind")["index"].transform(lambda s: s.std(ddof=0))
    df["d"] = df.groupby("kind")["index"].transform(lambda s: np.std(s))
    return df[["a", "b", "c", "d"]]


@case("odds")
def look_g_aggnp2(df):
    return df.groupby("kind")["index"].agg([np.mean, "max"]).reset_index()


@case("odds")
def look_s_agg(df):
    df["a"] = df["index"].agg("max")
    df["b"] = df["index"].agg(np.std)
    df["c"] = df["index"].agg(lambda s: s.max() - s.min())
    df["d"] = df["size"].agg(np.median)
    return df[["a", "b", "c", "d"]]


@case("odds")
def look_s_apply_np(df):
    return pd.DataFrame(
        {
            "a": df["count"].apply(np.sqrt),
            "b": df["count"].apply(lambda v: np.sqrt(v)),
            "c": df["values"].apply(np.log1p),
            "d": df["size"].transform(np.abs),
        }
    )


@case("odds")
def look_f_applycols(df):
    return df[["count", "index"]].apply(lambda s: s - s.mean())


@case("odds")
def look_f_rowstd(df):
    return pd.DataFrame(
        {
            "a": df[["count", "index"]].std(axis=1, ddof=0),
            "b": df[["count", "size"]].var(axis=1),
            "c": np.mean(df[["count", "index"]], axis=1),
            "d": df[["size", "values"]].median(axis=1),
            "e": df[["size", "values"]].nunique(axis=1) if False else df["size"],
        }
    )


@case("odds")
def look_np_maxframe(df):
    return pd.DataFrame(
        {
            "a": np.maximum(df["count"], df["index"]),
            "b": np.maximum.reduce([df["count"], df["index"]]) if False else df["count"],
        }
    )


@case("odds")
def look_rolled(df):
    r = df["size"].rolling(3, min_periods=2)
    return pd.DataFrame(
        {
            "a": r.sum(),
            "b": r.std(),
            "c": r.median(),
            "d": df["count"].rolling(2, center=True).mean(),
            "e": df["count"].rolling(4, 1).count(),
        }
    )


@case("odds")
def look_rolled_group(df):
    df["a"] = df.groupby("kind")["count"].transform(lambda s: s.rolling(2, min_periods=1).mean())
    df["b"] = df.groupby("kind")["count"].transform(lambda s: s.expanding().max())
    df["c"] = df.groupby("kind")["count"].transform(lambda s: s.rolling(2).count())
    return df[["a", "b", "c"]]


@case("odds")
def look_rolled_shift(df):
    return pd.DataFrame({"a": df["count"].shift(1).rolling(2).mean(), "b": df["count"].rolling(2).mean().shift(-1)})
