"""Functions on frames of narwhals become models, over Polars and over pandas, that give what narwhals gives there."""

from typing import Any

import pytest

nw = pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

import numpy as np  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402
from onward.formats.dataframe.schema import schema_of  # noqa: E402
from onward.verification.frames import differences  # noqa: E402

FRAME = pd.DataFrame(
    {
        "i": np.asarray([3, -1, 0, 7, 3], np.int64),
        "f": [1.5, np.nan, -2.0, 0.0, 1e9],
        "g": [np.nan, 1.0, 0.0, 0.0, -3.0],
        "s": ["a", "b", None, "", "a"],
        "b": [True, False, True, False, True],
        "t": pd.to_datetime(
            ["2020-02-29 13:30:00", "1969-12-31 23:59:59", None, "2000-01-01 00:00:00", "2024-12-31 05:00:00"]
        ),
        "n": pd.array([1, None, 3, 4, 5], dtype="Int64"),
    }
)


@nw.narwhalify
def comparisons(df: Any) -> Any:
    """Over pandas a comparison with a missing number is false, over Polars it is null."""
    col = nw.col
    return df.select(
        a=col("f") > 0,
        b=col("f") != 1.5,
        c=~(col("f") <= 0),
        d=col("s") == "a",
        e=col("f").is_in([1.5]),
        g=col("n") > 2,
    )


@nw.narwhalify
def missing(df: Any) -> Any:
    """What a computation makes NaN is missing over pandas."""
    ratio = nw.col("g") / nw.col("g")
    return df.select(a=ratio.is_null(), b=ratio.fill_null(9.0), c=nw.col("f").fill_null(nw.col("f").mean()), n="n")


@nw.narwhalify
def groups(df: Any) -> Any:
    return df.group_by("s").agg(nw.col("f").sum(), m=nw.col("i").mean(), n=nw.len()).sort("m")


@nw.narwhalify
def windows(df: Any) -> Any:
    return df.select(
        a=nw.col("i").shift(1), b=nw.col("f").cum_sum(), c=nw.col("i").sum().over("s"), d=nw.col("f").rank("dense")
    )


@nw.narwhalify
def texts_and_times(df: Any) -> Any:
    return df.select(
        u=nw.col("s").str.to_uppercase(), y=nw.col("t").dt.year(), w=nw.col("t").dt.weekday(), h=nw.col("t").dt.hour()
    )


def plain(df: Any) -> Any:
    return df.filter(nw.col("i") > 0).with_columns(x=nw.when(nw.col("b")).then(nw.col("f")).otherwise(nw.lit(0.0)))


def through_a_lazy_frame(df: Any) -> Any:
    return df.lazy().with_columns(x=nw.col("i") * 2).select("x").collect()


FUNCTIONS = [comparisons, missing, groups, windows, texts_and_times, plain, through_a_lazy_frame]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_function_gives_what_narwhals_gives(function: Any, library: str) -> None:
    if library == "pandas" and function is through_a_lazy_frame:
        pytest.skip("narwhals has no frames over pandas that are lazy")
    native = FRAME if library == "pandas" else pl.from_pandas(FRAME)
    rows = [
        native,
        native.head(1),
        native.head(0),
        native[::-1].reset_index(drop=True) if library == "pandas" else native.reverse(),
    ]
    is_plain = not hasattr(function, "__wrapped__")
    model = onward.from_dataframe(function, nw.from_native(native) if is_plain else native, check=False)
    for part in rows:
        given = nw.from_native(part) if is_plain else part
        assert differences(function(given), onward.run(model, given)) == []


def test_a_model_over_pandas_takes_and_gives_columns_of_pandas() -> None:
    model = onward.from_dataframe(windows, FRAME)
    found = schema_of(model.ir)
    assert found is not None and found.library == "pandas"
    assert {column.name: column.null for column in found.inputs}["f"] == ""
    made = onward.run(model, FRAME)
    assert isinstance(made, pd.DataFrame) and made["a"].dtype == np.float64


def test_what_pandas_and_polars_do_not_agree_on_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="may be 0"):
        onward.from_dataframe(lambda df: df.select(nw.col("i") // nw.col("i")), nw.from_native(FRAME))


def test_a_branch_on_values_is_refused() -> None:
    def branches(df: Any) -> Any:
        return df if df["f"].mean() > 1 else df.head(1)

    with pytest.raises(UnsupportedError):
        onward.from_dataframe(branches, nw.from_native(pl.from_pandas(FRAME)))
