"""Functions of Polars that should be refused, each with the word that its message should have."""

import polars as pl
from frame_cases import refused


@refused("loans", "map_elements")
def pl_python_function(df):
    return df.select(pl.col("late").map_elements(lambda x: x + 1, return_dtype=pl.Int64))


@refused("loans", "map_batches")
def pl_python_batches(df):
    return df.select(pl.col("late").map_batches(lambda s: s + 1, return_dtype=pl.Int64))


@refused("loans", "hash")
def pl_hash(df):
    return df.select(pl.col("grade").hash())


@refused("loans", "sample")
def pl_sample(df):
    return df.sample(fraction=0.5)


@refused("loans", "pivot")
def pl_pivot(df):
    return df.select("term", "grade", "loan").pivot(
        "grade", on_columns=None, index="term", values="loan", aggregate_function="sum"
    )


@refused("loans", "to_dummies")
def pl_dummies(df):
    return df.select("grade").to_dummies()


@refused("loans", "text")
def pl_float_as_text(df):
    return df.select(pl.col("rate").cast(pl.String))


@refused("logs", "time zone")
def pl_zone(df):
    return df.select(pl.col("at").dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York"))


@refused("loans", "iter")
def pl_rows(df):
    return pl.DataFrame({"x": [row[0] for row in df.iter_rows()]})


@refused("loans", "branch")
def pl_branch(df):
    if df["rate"].mean() > 10:
        return df.select(pl.col("rate") / 100)
    return df.select("rate")
