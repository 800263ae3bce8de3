"""Functions on frames of Polars beside the models that they become: the same on every frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from onward.dataframes import run
from onward.frontends.dataframe.polars.capture import captured
from onward.frontends.opset import OPSET

NAN, INF = math.nan, math.inf
MIXED = pl.DataFrame(
    {
        "i": [-7, 7, None, 5, 0, 2**40, 3, 3],
        "j": [2, -2, -1, 0, 0, 3, None, 5],
        "f": [NAN, -7.5, INF, 5.0, 0.0, None, 2.5, -0.5],
        "g": [2.0, NAN, -INF, 0.0, 0.0, 1.0, None, -3.3],
        "u": [1, 2, 255, None, 0, 7, 7, 9],
        "k": [1, -2, 100, None, 0, 7, 7, 9],
        "s": ["a", "b", None, "", "x y", "Ünï", "a", "b"],
        "b": [True, False, None, True, False, True, None, False],
        "t": [
            datetime(2020, 2, 29, 13, 30),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            None,
            datetime(2000, 1, 1),
            datetime(2024, 12, 31, 23),
            datetime(1900, 3, 1),
            datetime(2021, 6, 15, 1, 2, 3, 4),
            datetime(2020, 2, 29, 13, 30),
        ],
        "d": [
            date(2020, 2, 29),
            date(1969, 12, 31),
            None,
            date(2000, 1, 1),
            date(2024, 12, 31),
            date(1900, 3, 1),
            date(2021, 6, 15),
            date(2020, 2, 29),
        ],
        "e": ["lo", "hi", None, "lo", "mid", "hi", "lo", "mid"],
        "r": [
            timedelta(hours=-36),
            timedelta(days=2, microseconds=1),
            None,
            timedelta(0),
            timedelta(seconds=5),
            timedelta(days=400),
            timedelta(minutes=3),
            timedelta(hours=1),
        ],
    },
    schema_overrides={"u": pl.UInt8, "k": pl.Int32, "e": pl.Enum(["lo", "mid", "hi"])},
)
"""Numbers with nulls, NaN and infinities, text, categories and times, with what is odd in each."""


def parts(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """A frame as it is, one row, none, a row of nulls, and the other way round."""
    return [frame, frame.head(1), frame.clear(), frame.slice(2, 1), frame.reverse()]


def same(
    function: Callable[[Any], Any],
    frame: pl.DataFrame = MIXED,
    *,
    eagerly: bool = False,
    in_order: bool = True,
    on: Sequence[pl.DataFrame] | None = None,
) -> None:
    """The model gives what Polars gives, and fails where it fails."""
    model = captured(function, frame if eagerly else frame.lazy(), OPSET)
    for part in parts(frame) if on is None else on:
        try:
            wanted = _result(function(part if eagerly else part.lazy()), part)
        except pl.exceptions.PolarsError:
            try:
                run(model, part)
            except Exception:
                continue
            raise AssertionError("Polars raises an error, and the model gives a result") from None
        got = _result(run(model, part), part)
        assert_frame_equal(got, wanted, check_row_order=in_order, rel_tol=1e-12, abs_tol=1e-13)


def _result(made: Any, part: pl.DataFrame) -> pl.DataFrame:
    if isinstance(made, pl.Expr):
        return part.select(made)
    if isinstance(made, pl.Series):
        return made.to_frame()
    found: pl.DataFrame = made.collect() if isinstance(made, pl.LazyFrame) else made
    return found
