"""Groups, windows, merges, bins and dummies in forms less often written."""

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
def sets_cumulative_nan(df):
    h = df["humidity"]
    return pd.DataFrame(
        {
            "a": h.cumsum(),
            "b": h.cumprod(),
            "c": h.cummin(),
            "d": h.cummax(),
            "e": df["count"].cummin(),
            "f": df["ok"].cumsum(),
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
    cities = ["Paris", "Oslo"]
    low, high = 5, 40
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
def sets_query_index(df):
    return df.query("index > 2")[["visits"]]


@case("customers")
def sets_eval_assign(df):
    df = df.eval("per = spend / visits\ntwice = per * 2")
    return df[["per", "twice"]]


@case("customers")
def sets_eval_in_place(df):
    k = 3
    df.eval("a = visits * @k + 1", inplace=True)
    return df[["a"]]


@case("customers")
def sets_eval_functions(df):
    return df.eval("x = sqrt(visits) + abs(spend)")[["x"]]


@case("customers")
def sets_pd_eval(df):
    df["x"] = pd.eval("df.visits + df.spend * 2")
    return df[["x"]]


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


@case("customers")
def sets_mode_fill(df):
    df["city"] = df["city"].fillna(df["city"].mode()[0])
    return df[["city"]]


@case("customers")
def sets_factorize(df):
    codes, _ = pd.factorize(df["city"])
    df["code"] = codes
    return df[["code"]]


@case("customers")
def sets_factorize_sorted(df):
    df["code"] = df["city"].factorize(sort=True)[0]
    return df[["code"]]


@case("customers")
def sets_astype_category_codes(df):
    df["code"] = df["city"].astype("category").cat.codes
    return df[["code"]]


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
    return df[["visits", "customer_id"]].map(lambda x: x * 2 if x > 0 else 0)
