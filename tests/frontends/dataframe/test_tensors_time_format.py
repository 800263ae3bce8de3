"""Times become text as pandas and Polars write it."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from column_functions import Compiled
from hypothesis import given
from hypothesis import strategies as st
from test_tensors_time import DAYS, HIGH, LOW, UNITS, any_ticks, columns, pandas_times, ticks

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.time import time_format
from onward.frontends.dataframe.tensors.time.calendar import Civil
from onward.frontends.dataframe.tensors.time.clock import Clock

FORMATS = [
    "%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%H:%M", "%I:%M %p", "%j", "%y", "%B %d, %Y", "%b %a %A",
    "%Y-%m-%dT%H:%M:%S.%f", "%d.%m.%y %H h", "100%% %m", "%G-W%V-%u", "%w", "%e", "%T", "%R", "%D", "%Y/%j", "%%Y",
    "%Y-%m",
]  # fmt: skip


@cache
def text(format: str, unit: str, library: str) -> Compiled:
    return Compiled(lambda x: time_format.strftime(Clock(x, unit), format, library), "int64")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("unit", UNITS)
def test_text_is_that_of_pandas(format: str, unit: str) -> None:
    rows = ticks(unit)[4:]
    if format in ("%G-W%V-%u", "%B %d, %Y", "%Y/%j"):
        rows = [row for row in rows if row > -30_000_000_000 * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]]
    assert text(format, unit, "pandas")(rows) == [pandas_times(rows, unit).dt.strftime(format).tolist()]
    assert text(format, unit, "pandas")([]) == [[]]


@pytest.mark.parametrize("format", [*FORMATS, "%F", "%3f", "%H:%M:%S%.3f", "%6f", "%9f %.9f"])
@pytest.mark.parametrize("unit", UNITS[1:])
def test_text_is_that_of_polars(format: str, unit: str) -> None:
    rows = ticks(unit)[4:]
    times = pl.Series(rows, dtype=pl.Int64).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    assert text(format, unit, "polars")(rows) == [times.dt.strftime(format).to_list()]


@pytest.mark.parametrize("unit", UNITS)
@columns
@given(data=st.data())
def test_any_time_is_the_text_of_pandas(unit: str, data: st.DataObject) -> None:
    rows = data.draw(any_ticks(unit))
    format = "%Y-%m-%d %H:%M:%S.%f"
    assert text(format, unit, "pandas")(rows) == [pandas_times(rows, unit).dt.strftime(format).tolist()]


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_fails_for_any_integer(unit: str) -> None:
    for format in ("%Y-%m-%dT%H:%M:%S.%f", "%G-W%V %j"):
        assert len(text(format, unit, "pandas")([LOW, LOW + 1, HIGH, 2**62])[0]) == 4


def test_years_beyond_four_digits_are_told() -> None:
    told = Compiled(lambda days: time_format.has_plain_year(Civil(days), "polars"), "int64")
    assert told([DAYS[0], 2_932_896, 2_932_897, -719_528, -719_529, 0]) == [[True, True, False, True, False, True]]


def test_dates_are_text_as_polars_writes_it() -> None:
    compiled = Compiled(lambda days: time_format.date_text(Civil(days)), "int32")
    assert compiled(DAYS) == [pl.Series(DAYS, dtype=pl.Int32).cast(pl.Date).cast(pl.String).to_list()]
    assert compiled([]) == [[]]


@pytest.mark.parametrize("unit", UNITS)
def test_iso_text_is_that_of_numpy(unit: str) -> None:
    rows = ticks(unit)[4:]
    compiled = Compiled(lambda x: time_format.iso_text(Clock(x, unit)), "int64")
    assert compiled(rows) == [np.datetime_as_string(np.array(rows, f"M8[{unit}]"), unit).tolist()]


@pytest.mark.parametrize("format", ["%Z", "%c", "%U", "%Y %", "%3f"])
def test_other_directives_are_refused_by_name(format: str) -> None:
    with pytest.raises(UnsupportedError, match="directive"):
        text(format, "ns", "pandas")


def test_a_date_has_no_time_to_write() -> None:
    with pytest.raises(UnsupportedError, match="%H"):
        Compiled(lambda days: time_format.strftime(Civil(days), "%H"), "int64").make()


def test_dates_of_nanoseconds_are_two_lookups() -> None:
    found = [node.op_type for node in text("%Y-%m-%d", "ns", "pandas").results[0].op.graph]
    assert found.count("StringConcat") == 1
    assert pd.Timestamp(0).strftime("%Y-%m-%d") == text("%Y-%m-%d", "ns", "pandas")([0])[0][0]
