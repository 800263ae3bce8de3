"""Times are rounded and moved as pandas and Polars do it."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from column_functions import Compiled
from hypothesis import given
from hypothesis import strategies as st
from test_tensors_time import DAYS, HIGH, LOW, UNITS, any_ticks, columns, pandas_times, ticks

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.time import clock, time_offset, time_round
from onward.frontends.dataframe.tensors.time.calendar import Civil
from onward.frontends.dataframe.tensors.time.clock import Clock

FREQUENCIES = {"D": "D", "2D": "2D", "h": "h", "3h": "3h", "min": "min", "15min": "15min", "7s": "7s", "s": "s"}
FITS = {"floor": "fits_floor", "ceil": "fits_ceil", "round_half_even": "fits_round"}


@cache
def rounded(name: str, length: int) -> Compiled:
    def function(x: Any) -> list[Any]:
        found = getattr(time_round, name)(x, length)
        return [found, getattr(time_round, FITS[name])(x, found)]

    return Compiled(function, "int64")


def pandas_round(rows: list[int], unit: str, method: str, frequency: str) -> list[int]:
    return getattr(pandas_times(rows, unit).dt, method)(frequency).astype("int64").tolist()


@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("unit", UNITS)
@columns
@given(data=st.data())
def test_times_are_rounded_as_pandas_rounds(unit: str, frequency: str, data: st.DataObject) -> None:
    length = int(pd.Timedelta(pd.tseries.frequencies.to_offset(frequency)) / pd.Timedelta(1, unit))
    inside = st.lists(st.integers(LOW + 4 * length, HIGH - 4 * length), max_size=10)
    halves = st.lists(st.integers(-(10**4), 10**4).map(lambda k: k * length // 2), max_size=20)
    rows = data.draw(inside) + data.draw(halves) + [0, 1, -1]
    for name, method in (("floor", "floor"), ("ceil", "ceil"), ("round_half_even", "round")):
        found, fits = rounded(name, length)(rows)
        assert found == pandas_round(rows, unit, method, frequency), method
        assert all(fits)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("length", [1, 2, 3, 7, 86_400_000_000_000, 86_400_000_000_001])
def test_rounding_says_where_it_leaves_the_range(name: str, length: int) -> None:
    rows = [
        LOW + 1,
        LOW + 2,
        LOW + length // 2,
        LOW + length,
        -length,
        -1,
        0,
        1,
        HIGH - length,
        HIGH - length // 2,
        HIGH,
    ]
    rows = [row for row in rows if row > LOW]

    def exact(row: int) -> int:
        if name == "floor":
            return row // length * length
        if name == "ceil":
            return -(-row // length) * length
        quotient, rest = divmod(row, length)
        return (quotient + (2 * rest > length or (2 * rest == length and quotient % 2))) * length

    found, fits = rounded(name, length)(rows)
    assert fits == [LOW <= exact(row) <= HIGH for row in rows]
    assert [n for n, ok in zip(found, fits, strict=True) if ok] == [n for n in map(exact, rows) if LOW <= n <= HIGH]
    assert rounded(name, length)([]) == [[], []]
    assert len(rounded(name, length)([LOW])[0]) == 1


WEEK_START = 4
EVERY = {"1w": 7, "2w": 14, "3d": 3, "1d": 1}


@cache
def polars_round(every: str, unit: str) -> Compiled:
    day = clock.per_day(unit)
    start = WEEK_START * day if every.endswith("w") else 0
    length = EVERY[every] * day

    def function(x: Any) -> list[Any]:
        return [time_round.floor(x, length, start), time_round.round_half_up(x, length, start)]

    return Compiled(function, "int64")


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("unit", UNITS[1:])
def test_times_are_cut_and_rounded_as_polars_does(unit: str, every: str) -> None:
    day = clock.per_day(unit)
    rows = [row for row in ticks(unit)[4:] if LOW + 99 * day < row < HIGH - 99 * day]
    rows += [k * day // 2 for k in range(-40, 40)]
    times = pl.Series(rows, dtype=pl.Int64).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    cut, rounded_up = polars_round(every, unit)(rows)
    assert cut == times.dt.truncate(every).cast(pl.Int64).to_list()
    assert rounded_up == times.dt.round(every).cast(pl.Int64).to_list()


def test_a_length_beyond_the_range_is_refused() -> None:
    for length in (0, -1, 2**62):
        with pytest.raises(UnsupportedError, match="rounded"):
            Compiled(lambda x, length=length: time_round.floor(x, length), "int64").make()


@cache
def moved(name: str, *arguments: Any) -> Compiled:
    return Compiled(lambda days: getattr(time_offset, name)(Civil(days), *arguments), "int64")


def pandas_move(rows: list[int], offset: Any) -> list[int]:
    series = pd.Series(np.array(rows, "int64").view("M8[s]"))
    return ((series + offset).astype("int64") // 86_400).tolist()


STEPS = [-25, -13, -3, -1, 0, 1, 2, 3, 12, 100]
OFFSETS = {
    "add_months": lambda n: (("add_months", n), pd.DateOffset(months=n)),
    "MonthEnd": lambda n: (("end_of_period", n), pd.offsets.MonthEnd(n)),
    "QuarterEnd": lambda n: (("end_of_period", n, 3), pd.offsets.QuarterEnd(n)),
    "QuarterEnd2": lambda n: (("end_of_period", n, 3, 2), pd.offsets.QuarterEnd(n, startingMonth=2)),
    "YearEnd": lambda n: (("end_of_period", n, 12), pd.offsets.YearEnd(n)),
    "YearEnd6": lambda n: (("end_of_period", n, 12, 6), pd.offsets.YearEnd(n, month=6)),
    "MonthBegin": lambda n: (("start_of_period", n), pd.offsets.MonthBegin(n)),
    "QuarterBegin": lambda n: (("start_of_period", n, 3), pd.offsets.QuarterBegin(n, startingMonth=1)),
    "QuarterBegin3": lambda n: (("start_of_period", n, 3, 3), pd.offsets.QuarterBegin(n, startingMonth=3)),
    "YearBegin": lambda n: (("start_of_period", n, 12), pd.offsets.YearBegin(n)),
    "YearBegin4": lambda n: (("start_of_period", n, 12, 4), pd.offsets.YearBegin(n, month=4)),
    "BusinessDay": lambda n: (("add_business_days", n), pd.offsets.BusinessDay(n)),
}


MIDDLE = sorted({day + k for day in DAYS if -600_000 < day < 2_000_000 for k in range(-8, 9)})


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_are_those_of_pandas(name: str, steps: int) -> None:
    function, offset = OFFSETS[name](steps)
    rows = MIDDLE
    assert moved(*function)(rows) == [pandas_move([day * 86_400 for day in rows], offset)]
    assert moved(*function)([]) == [[]]


@pytest.mark.parametrize("steps", STEPS)
def test_months_are_added_as_polars_adds_them(steps: int) -> None:
    dates = pl.Series(MIDDLE, dtype=pl.Int32).cast(pl.Date)
    assert moved("add_months", steps)(MIDDLE) == [dates.dt.offset_by(f"{steps}mo").cast(pl.Int32).to_list()]


@cache
def each(name: str) -> Compiled:
    return Compiled(lambda days, steps: getattr(time_offset, name)(Civil(days), steps), "int64", "int64")


@columns
@given(rows=st.lists(st.tuples(st.sampled_from(MIDDLE), st.integers(-500, 500)), max_size=30))
def test_each_row_has_steps_of_its_own(rows: list[tuple[int, int]]) -> None:
    days, steps = [day for day, _ in rows], [step for _, step in rows]
    expected = [pandas_move([day * 86_400], pd.DateOffset(months=step))[0] for day, step in rows]
    assert each("add_months")(days, steps) == [expected]


@pytest.mark.parametrize("months", [1, 2, 3, 5, 6, 12, 24, 84, 120])
def test_dates_are_cut_to_months_as_polars_does(months: int) -> None:
    dates = pl.Series(MIDDLE, dtype=pl.Int32).cast(pl.Date)
    expected = dates.dt.truncate(f"{months}mo").cast(pl.Int32).to_list()
    assert moved("truncate_to_months", months)(MIDDLE) == [expected]


@pytest.mark.parametrize("unit", UNITS)
@columns
@given(data=st.data())
def test_a_datetime_keeps_its_time_of_day(unit: str, data: st.DataObject) -> None:
    def function(x: Any) -> Any:
        moment = Clock(x, unit)
        return clock.same_time(moment, time_offset.add_months(moment.date, 1))

    rows = [row for row in data.draw(any_ticks(unit)) if LOW // 2 < row < HIGH // 2]
    found, fits = Compiled(function, "int64")(rows)
    assert found == (pandas_times(rows, unit) + pd.DateOffset(months=1)).astype("int64").tolist()
    assert all(fits)


def test_a_month_beyond_the_range_does_not_fit() -> None:
    def function(x: Any) -> Any:
        moment = Clock(x, "ns")
        return clock.same_time(moment, time_offset.add_months(moment.date, 1))

    assert Compiled(function, "int64")([HIGH, HIGH - 20 * clock.per_day("ns"), 0, LOW + 1])[1] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("name", OFFSETS)
def test_no_offset_fails_for_any_integer(name: str) -> None:
    function, _ = OFFSETS[name](3)
    assert len(moved(*function)([LOW, LOW + 1, HIGH, -(2**62), 2**62])[0]) == 5
