"""Ways in which people write the code around pandas: helpers, classes, loops, aliases, branches on columns."""

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
    df[["loan", "income"]] = (
        df[["income", "loan"]].values if False else df[["income", "loan"]].set_axis(["loan", "income"], axis=1)
    )
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
        .pipe((scale, "frame"), "rate", 100)[["loan", "income", "rate"]]
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
def code_list_of_conditions(df):
    checks = [df["late"] > 0, df["rate"] > 15, df["loan"] > 9000]
    df["any"] = np.logical_or.reduce(checks)
    df["all"] = np.logical_and.reduce(checks)
    return df[["any", "all"]]


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
    for new, old in zip(["l", "i"], ["loan", "income"]):
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


@case("loans")
def code_map_series(df):
    table = pd.Series({"A": 1.5, "B": 2.5, "C": np.nan})
    return df["grade"].map(table).to_frame("m")


@case("loans")
def code_map_dict_get(df):
    table = {"A": 1, "B": 2}
    return df["grade"].map(lambda g: table.get(g, 0)).to_frame("m")


@case("loans")
def code_map_na_ignore(df):
    return df["grade"].map(lambda g: g + "!", na_action="ignore").to_frame("m")


@case("loans")
def code_map_int_dict_partial(df):
    return df["term"].map({12: "short", 24: "short", 36: "long"}).to_frame("m")


@case("loans")
def code_map_bool(df):
    return pd.DataFrame({"a": df["employed"].map({True: "yes", False: "no"}), "b": df["employed"].map({True: 1})})


@case("loans")
def code_map_float_keys(df):
    return df["rate"].map({12.0: "twelve", 5: "five", np.nan: "none"}).to_frame("m")


@case("loans")
def code_replace_mixed(df):
    return pd.DataFrame(
        {
            "a": df["late"].replace({0: 100, 1: 200}),
            "b": df["late"].replace([0, 1, 2], 9),
            "c": df["late"].replace([0, 1], [1, 0]),
            "d": df["grade"].replace({"A": "top", "": "none"}),
            "e": df["rate"].replace(12.0, np.nan),
        }
    )


@case("loans")
def code_replace_frame(df):
    return df[["late", "term"]].replace({0: -1}).replace({"term": {12: 1}})


@case("loans")
def code_apply_rows_branches(df):
    def segment(row):
        if row["score"] < 0:
            return "bad"
        if row["late"] > 2 or row["rate"] > 20:
            return "risky"
        elif row.employed and row["late"] == 0:
            return "safe"
        return "normal"

    df["segment"] = df.apply(segment, axis=1)
    return df[["segment"]]


@case("loans")
def code_apply_rows_numbers(df):
    def fee(row):
        base = row["loan"] * 0.01
        if row["term"] >= 36:
            base = base + 50
        if pd.isna(row["income"]):
            return base * 2
        return max(base, 10)

    return df.apply(fee, axis=1).to_frame("fee")


@case("loans")
def code_apply_elements(df):
    def band(x):
        if x != x:
            return "none"
        return "low" if x < 10 else "high" if x > 20 else "mid"

    return df["rate"].apply(band).to_frame("band")


@case("loans")
def code_apply_with_args(df):
    def scale(x, by, plus=0):
        return x / by + plus

    return pd.DataFrame({"a": df["rate"].apply(scale, args=(10,)), "b": df["rate"].apply(scale, by=2, plus=1)})


@case("loans")
def code_apply_series_result(df):
    return df[["loan", "rate"]].apply(lambda s: (s - s.mean()) / s.std())


@case("loans")
def code_apply_int_result_mixed(df):
    return df["late"].apply(lambda n: 0 if n <= 0 else n if n < 3 else 3).to_frame("n")


@case("loans")
def code_lambda_chain(df):
    clean = lambda s: s.fillna(s.median())  # noqa: E731
    norm = lambda s: (s - s.min()) / (s.max() - s.min())  # noqa: E731
    return pd.DataFrame({"r": norm(clean(df["rate"]))})


@case("loans")
def code_closure_counter(df):
    counter = {"n": 0}

    def numbered(s):
        counter["n"] += 1
        return s * counter["n"]

    return pd.DataFrame({"a": numbered(df["late"]), "b": numbered(df["late"])})


@case("loans")
def code_generator_concat(df):
    return pd.concat((df[c].rename(c.upper()) for c in ["loan", "rate"]), axis=1)


@case("loans")
def code_concat_keys(df):
    return pd.concat([df["loan"], df["rate"] / 100], axis=1, keys=["l", "r"])


@case("loans")
def code_concat_filtered_axis1(df):
    a = df.loc[df["employed"], ["loan"]]
    return pd.concat([df[["id"]], a], axis=1)


@case("loans")
def code_concat_rows(df):
    a = df.loc[df["employed"], ["id", "loan"]].assign(src="a")
    b = df.loc[~df["employed"], ["id", "loan"]].assign(src="b")
    return pd.concat([a, b], ignore_index=True)


@case("loans")
def code_frame_join(df):
    extra = pd.DataFrame({"double": df["loan"] * 2, "half": df["loan"] / 2})
    return df[["id"]].join(extra)


@case("loans")
def code_constant_column_kinds(df):
    df["one"] = 1
    df["half"] = 0.5
    df["yes"] = True
    df["text"] = "t"
    df["when"] = pd.Timestamp("2024-01-01")
    return df[["one", "half", "yes", "text", "when"]]


@case("loans")
def code_only_constants(df):
    return df[["id"]].assign(bias=1.0).drop(columns="id")


@case("loans")
def code_insert_front(df):
    df.insert(0, "bias", 1)
    df.insert(1, "late2", df["late"] * 2)
    df.insert(len(df.columns), "last", df["rate"])
    return df.iloc[:, [0, 1, -1]]


@case("loans")
def code_set_columns_list(df):
    out = df[["late", "rate"]]
    out.columns = ["a", "b"]
    out.columns = [c.upper() for c in out.columns]
    return out


@case("loans")
def code_rename_function(df):
    return df[["late", "rate"]].rename(columns=str.upper).rename(columns=lambda c: c[:2])


@case("loans")
def code_ternary_on_dtype(df):
    return pd.DataFrame(
        {c: (df[c].fillna("?") if df[c].dtype == "str" else df[c].fillna(0)) for c in ["grade", "rate", "purpose"]}
    )


@case("loans")
def code_walrus_and_star(df):
    num = ["late", "rate"]
    if (n := len(num)) > 1:
        df["m"] = df[num].sum(axis=1) / n
    return df[[*num, "m"]]


@case("loans")
def code_nested_functions(df):
    def outer(frame):
        def inner(col):
            return frame[col].fillna(0) + offset

        offset = 3
        return inner("rate") + inner("loan")

    return outer(df).to_frame("x")


@case("loans")
def code_early_return(df):
    if df.shape[1] < 3:
        return df
    return df[["rate"]].mul(2)


@case("loans")
def code_assert_columns(df):
    assert set(["loan", "income"]).issubset(df.columns), "columns are missing"
    assert {"loan"} <= set(df.columns)
    return df[["loan", "income"]].fillna(0)


@case("loans")
def code_while_loop(df):
    s = df["late"]
    n = 0
    while n < 3:
        s = s + n
        n += 1
    return s.to_frame("s")


@case("loans")
def code_where_with_alignment(df):
    late = df[df["late"] > 0]["rate"]
    df["late_rate"] = late
    df["other"] = df["rate"].where(df["late"] > 0) - late
    return df[["late_rate", "other"]]


@case("loans")
def code_sum_of_filtered(df):
    df["x"] = df["loan"] + df.loc[df["employed"], "rate"]
    return df[["x"]]


@case("loans")
def code_loc_several(df):
    df.loc[df["late"] > 1, ["rate", "loan"]] = 0.0
    df.loc[df["grade"].isna() & df["employed"], "grade"] = "missing"
    df.loc[:, "term"] = df["term"] * 2
    return df[["rate", "loan", "grade", "term"]]


@case("loans")
def code_loc_series_value(df):
    df.loc[df["age"].isna(), "age"] = df["rate"] * 2
    df.loc[df["income"] < 0, "income"] = df["income"].abs()
    return df[["age", "income"]]


@case("loans")
def code_loc_new_column(df):
    df.loc[df["late"] == 0, "status"] = "good"
    df.loc[df["late"] > 0, "status"] = "bad"
    return df[["status"]]


@case("loans")
def code_loc_filtered_value(df):
    m = df["late"] > 0
    df.loc[m, "rate"] = df.loc[m, "rate"] * 10
    return df[["rate"]]


@case("loans")
def code_iloc_columns(df):
    return df.iloc[:, 2:5].iloc[:10]


@case("loans")
def code_sort_reset_number(df):
    out = df.sort_values("loan", kind="stable").reset_index(drop=True)
    out["n"] = out.index + 1
    return out[["id", "n"]]


@case("loans")
def code_sorted_values_assigned(df):
    df["sorted"] = df["loan"].sort_values(kind="stable").values
    return df[["loan", "sorted"]]


@case("loans")
def code_sorted_series_assigned(df):
    df["back"] = df["loan"].sort_values(kind="stable")
    return df[["loan", "back"]]


@case("loans")
def code_np_sort_assigned(df):
    df["sorted"] = np.sort(df["loan"])
    return df[["sorted"]]


@case("loans")
def code_values_arithmetic(df):
    s = df.sort_values("loan", kind="stable")
    df["x"] = s["rate"].to_numpy() + 1
    return df[["x"]]


@case("loans")
def code_reversed_values(df):
    df["rev"] = df["late"].values[::-1]
    df["same"] = df["late"][::-1]
    return df[["rev", "same"]]


@case("loans")
def code_values_of_filtered_sum(df):
    df["x"] = df["late"].values * 2 + df["term"]
    return df[["x"]]


@case("loans")
def code_reset_index_shifts_alignment(df):
    part = df[df["employed"]].reset_index(drop=True)
    df["first"] = part["loan"]
    return df[["first"]]


@case("loans")
def code_head_alignment(df):
    df["h"] = df["loan"].head(3)
    df["t"] = df["loan"].tail(2)
    return df[["h", "t"]]


@case("loans")
def code_where_of_sorted(df):
    s = df.sort_values("rate", kind="stable")
    s["flag"] = np.where(s["late"] > 0, "late", "fine")
    s["n"] = s["term"].values * 2 + np.where(s["late"] > 1, 1, 0)
    return s[["id", "flag", "n"]]


@case("loans")
def code_where_of_filtered(df):
    s = df[df["late"] > 0].copy()
    s["k"] = np.select([s["late"] > 2, s["late"] > 1], [2, 1], 0) + s["term"]
    s = s[(np.where(s["k"] > 30, 1, 0)) == 1]
    s.loc[s["rate"].to_numpy() > 10, "k"] = 0
    return s[["id", "k"]]


@case("loans")
def code_values_renumbered(df):
    s = df[df["late"] > 0].reset_index(drop=True)
    s["v"] = s["rate"].values + s["late"]
    t = s[["late"]].reset_index(drop=True)
    t["w"] = s["v"].values
    return t


@case("loans")
def code_values_as_mask(df):
    return df[df["employed"].values & (df["late"] > 0).to_numpy()][["id"]]


@case("loans")
def code_sorted_twice_and_back(df):
    s = df.sort_values("rate", kind="stable").sort_values("late", kind="stable")
    s["n"] = np.arange(len(s)) if False else s["late"].cumsum()
    return s.sort_index()[["id", "n"]]


@case("loans")
def code_filtered_sorted_back(df):
    s = df[df["late"] > 0].sort_values("rate", kind="stable")
    return s.sort_index(ascending=False)[["id"]]


tax = pd.DataFrame({"grade": list("ABC"), "tax": [1.0, 2.0, 3.0]})


@case("loans")
def code_merge_numbers_rows_anew(df):
    m = df[df["employed"]].merge(tax, on="grade", how="left")
    m["i"] = m.index
    return m[["id", "tax", "i"]]


@case("loans")
def code_merge_drops_the_index(df):
    return df[["id", "grade"]].set_index("id").merge(tax, on="grade", how="left")


@case("loans")
def code_array_in_group(df):
    df["d"] = df.groupby("term")["rate"].transform(lambda s: s - s.values.max() if False else s - s.to_numpy() * 0)
    return df[["d"]]
