"""The features of a credit model, in plain pandas: nothing in this file knows of ONNX."""

import pandas as pd

regions = pd.DataFrame(
    {
        "region": ["north", "south", "east", "west"],
        "unemployment": [4.1, 6.8, 5.2, 4.7],
        "house_price": [310.0, 190.0, 220.0, 270.0],
    }
)
"""A small table that the features look things up in."""


def features(df: pd.DataFrame) -> pd.DataFrame:
    """What the model is given: a missing age is the median of the batch, regions bring their figures along."""
    df = df.assign(age=df.age.fillna(df.age.median()), debt=df.loan / df.income.clip(lower=1))
    df["segment"] = pd.cut(df.age, [0, 25, 40, 65, 120], labels=["young", "mid", "late", "old"])
    df["weekend"] = df.applied.dt.day_of_week >= 5
    return df.merge(regions, on="region", how="left").drop(columns="applied")
