"""Functions on frames of Polars as people write them: on LazyFrames and DataFrames, with what they may not do."""

import math
from typing import Any

import numpy as np
import pytest

pl = pytest.importorskip("polars")

from polars_frames import MIXED, same  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402
from onward.formats.dataframe.polars import feeds, frame_of  # noqa: E402
from onward.formats.dataframe.schema import schema_of  # noqa: E402
from onward.frontends.dataframe.polars import plan  # noqa: E402
from onward.frontends.dataframe.polars.capture import captured  # noqa: E402
from onward.frontends.opset import OPSET  # noqa: E402

TABLE = pl.DataFrame({"s": ["a", "b", "x y", None, "zz"], "w": [1.5, 2.5, None, 9.0, 8.0]})
FULL = [MIXED, MIXED.head(4), MIXED.reverse()]


def standardized(df: Any) -> Any:
    df = df.with_columns((df["k"] * 2).alias("k2"), z=(pl.col("k") - df["k"].mean()) / df["k"].std())
    return df.filter(df["k2"] > 2)


def mean_before_a_filter(df: Any) -> Any:
    mean = df["k"].mean()
    df = df.filter(pl.col("k") > 0)
    return df.with_columns(x=pl.col("k") - mean)


def column_before_it_changes(df: Any) -> Any:
    old = df["k"]
    df = df.with_columns(k=pl.col("k") + 1)
    return df.with_columns(d=old * 2)


def a_series(df: Any) -> Any:
    return df["k"] * 2 + 1


def groups(df: Any) -> Any:
    return df.group_by("e", maintain_order=True).agg(pl.col("k").sum())


def joined(df: Any) -> Any:
    return df.join(TABLE, on="s", how="left", maintain_order="left").select("s", "w")


def lazily(df: Any) -> Any:
    return df.lazy().with_columns(x=pl.col("k") + 1).collect().select("x")


def when_of_a_series(df: Any) -> Any:
    return df.select(pl.when(df["k"] > 1).then(1).otherwise(0).alias("q"))


def stacked(df: Any) -> Any:
    return pl.concat([df.select("i"), df.select(pl.col("i") + 1)])


def by_numpy(df: Any) -> Any:
    return df.with_columns(np.log1p(pl.col("g")).alias("l"))


def loop_over_columns(df: Any) -> Any:
    for name in df.columns:
        if df.schema[name].is_numeric():
            df = df.with_columns(pl.col(name).cast(pl.Float64))
    return df


def first_rows(df: Any) -> Any:
    return df[["i", "k"]].head(2)


def fields_of_a_struct(df: Any) -> Any:
    return df.select(pl.struct("i", "k").alias("both")).unnest("both")


EAGER = [
    *(standardized, mean_before_a_filter, column_before_it_changes, a_series, groups, joined, lazily),
    *(when_of_a_series, stacked, by_numpy, loop_over_columns, first_rows, fields_of_a_struct),
]


@pytest.mark.parametrize("function", EAGER, ids=lambda function: function.__name__)
def test_a_function_on_data_frames(function: Any) -> None:
    same(function, eagerly=True, on=FULL)


def branches(df: Any) -> Any:
    return df if df["k"].mean() > 3 else df.head(1)


def loops(df: Any) -> Any:
    return pl.DataFrame(list(df.iter_rows()))


def a_plain_number(df: Any) -> Any:
    return df.with_columns(x=math.sqrt(df["k"].sum()))


REFUSED: dict[str, tuple[Any, str]] = {
    "branch": (branches, "branches on values"),
    "height": (lambda df: df.with_columns(x=pl.lit(df.height)), "height"),
    "item": (lambda df: df.with_columns(x=pl.lit(df["k"].item(0))), "item"),
    "dummies": (lambda df: df.to_dummies("s"), "to_dummies"),
    "map_elements": (lambda df: df.select(pl.col("k").map_elements(abs, return_dtype=pl.Int64)), "map_elements"),
    "map_batches": (lambda df: df.lazy().map_batches(lambda part: part), "map_batches"),
    "constant frame": (lambda df: TABLE.filter(pl.col("w") > df["k"].mean()), "values of the frame"),
    "loop": (loops, "iter_rows"),
    "list": (lambda df: pl.DataFrame({"a": df["k"].to_list()}), "to_list"),
    "index": (lambda df: df.with_columns(x=df["k"][0]), "single values"),
    "float": (lambda df: pl.DataFrame({"a": [float(df["k"].sum())]}), "float"),
    "math": (a_plain_number, "real number"),
    "pivot": (lambda df: df.pivot("e", index="s", values="k"), "pivot"),
    "frame of a series": (lambda df: pl.DataFrame({"a": df["k"]}), "values of the frame"),
    "sample": (lambda df: df.sample(3), "sample"),
    "pandas": (lambda df: df.to_pandas(), "to_pandas"),
    "length": (lambda df: df.with_columns(x=len(df)), "number of rows"),
    "name of a number": (lambda df: df.select(df["k"].max() - df["k"].min()), "alias"),
    "constant result": (lambda df: TABLE, "does not depend"),
    "long series": (lambda df: df.with_columns(x=pl.Series(range(8))), "as many rows"),
    "lists": (lambda df: df.select(pl.col("s").str.split(" ")), "lists"),
    "list of groups": (lambda df: df.group_by("e").agg("k"), "lists"),
    "time zone": (lambda df: df.select(pl.col("t").dt.replace_time_zone("UTC")), "time zone"),
    "hash": (lambda df: df.select(pl.col("i").hash()), "hash"),
    "outer join": (lambda df: df.join(TABLE, on="s", how="full"), "full"),
    "float to text": (lambda df: df.select(pl.col("f").cast(pl.String)), "text"),
    "windows of time": (lambda df: df.lazy().group_by_dynamic("t", every="1d").agg(pl.len()), "windows of time"),
    "category as a number": (lambda df: df.select(pl.col("e").cast(pl.Int32)), "to_physical"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_said_is_refused_by_name(name: str) -> None:
    function, word = REFUSED[name]
    with pytest.raises(UnsupportedError, match=word):
        captured(function, MIXED, OPSET)


def test_collecting_a_frame_from_elsewhere_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="elsewhere"):
        captured(lambda df: df.join(pl.scan_csv("x.csv", schema={"s": pl.String}), on="s"), MIXED.lazy(), OPSET)


def test_no_value_of_the_sample_is_in_the_model() -> None:
    """The same function on other samples of the same dtypes is the same model."""

    def function(df: Any) -> Any:
        return df.with_columns(z=df["k"] - df["k"].mean()).filter(pl.col("z") > 0).head(3)

    first, second = (captured(function, frame, OPSET) for frame in (MIXED, MIXED.reverse()))
    assert first.to_proto().SerializeToString() == second.to_proto().SerializeToString()


def test_what_polars_shows_of_plans_has_a_known_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pl.LazyFrame()._ldf.visit().version() in plan.VERSIONS
    monkeypatch.setattr(plan, "VERSIONS", ((0, 0),))
    with pytest.raises(UnsupportedError, match=r"install polars 2\.1"):
        captured(lambda df: df, MIXED, OPSET)


def test_columns_that_are_not_read_are_no_inputs_whatever_their_dtype() -> None:
    frame = MIXED.with_columns(odd=pl.lit([1, 2], dtype=pl.List(pl.Int64)))
    model = captured(lambda df: df.with_columns(x=pl.col("i") + 1).rename({"k": "K"}).select("x", "K"), frame, OPSET)
    found = schema_of(model.ir)
    assert found is not None
    assert [column.name for column in found.inputs] == ["i", "k"]
    with pytest.raises(UnsupportedError, match="odd"):
        captured(lambda df: df.select("odd"), frame, OPSET)


def test_frames_become_feeds_and_results_become_frames() -> None:
    model = captured(lambda df: df, MIXED, OPSET)
    found = schema_of(model.ir)
    assert found is not None
    fed = feeds(MIXED, found)
    assert fed["i"].shape == (8, 1) and fed["i.null"].tolist()[2] == [True]
    assert fed["t"].dtype == np.int64 and fed["t"][2, 0] == np.iinfo(np.int64).min and "t.null" not in fed
    assert fed["d"].dtype == np.int32 and fed["d"][1, 0] == -1 and fed["e"][0, 0] == "lo"
    outputs = {column.tensor: fed[given.tensor] for column, given in zip(found.outputs, found.inputs, strict=True)}
    outputs |= {
        column.null: fed[given.null]
        for column, given in zip(found.outputs, found.inputs, strict=True)
        if column.null and given.null in fed
    }
    made = frame_of(outputs, found)
    assert isinstance(made, pl.DataFrame) and made.equals(MIXED, null_equal=True)
    with pytest.raises(onward.errors.InvalidDataError, match="no column 'i'"):
        feeds(MIXED.drop("i"), found)
    with pytest.raises(onward.errors.InvalidDataError, match="Int64"):
        feeds(MIXED.with_columns(i=pl.lit(1, dtype=pl.Int32)), found)


def test_a_time_of_which_polars_may_read_more_is_an_error_and_no_other_time() -> None:
    frame = pl.DataFrame({"s": ["2020-02-29", "2021-02-29", "2020-13-01", "x", "", None, "2020-1-2"]})
    same(lambda df: df.select(pl.col("s").str.to_date("%Y-%m-%d", strict=False)), frame, on=[frame, frame.clear()])
    model = captured(lambda df: df.select(pl.col("s").str.to_date("%Y-%m-%d", strict=False)), frame, OPSET)
    with pytest.raises(onward.errors.RunFailure, match="format"):
        onward.run(model, pl.DataFrame({"s": ["+2020-02-29"]}))
