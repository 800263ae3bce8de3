"""Tables, functions of rows, and rows at other places."""

import numpy as np
import pandas as pd
from frame_cases import case


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
    assert set(["loan", "income"]).issubset(df.columns), "columns are missing"  # noqa: C405
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


@case("loans", raises=("none",))
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
def code_sorted_series_assigned(df):
    df["back"] = df["loan"].sort_values(kind="stable")
    return df[["loan", "back"]]


@case("loans")
def code_values_of_filtered_sum(df):
    df["x"] = df["late"].values * 2 + df["term"]
    return df[["x"]]


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
    s["n"] = s["late"].cumsum()
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
    df["d"] = df.groupby("term")["rate"].transform(lambda s: s - s.to_numpy() * 0)
    return df[["d"]]
