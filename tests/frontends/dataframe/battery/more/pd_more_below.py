"""Rows below rows, ranks of frames, joins with groups, products so far, and statistics of what may be NA."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def below_two_filters(df):
    return pd.concat([df[df["loan"] > 10000], df[df["loan"] <= 10000]])[["id", "loan", "term"]]


@case("loans")
def below_and_back_in_order(df):
    late = df[df["late"] > 0].assign(group="late")
    rest = df[df["late"] <= 0].assign(group="rest")
    return pd.concat([late, rest]).sort_index()[["id", "group"]]


@case("orders")
def below_itself(df):
    part = df[["order_id", "channel", "price"]]
    return pd.concat([part, part.assign(price=part["price"] * 2)], ignore_index=True)


@case("orders")
def below_rows_of_its_own(df):
    extra = pd.DataFrame({"channel": ["none", None], "qty": [0, -1], "price": [0.0, np.nan]})
    return pd.concat([df[["channel", "qty", "price"]], extra], ignore_index=True)


@case("orders")
def below_with_other_columns(df):
    return pd.concat([df[["order_id", "price"]], df[["order_id", "discount"]]], ignore_index=True)


@case("orders")
def below_what_all_have(df):
    return pd.concat([df[["order_id", "price"]], df[["order_id", "discount"]]], ignore_index=True, join="inner")


@case("orders")
def below_times(df):
    return pd.concat([df["ordered"], df["shipped"]], ignore_index=True).rename("when")


@case("orders")
def below_of_numbers(df):
    return pd.concat([df["qty"], df["price"]], ignore_index=True).rename("number")


@case("sensors")
def below_categories(df):
    return pd.concat([df.loc[df["ok"], ["mode", "count"]], df.loc[~df["ok"], ["mode", "count"]]], ignore_index=True)


@case("odds")
def below_nullable(df):
    part = df[["whole", "part", "maybe"]]
    return pd.concat([part, part.assign(whole=part["whole"] + 1)], ignore_index=True)


@case("orders")
def below_and_grouped(df):
    both = pd.concat([df[["channel", "qty"]], df[["channel", "qty"]]], ignore_index=True)
    return both.groupby("channel")["qty"].sum().reset_index()


@case("orders")
def below_beside_the_frame(df):
    both = pd.concat([df[df["qty"] > 5], df[df["qty"] <= 5]])
    return both.assign(share=both["price"] / df["price"].sum())[["order_id", "share"]]


@case("sensors")
def ranks_of_frame(df):
    return df[["temp", "humidity", "count"]].rank()


@case("sensors")
def ranks_of_frame_descending(df):
    return df[["temp", "count"]].rank(ascending=False, method="min", pct=True)


@case("orders")
def joined_with_mean_of_group(df):
    means = df.groupby("channel")["price"].mean().rename("usual")
    return df.join(means, on="channel")[["order_id", "usual"]]


@case("orders")
def joined_with_several_of_group(df):
    found = df.groupby("customer_id").agg(most=("qty", "max"), paid=("price", "sum"))
    return df[["order_id", "customer_id"]].join(found, on="customer_id")


@case("orders")
def joined_with_suffix(df):
    return df[["channel", "qty"]].join(df.groupby("channel")[["qty"]].mean(), on="channel", rsuffix="_mean")


@case("sensors")
def quantile_of_group_for_each_row(df):
    return df.groupby("device")["humidity"].transform(lambda x: x.quantile(0.9)).rename("high")


@case("sensors")
def quantile_of_group_by_name(df):
    return df.groupby("device")["count"].transform("quantile", 0.25).rename("low")


@case("sensors")
def quantile_of_group_as_aggregate(df):
    return df.groupby("device").agg(q=("humidity", lambda x: x.quantile(0.75)), n=("count", "sum")).reset_index()


@case("sensors")
def transform_of_all_categories(df):
    return df.groupby("mode", observed=False)["count"].transform("max").rename("most")


@case("sensors")
def product_so_far(df):
    return pd.DataFrame({"h": (df["humidity"] / 50).cumprod(), "n": df["count"].cumprod(), "b": df["ok"].cumprod()})


@case("sensors")
def product_so_far_of_group(df):
    groups = df.assign(few=df["count"] % 3).groupby("device")
    return pd.DataFrame({"h": groups["humidity"].cumprod(), "n": groups["few"].cumprod()})


@case("loans")
def numbers_of_rows(df):
    df["from_0"] = np.arange(len(df))
    df["from_1"] = np.arange(1, len(df) + 1)
    return df.assign(last=np.arange(df.shape[0]) == len(df) - 1)[["from_0", "from_1", "last"]]


@case("loans")
def numbers_of_chosen_rows(df):
    some = df[df["late"] > 0].copy()
    some["number"] = np.arange(len(some))
    return some[["id", "number"]]


@case("customers")
def nullable_centred(df):
    return pd.DataFrame(
        {
            "a": df["tickets"] - df["tickets"].mean(),
            "b": (df["tickets"] - df["tickets"].min()) / (df["tickets"].max() - df["tickets"].min()),
            "c": df["tickets"] / df["tickets"].sum(),
        }
    )


@case("odds")
def nullable_scaled(df):
    return pd.DataFrame(
        {"a": (df["part"] - df["part"].mean()) / df["part"].std(), "b": df["whole"] - df["whole"].median()}
    )


@case("odds")
def nullable_filled_by_mean(df):
    return pd.DataFrame({"a": df["part"].fillna(df["part"].mean()), "b": df["part"].fillna(df["part"].median())})


@case("sensors")
def nullable_of_which_none_is_there(df):
    return df.assign(usual=df["fault"].mean(), off=df["fault"] - df["fault"].max())[["usual", "off"]]


@case("customers")
def nullable_of_group(df):
    groups = df.groupby("plan", observed=True)["tickets"]
    return pd.DataFrame(
        {"mean": groups.transform("mean"), "most": groups.transform("max"), "n": groups.transform("sum")}
    )


@case("customers")
def nullable_aggregates_of_group(df):
    found = df.groupby("country").agg(
        mean=("tickets", "mean"), middle=("tickets", "median"), least=("tickets", "min"), n=("tickets", "count")
    )
    return found.reset_index()


@case("sensors")
def all_categories(df):
    groups = df.groupby("mode", observed=False)
    return groups.agg(n=("count", "sum"), mean=("temp", "mean"), rows=("temp", "size"), known=("temp", "count"))


@case("sensors")
def all_categories_as_columns(df):
    return df.groupby("mode", observed=False, as_index=False)["humidity"].max()


@case("sensors")
def all_categories_of_other_aggregates(df):
    found = df.groupby("mode", observed=False).agg(
        least=("count", "min"), middle=("humidity", "median"), first=("device", "first"), kinds=("device", "nunique")
    )
    return found.reset_index()


@case("sensors")
def all_categories_mapped(df):
    return df["mode"].map(df.groupby("mode", observed=False)["count"].max()).astype("float64").rename("most")
