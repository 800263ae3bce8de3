"""Ways in which people write the code around pandas: aliases, helpers, loops, branches on columns."""

import functools
from collections import defaultdict

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def code_alias_changes_both(df):
    other = df
    other["x"] = other["late"] + 1
    return df[["late", "x"]]


@case("loans")
def code_copy_does_not(df):
    other = df.copy()
    other["late"] = 0
    df["diff"] = df["late"] - other["late"]
    return df[["late", "diff"]]


@case("loans")
def code_shallow_copy(df):
    other = df.copy(deep=False)
    other["late"] = 7
    other["new"] = 1
    return pd.DataFrame({"a": df["late"], "b": other["late"], "n": len(df.columns)})


@case("loans")
def code_series_changed_in_place(df):
    s = df["income"]
    s.fillna(0, inplace=True)
    df["filled"] = s
    return df[["income", "filled"]]


@case("loans")
def code_chained_inplace_does_nothing(df):
    df["income"].fillna(0, inplace=True)
    return df[["income"]]


@case("loans")
def code_series_alias(df):
    s = df["income"].copy()
    t = s
    t[t < 0] = 0
    return pd.DataFrame({"s": s, "t": t, "orig": df["income"]})


@case("loans")
def code_subset_is_a_copy(df):
    part = df[["late", "rate"]]
    part["late"] = part["late"] * 100
    return pd.concat([df[["late"]], part.rename(columns={"late": "late100"})], axis=1)


@case("loans")
def code_filtered_is_a_copy(df):
    part = df[df["employed"]]
    part["rate"] = 0.0
    return df[["rate"]]


@case("loans")
def code_filtered_then_changed(df):
    part = df[df["employed"]].copy()
    part["rate"] = part["rate"] * 2
    part.loc[part["late"] > 1, "rate"] = -1
    return part[["id", "rate"]]


@case("loans")
def code_column_reassigned_before_use(df):
    df["loan"] = df["loan"] / 1000
    df["income"] = df["income"] / 1000
    df["ratio"] = df["loan"] / df["income"].replace(0, np.nan)
    df["loan"] = df["loan"].round(2)
    return df[["loan", "ratio"]]


@case("loans")
def code_series_taken_before_change(df):
    before = df["late"]
    df["late"] = df["late"] + 1
    df["change"] = df["late"] - before
    return df[["late", "change"]]


@case("loans")
def code_swap(df):
    df["loan"], df["income"] = df["income"], df["loan"]
    return df[["loan", "income"]]


@case("loans")
def code_swap_by_list(df):
    df[["loan", "income"]] = df[["income", "loan"]].set_axis(["loan", "income"], axis=1)
    return df[["loan", "income"]]


def _adds_in_place(frame, name, value):
    frame[name] = value


@case("loans")
def code_helper_changes_its_frame(df):
    _adds_in_place(df, "one", 1)
    _adds_in_place(df, "two", df["one"] + df["late"])
    return df[["one", "two"]]


@case("loans")
def code_helper_gets_copy(df):
    _adds_in_place(df.copy(), "late", 0)
    return df[["late"]]


@case("loans")
def code_drop_in_place(df):
    df.drop(["grade", "purpose"], axis=1, inplace=True)
    df.drop(columns="employer", inplace=True)
    df.rename(columns={"id": "key"}, inplace=True)
    return df[["key", "late"]] if "grade" not in df.columns else df


@case("loans")
def code_del_and_pop(df):
    del df["grade"]
    late = df.pop("late")
    df["late2"] = late**2
    return df[[c for c in df.columns if c in ("late", "late2", "grade", "rate")]]


@case("loans")
def code_loop_over_columns(df):
    for col in ["loan", "income", "rate"]:
        df[col + "_missing"] = df[col].isna().astype(int)
        df[col] = df[col].fillna(-1)
    return df[[c for c in df if c.startswith(("loan", "income", "rate"))]]


@case("loans")
def code_loop_over_number_columns(df):
    out = pd.DataFrame()
    for col in df.select_dtypes(include="number").columns:
        if df[col].dtype == "float64":
            out[col] = df[col] * 2
    return out


@case("loans")
def code_loop_over_dtypes(df):
    names = [name for name, kind in df.dtypes.items() if kind == "int64"]
    return df[names].clip(0, 100)


@case("loans")
def code_is_numeric_dtype(df):
    for c in df.columns:
        if pd.api.types.is_numeric_dtype(df[c]) and not pd.api.types.is_bool_dtype(df[c]):
            df[c + "_pos"] = df[c] > 0
    return df[["age_pos", "late_pos", "score_pos"]]


@case("loans")
def code_if_column_in_frame(df):
    if "bonus" in df.columns:
        df["pay"] = df["income"] + df["bonus"]
    elif "income" in df:
        df["pay"] = df["income"]
    return df[["pay"]]


@case("loans")
def code_try_key_error(df):
    try:
        df["b"] = df["bonus"]
    except KeyError:
        df["b"] = 0
    return df[["b"]]


@case("loans")
def code_try_attribute_error(df):
    try:
        extra = df.bonus
    except AttributeError:
        extra = df.late
    return extra.to_frame("extra")


@case("loans")
def code_get_with_default(df):
    df["x"] = df.get("bonus", 0) + df.get("late", 0)
    return df[["x"]]


@case("loans")
def code_setdiff_columns(df):
    keep = df.columns.difference(
        ["id", "applied", "region", "dependents", "verified", "employer", "used", "grade", "purpose"]
    )
    return df[keep]


@case("loans")
def code_columns_tolist(df):
    cols = df.columns.tolist()
    cols.remove("id")
    cols = cols[:3] + cols[-1:]
    return df[cols]


@case("loans")
def code_dict_comprehension(df):
    return pd.DataFrame({f"{c}_log": np.log1p(df[c].clip(lower=0)) for c in ("loan", "income")})


@case("loans")
def code_assign_dict(df):
    return df.assign(**{f"{c}_sq": df[c] ** 2 for c in ["late", "rate"]})[["late_sq", "rate_sq"]]


@case("loans")
def code_assign_late_binding(df):
    made = {}
    for power in (1, 2, 3):
        made[f"p{power}"] = lambda d, power=power: d["rate"] ** power
    return df.assign(**made)[["p1", "p2", "p3"]]


@case("loans")
def code_pipe_chain(df):
    def scale(frame, column, by=1):
        return frame.assign(**{column: frame[column] / by})

    return (
        df.pipe(scale, "loan", by=1000)
        .pipe(scale, column="income")
        .pipe((scale, "frame"), column="rate", by=100)[["loan", "income", "rate"]]
    )


def _scaled(series, low, high):
    return (series - low) / (high - low)


percent = functools.partial(_scaled, low=0, high=100)


@case("loans")
def code_partial(df):
    df["r"] = percent(df["rate"])
    return df[["r"]]


class Capper:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, series):
        return series.clip(upper=self.limit)

    def twice(self, series):
        return self(series) * 2


capper = Capper(50)


@case("loans")
def code_callable_object(df):
    return pd.DataFrame({"a": capper(df["age"]), "b": capper.twice(df["rate"])})


class Features:
    names = ("loan", "income")

    @staticmethod
    def ratio(a, b):
        return a / b.where(b > 0)

    @classmethod
    def make(cls, df):
        df["ratio"] = cls.ratio(df[cls.names[0]], df[cls.names[1]])
        return df[["ratio"]]


@case("loans")
def code_class_methods(df):
    return Features.make(df)


@case("loans")
def code_recursion(df):
    def power(s, n):
        return s if n == 1 else s * power(s, n - 1)

    return power(df["rate"], 3).to_frame("cube")


@case("loans")
def code_reduce(df):
    total = functools.reduce(lambda a, b: a + b, [df[c].fillna(0) for c in ("loan", "income", "rate")])
    return total.rename("total").to_frame()


@case("loans")
def code_sum_builtin(df):
    df["flags"] = sum((df[c] > 0).astype(int) for c in ["late", "rate", "loan"])
    return df[["flags"]]


@case("loans")
def code_mask_accumulated(df):
    mask = pd.Series(True, index=df.index)
    mask &= df["late"] > 0
    mask &= df["rate"] < 20
    return df[mask][["id"]]


@case("loans")
def code_augmented(df):
    df["late"] += 1
    df["late"] *= df["term"]
    df["rate"] /= 100
    df["loan"] -= df["loan"].min()
    df["id"] //= 10
    return df[["late", "rate", "loan", "id"]]


@case("loans")
def code_series_augmented(df):
    s = df["late"]
    s += 10
    return pd.DataFrame({"late": df["late"], "s": s})


@case("loans")
def code_attribute_assign(df):
    df.late = df.late * 2
    df.rate = df.rate.fillna(0)
    return df[["late", "rate"]]


@case("loans")
def code_unpacked_columns(df):
    a, b = (df[c] for c in ["loan", "income"])
    return pd.DataFrame({"x": a - b})


@case("loans")
def code_zip_names(df):
    for new, old in zip(["l", "i"], ["loan", "income"]):  # noqa: B905
        df[new] = df[old].round()
    return df[["l", "i"]]


@case("loans")
def code_map_defaultdict(df):
    points = defaultdict(lambda: -1, {"A": 3, "B": 2})
    return df["grade"].map(points).to_frame("points")


class Fallback(dict):
    def __missing__(self, key):
        return "other"


@case("loans")
def code_map_missing_dict(df):
    return df["purpose"].map(Fallback(car="c", home="h")).to_frame("p")
