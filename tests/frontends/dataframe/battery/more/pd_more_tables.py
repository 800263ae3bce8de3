"""Merges, bins, dummies, queries and statistics in forms less often written."""

import numpy as np
import pandas as pd
from frame_cases import case

grades = pd.DataFrame({"g": ["A", "B", "C"], "rate": [1.0, 2.0, 3.0], "id": [7, 8, 9]})


@case("loans")
def sets_merge_suffixes(df):
    return (
        df[["id", "grade", "rate"]]
        .merge(grades, left_on="grade", right_on="g", how="left", suffixes=("", "_table"))
        .drop(columns=["g"])
    )


@case("loans")
def sets_merge_inner(df):
    return pd.merge(df[["late", "grade"]], grades, left_on="grade", right_on="g")


@case("loans")
def sets_merge_int_key(df):
    table = pd.DataFrame({"term": [12, 24, 36], "label": ["one", "two", "three"], "w": [1, 2, 3]})
    return df[["id", "term"]].merge(table, how="left", on=["term"])


@case("loans")
def sets_merge_nan_key(df):
    table = pd.DataFrame({"grade": ["A", None, "B"], "v": [1, 2, 3]})
    return df[["grade"]].merge(table, on="grade", how="left")


@case("loans")
def sets_merge_float_key(df):
    table = pd.DataFrame({"age": [25.0, 40.0, np.nan], "v": [1.5, 2.5, 3.5]})
    return df[["age"]].merge(table, on="age", how="left")


@case("loans")
def sets_merge_int_with_float_key(df):
    table = pd.DataFrame({"late": [0.0, 1.0, 2.0], "v": [1.5, 2.5, 3.5]})
    return df[["id", "late"]].merge(table, on="late", how="left")


@case("loans")
def sets_merge_two_keys(df):
    table = pd.DataFrame({"grade": ["A", "A", "B"], "term": [12, 24, 12], "v": [1.0, 2.0, 3.0]})
    return df[["grade", "term"]].merge(table, on=["grade", "term"], how="left").fillna({"v": 0})


@case("loans")
def sets_merge_duplicate_keys(df):
    table = pd.DataFrame({"grade": ["A", "A", "B"], "v": [1.0, 2.0, 3.0]})
    return df[["id", "grade"]].merge(table, on="grade", how="left")


@case("loans")
def sets_join_on_index(df):
    return df[["id", "grade"]].join(grades.set_index("g")[["rate"]], on="grade")


@case("loans")
def sets_merge_indicator(df):
    out = df[["grade"]].merge(grades[["g"]], left_on="grade", right_on="g", how="left", indicator=True)
    return out["_merge"].eq("both").to_frame("found")


@case("loans")
def sets_lookup_by_map_set_index(df):
    return df["grade"].map(grades.set_index("g")["rate"]).fillna(0).to_frame("r")


@case("loans")
def sets_cut_forms(df):
    return pd.DataFrame(
        {
            "a": pd.cut(df["age"], [0, 18, 65, np.inf], labels=["minor", "adult", "senior"]).astype(str),
            "b": pd.cut(df["age"], [0, 18, 65, 120], right=False, labels=False),
            "c": pd.cut(df["age"], bins=[0, 18, 65, 120], include_lowest=True, labels=["a", "b", "c"]),
            "d": pd.cut(df["late"], [-1, 0, 2, 100], labels=[0, 1, 2]),
            "e": pd.cut(df["rate"], [0, 10, 20]),
        }
    )


@case("loans")
def sets_cut_left_infinite(df):
    return pd.cut(df["income"], [-np.inf, 20000, 50000, np.inf], labels=["low", "mid", "high"]).to_frame("b")


@case("loans")
def sets_cut_same_labels(df):
    return pd.cut(df["rate"], [0, 5, 10, 30], labels=["x", "y", "x"], ordered=False).to_frame("b")


@case("loans")
def sets_cut_codes(df):
    return pd.cut(df["rate"], [0, 5, 10, 30]).cat.codes.to_frame("c")


@case("loans")
def sets_cut_int_dtype(df):
    df["g"] = pd.cut(df["score"], bins=[300, 580, 670, 850], labels=[1, 2, 3], include_lowest=True).astype("float")
    return df[["g"]]


@case("loans")
def sets_cut_dates(df):
    edges = pd.to_datetime(["2018-01-01", "2021-01-01", "2023-01-01", "2026-01-01"])
    return pd.cut(df["applied"], edges, labels=["old", "mid", "new"]).to_frame("p")


@case("loans")
def sets_digitize(df):
    return pd.DataFrame({"d": np.digitize(df["rate"], [5, 10, 15]), "r": np.digitize(df["late"], [0, 2], right=True)})


@case("loans")
def sets_searchsorted(df):
    return pd.DataFrame(
        {
            "d": np.searchsorted([5, 10, 15], df["late"]),
            "e": np.searchsorted(np.array([0, 2]), df["late"], side="right"),
        }
    )


@case("loans")
def sets_dummies_category(df):
    return pd.get_dummies(df["region"], prefix="r", dtype=int)


@case("loans")
def sets_dummies_drop_first(df):
    return pd.get_dummies(df[["late", "region"]], columns=["region"], drop_first=True)


@case("loans")
def sets_dummies_na(df):
    return pd.get_dummies(df["region"], dummy_na=True, prefix="r", prefix_sep=".", dtype=float)


@case("customers")
def sets_dummies_prefix_list(df):
    return pd.get_dummies(
        df[["visits", "country", "plan"]], columns=["country", "plan"], prefix=["c", "p"], dtype="int8"
    )


@case("customers")
def sets_dummies_prefix_dict(df):
    return pd.get_dummies(df[["country", "plan"]], prefix={"country": "c", "plan": "p"})


@case("customers")
def sets_dummies_of_fixed_categories(df):
    city = pd.Categorical(df["city"], categories=["Paris", "Oslo", "Berlin"])
    return pd.get_dummies(city, prefix="city", dtype=int)


@case("customers")
def sets_dummies_reindexed(df):
    kind = pd.CategoricalDtype(["Paris", "Oslo"])
    out = pd.get_dummies(df["city"].astype(kind)).reindex(columns=["Oslo", "Paris", "Rome"], fill_value=0)
    return out.astype(int)


@case("customers")
def sets_manual_dummies(df):
    for city in ["Paris", "Oslo"]:
        df[f"is_{city.lower()}"] = (df["city"] == city).astype("int8")
    return df[["is_paris", "is_oslo"]]


@case("customers")
def sets_query_forms(df):
    cities = ["Paris", "Oslo"]  # noqa: F841
    low, high = 5, 40  # noqa: F841
    return df.query("city in @cities and @low <= visits < @high and not churned")[["city", "visits"]]


@case("customers")
def sets_query_not_in(df):
    return df.query('city not in ["Paris", "Oslo"] or spend > 100')[["city", "spend"]]


@case("customers")
def sets_query_equals_list(df):
    return df.query("visits == [0, 5, 10] | tickets.notna()")[["visits"]]


@case("customers")
def sets_query_in_place(df):
    df.query("visits > 3", inplace=True)
    return df[["visits"]]


@case("customers")
def sets_query_arithmetic(df):
    return df.query("spend / (visits + 1) > 2 & ~churned")[["spend"]]


@case("customers")
def sets_eval_assign(df):
    df = df.eval("per = spend / visits\ntwice = per * 2")
    return df[["per", "twice"]]


@case("customers")
def sets_eval_in_place(df):
    k = 3  # noqa: F841
    df.eval("a = visits * @k + 1", inplace=True)
    return df[["a"]]


@case("customers")
def sets_eval_functions(df):
    return df.eval("x = sqrt(visits) + abs(spend)")[["x"]]


@case("customers")
def sets_select_conditions(df):
    conditions = [df["spend"].isna(), df["spend"] > 200, df["visits"] < 5]
    df["k"] = np.select(conditions, [0, 1, 2], default=-1)
    df["s"] = np.select(conditions, ["none", "rich", "rare"], "other")
    df["f"] = np.select(conditions, [df["visits"], df["spend"], 0.5], np.nan)
    return df[["k", "s", "f"]]


@case("customers")
def sets_case_when(df):
    df["c"] = df["city"].case_when([(df["visits"] > 40, "often"), (df["visits"] == 0, "never")])
    return df[["c"]]


@case("customers")
def sets_combine_mask(df):
    df["m"] = df["spend"].combine_first(df["visits"])
    df["n"] = df["spend"].fillna(df["visits"] * 2.5)
    df["mn"] = np.minimum(df["spend"], df["visits"])
    df["fm"] = np.fmax(df["spend"], df["visits"])
    return df[["m", "n", "mn", "fm"]]


@case("customers")
def sets_row_stats(df):
    part = df[["spend", "visits"]]
    return pd.DataFrame(
        {
            "s": part.sum(axis=1),
            "m": part.mean(axis=1),
            "x": part.max(axis="columns"),
            "n": part.isna().sum(axis=1),
            "c": part.count(axis=1),
            "sk": part.sum(axis=1, skipna=False),
            "mc": part.sum(axis=1, min_count=2),
        }
    )


@case("customers")
def sets_any_all_rows(df):
    flags = pd.DataFrame({"a": df["visits"] > 3, "b": df["churned"], "c": df["spend"].isna()})
    return pd.DataFrame({"any": flags.any(axis=1), "all": flags.all(axis=1), "n": flags.sum(axis=1)})


@case("customers")
def sets_idxmax_rows(df):
    part = df[["visits", "customer_id"]]
    return part.idxmax(axis=1).to_frame("top")


@case("customers")
def sets_stats_of_filtered(df):
    mean = df.loc[~df["churned"], "visits"].mean()
    df["above"] = df["visits"] > mean
    df["q"] = df["visits"].quantile(0.9)
    df["n"] = (df["visits"] > 5).sum()
    return df[["above", "q", "n"]]


@case("customers")
def sets_winsorize(df):
    low, high = df["visits"].quantile([0.05, 0.95])
    return df["visits"].clip(low, high).to_frame("v")


@case("customers")
def sets_iqr(df):
    q1, q3 = df["visits"].quantile(0.25), df["visits"].quantile(0.75)
    iqr = q3 - q1
    return df[(df["visits"] >= q1 - 1.5 * iqr) & (df["visits"] <= q3 + 1.5 * iqr)][["visits"]]


@case("customers", raises=("none",))
def sets_mode_fill(df):
    df["city"] = df["city"].fillna(df["city"].mode()[0])
    return df[["city"]]


@case("customers")
def sets_empty_result(df):
    return df[df["visits"] > 10**15][["visits", "city", "spend"]]


@case("customers")
def sets_empty_group(df):
    return df[df["visits"] > 10**15].groupby("city")["spend"].mean().reset_index()


@case("customers")
def sets_nunique_transform(df):
    df["n"] = df.groupby("city")["country"].transform("nunique")
    return df[["n"]]


@case("customers")
def sets_explicit_masks_chained(df):
    a = df["visits"] > 5
    b = df["spend"].gt(50) & a
    c = ~b | df["churned"]
    df.loc[a & ~c, "visits"] = 0
    return df[b ^ c][["visits"]]


@case("customers")
def sets_between_forms(df):
    v = df["visits"]
    return pd.DataFrame({k: v.between(5, 20, inclusive=k) for k in ("both", "neither", "left", "right")})


@case("customers")
def sets_isin_forms(df):
    return pd.DataFrame(
        {
            "a": df["visits"].isin(range(5)),
            "b": df["city"].isin({"Paris", None}),
            "c": df["spend"].isin([np.nan, 0]),
            "d": ~df["city"].isin(("Oslo",)),
            "e": df["visits"].isin(pd.Series([1, 2])),
        }
    )


@case("customers")
def sets_frame_isin_where(df):
    part = df[["visits", "customer_id"]]
    return part.where(part > 3, -1)


@case("customers")
def sets_frame_mask_frame(df):
    part = df[["visits", "spend"]]
    return part.mask(part.isna() | (part < 0), 0)


@case("customers")
def sets_applymap(df):
    return df[["visits", "customer_id"]].map(lambda x: x // 2 if x > 0 else 0)
