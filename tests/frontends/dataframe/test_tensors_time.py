"""Ticks and days become dates and times as pandas and Polars have them, for every int64."""

import datetime
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from column_functions import Compiled
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.time import clock
from onward.frontends.dataframe.tensors.time.calendar import Civil, days_from_date, start_of_month
from onward.frontends.dataframe.tensors.time.clock import Clock

LOW, HIGH = -(2**63), 2**63 - 1
UNITS = ["s", "ms", "us", "ns"]
columns = settings(max_examples=30, deadline=None)

DATES = [
    f"{year:04}-{date}"
    for year in (1, 1677, 1899, 1900, 1904, 1969, 1970, 1999, 2000, 2019, 2020, 2023, 2024, 2026, 2100, 2262, 9999)
    for date in ("01-01", "01-03", "01-31", "02-28", "03-01", "03-31", "06-30", "10-01", "12-29", "12-31")
] + ["1904-02-29", "2000-02-29", "2020-02-29", "2024-02-29"]
DAYS = [int(np.datetime64(date, "D").astype(int)) for date in DATES]
"""Days of every kind, most of which nanoseconds do not reach."""


def ticks(unit: str) -> list[int]:
    """Edge cases of a unit: the ends of its range, and days of every kind at times of every kind."""
    second = clock.UNITS[unit]
    times = (0, 1, 43_200 * second, 86_399 * second + second // 3, 86_400 * second - 1)
    found = [day * 86_400 * second + time for day in DAYS for time in times]
    return [LOW + 1, LOW + 2, HIGH - 1, HIGH, -1, *(tick for tick in found if LOW < tick <= HIGH)]


def any_ticks(unit: str) -> st.SearchStrategy[list[int]]:
    """Times of the years 1 to 9999, near and far, as far as the unit reaches them."""
    second = clock.UNITS[unit]
    low, high = (max(LOW + 1, -62_135_596_800 * second), min(HIGH, 253_402_300_799 * second))
    return st.lists(
        st.integers(low, high) | st.integers(max(low, -(10**9) * second), min(high, 2 * 10**9 * second)), max_size=30
    )


PANDAS: dict[str, Callable[[Clock], Any]] = {
    "year": lambda c: c.date.year,
    "month": lambda c: c.date.month,
    "day": lambda c: c.date.day,
    "hour": lambda c: c.hour,
    "minute": lambda c: c.minute,
    "second": lambda c: c.second,
    "microsecond": lambda c: c.microsecond,
    "nanosecond": lambda c: c.nanosecond_of_microsecond,
    "day_of_week": lambda c: c.date.weekday,
    "day_of_year": lambda c: c.date.day_of_year,
    "quarter": lambda c: c.date.quarter,
    "days_in_month": lambda c: c.date.days_in_month,
    "is_leap_year": lambda c: c.date.is_leap_year,
    "is_month_start": lambda c: c.date.is_month_start,
    "is_month_end": lambda c: c.date.is_month_end,
    "is_quarter_start": lambda c: c.date.is_quarter_start,
    "is_quarter_end": lambda c: c.date.is_quarter_end,
    "is_year_start": lambda c: c.date.is_year_start,
    "is_year_end": lambda c: c.date.is_year_end,
}
NAMES = {"day_name": lambda c: c.date.day_name, "month_name": lambda c: c.date.month_name}
POLARS: dict[str, Callable[[Clock], Any]] = {
    "year": lambda c: c.date.year,
    "month": lambda c: c.date.month,
    "day": lambda c: c.date.day,
    "quarter": lambda c: c.date.quarter,
    "weekday": lambda c: c.date.iso_weekday,
    "week": lambda c: c.date.iso_week,
    "iso_year": lambda c: c.date.iso_year,
    "ordinal_day": lambda c: c.date.day_of_year,
    "days_in_month": lambda c: c.date.days_in_month,
    "is_leap_year": lambda c: c.date.is_leap_year,
    "hour": lambda c: c.hour,
    "minute": lambda c: c.minute,
    "second": lambda c: c.second,
    "millisecond": lambda c: c.millisecond,
    "microsecond": lambda c: c.microsecond,
    "nanosecond": lambda c: c.nanosecond,
}


@cache
def parts(which: str, unit: str) -> Compiled:
    chosen = {"pandas": PANDAS, "polars": POLARS, "names": NAMES}[which]

    def function(x: Any) -> list[Any]:
        moment = Clock(x, unit)
        return [part(moment) for part in chosen.values()]

    return Compiled(function, "int64")


def pandas_times(rows: list[int], unit: str) -> pd.Series:
    return pd.Series(np.array(rows, "int64").view(f"M8[{unit}]"))


def check_pandas(rows: list[int], unit: str) -> None:
    # pandas has years in int32, and raises for others.
    rows = [row for row in rows if abs(row) < 2**31 * 31_556_952 * clock.UNITS[unit]]
    series = pandas_times(rows, unit)
    for name, found in zip(PANDAS, parts("pandas", unit)(rows), strict=True):
        assert found == getattr(series.dt, name).tolist(), name


@pytest.mark.parametrize("unit", UNITS)
def test_parts_are_those_of_pandas_at_the_edges(unit: str) -> None:
    check_pandas(ticks(unit), unit)
    check_pandas([], unit)
    check_pandas([0], unit)


@pytest.mark.parametrize("unit", UNITS)
@columns
@given(data=st.data())
def test_parts_are_those_of_pandas(unit: str, data: st.DataObject) -> None:
    check_pandas(data.draw(any_ticks(unit)), unit)
    check_pandas(data.draw(st.lists(st.integers(LOW + 1, HIGH) | st.integers(-(2**55), 2**55), max_size=20)), unit)


@pytest.mark.parametrize("unit", UNITS)
def test_names_and_iso_weeks_are_those_of_pandas(unit: str) -> None:
    rows = ticks(unit)[4:]
    series = pandas_times(rows, unit)
    names, months = parts("names", unit)(rows)
    assert (names, months) == (series.dt.day_name().tolist(), series.dt.month_name().tolist())
    iso = series.dt.isocalendar()
    found = dict(zip(POLARS, parts("polars", unit)(rows), strict=True))
    assert found["week"] == iso.week.tolist()
    assert found["weekday"] == iso.day.tolist()
    years = [719163 + row // clock.per_day(unit) for row in rows]
    assert found["iso_year"] == [datetime.date.fromordinal(day).isocalendar().year for day in years]


def check_polars(rows: list[int], unit: str) -> None:
    series = pl.Series(rows, dtype=pl.Int64).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    for name, found in zip(POLARS, parts("polars", unit)(rows), strict=True):
        assert found == getattr(series.dt, name)().to_list(), name


@pytest.mark.parametrize("unit", UNITS[1:])
def test_parts_are_those_of_polars_at_the_edges(unit: str) -> None:
    check_polars(ticks(unit)[4:], unit)
    check_polars([], unit)
    check_polars([-1], unit)


@pytest.mark.parametrize("unit", UNITS[1:])
@columns
@given(data=st.data())
def test_parts_are_those_of_polars(unit: str, data: st.DataObject) -> None:
    check_polars(data.draw(any_ticks(unit)), unit)


def test_the_calendar_repeats_every_400_years_up_to_the_ends_of_seconds() -> None:
    cycle = 146_097 * 86_400
    rows = [LOW, LOW + 1, HIGH, 3 * 2**60, -3 * 2**60 - 1]
    near = [row % cycle for row in rows]
    for name, far, found in zip(PANDAS, parts("pandas", "s")(rows), parts("pandas", "s")(near), strict=True):
        if name == "year":
            found = [year + row // cycle * 400 for year, row in zip(found, rows, strict=True)]
        assert far == found, name


@pytest.mark.parametrize("unit", UNITS)
def test_no_part_fails_for_the_lowest_integer(unit: str) -> None:
    for which in ("pandas", "polars", "names"):
        assert all(len(found) == 2 for found in parts(which, unit)([LOW, 0]))


@cache
def of_dates() -> Compiled:
    def function(days: Any) -> list[Any]:
        date = Civil(days)
        return [
            date.year,
            date.month,
            date.day,
            date.iso_week,
            date.month_start,
            date.month_end,
            start_of_month(date.month_number),
        ]

    return Compiled(function, "int32")


def test_every_day_of_1500_years_is_the_day_of_polars() -> None:
    first, last = (int(np.datetime64(text, "D").astype(int)) for text in ("1399-01-01", "2901-01-01"))
    rows = list(range(first, last))
    dates = pl.Series(rows, dtype=pl.Int32).cast(pl.Date)
    starts = dates.dt.month_start().cast(pl.Int32).to_list()
    assert of_dates()(rows) == [
        dates.dt.year().to_list(), dates.dt.month().to_list(), dates.dt.day().to_list(), dates.dt.week().to_list(),
        starts, dates.dt.month_end().cast(pl.Int32).to_list(), starts,
    ]  # fmt: skip


@cache
def from_parts() -> Compiled:
    return Compiled(days_from_date, "int64", "int64", "int64")


def test_dates_that_exist_have_days_and_others_are_not_valid() -> None:
    rows = [(y, m, d) for y in (1, 1900, 1970, 2000, 2023, 2024, 9999) for m in range(-1, 15) for d in range(-1, 34)]
    days, valid = from_parts()(*zip(*rows, strict=True))

    def expected(year: int, month: int, day: int) -> int | None:
        try:
            return datetime.date(year, month, day).toordinal() - 719163
        except ValueError:
            return None

    assert [day if ok else None for day, ok in zip(days, valid, strict=True)] == [expected(*row) for row in rows]
    assert from_parts()([], [], []) == [[], []]


def test_dates_beyond_all_bounds_are_not_valid() -> None:
    extremes = [LOW, HIGH, LOW // 12, HIGH // 12, 0, 1]
    rows = [(y, m, d) for y in extremes for m in extremes for d in extremes]
    _, valid = from_parts()(*zip(*rows, strict=True))
    assert valid == [row in ((0, 1, 1), (1, 1, 1)) for row in rows]


@columns
@given(rows=st.lists(st.dates(), max_size=30))
def test_dates_come_back(rows: list[datetime.date]) -> None:
    days, valid = from_parts()([r.year for r in rows], [r.month for r in rows], [r.day for r in rows])
    assert days == [row.toordinal() - 719163 for row in rows]
    assert all(valid)


COMPONENTS = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]


@cache
def duration(unit: str) -> Compiled:
    def function(x: Any) -> list[Any]:
        moment = Clock(x, unit)
        return [*moment.components.values(), moment.seconds_of_day, clock.total_seconds(x, unit)]

    return Compiled(function, "int64")


@pytest.mark.parametrize("unit", UNITS)
@columns
@given(rows=st.lists(st.integers(-(10**15), 10**15), max_size=30))
def test_durations_are_those_of_pandas(unit: str, rows: list[int]) -> None:
    rows = [*rows, 0, 1, -1, 86_400, -86_400]
    if unit == "ns":
        rows += [LOW + 1, HIGH, 2**56 + 1, -(2**56) - 1, 10**9 * 10**9 + 1, 10**9 * 10**9 - 1]
    series = pd.Series(np.array(rows, "int64").view(f"m8[{unit}]"))
    expected = series.dt.components
    *found, seconds, total = duration(unit)(rows)
    for name, part in zip(COMPONENTS, found, strict=True):
        assert part == expected[name].tolist(), name
    assert seconds == series.dt.seconds.tolist()
    assert total == series.dt.total_seconds().tolist()


@pytest.mark.parametrize("unit", UNITS)
@columns
@given(
    rows=st.lists(st.integers(LOW + 1, HIGH), max_size=30),
    near=st.lists(st.integers(-9 * 10**9, 9 * 10**9), max_size=20),
)
def test_seconds_of_long_durations_are_those_of_pandas(unit: str, rows: list[int], near: list[int]) -> None:
    rows = rows + [second * clock.UNITS[unit] + tick for second in near for tick in (-1, 0, 1, 2)]
    series = pd.Series(np.array(rows, "int64").view(f"m8[{unit}]"))
    assert duration(unit)(rows)[-1] == series.dt.total_seconds().tolist()


TOTALS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


@cache
def polars_totals(unit: str) -> Compiled:
    return Compiled(lambda x: [clock.total(x, unit, period)[0] for period in TOTALS], "int64")


@pytest.mark.parametrize("unit", UNITS[1:])
@columns
@given(rows=st.lists(st.integers(-(10**12), 10**12), max_size=30))
def test_totals_are_those_of_polars(unit: str, rows: list[int]) -> None:
    rows = [*rows, -1, 0, 1, -86_400_000, 3_599_999]
    series = pl.Series(rows, dtype=pl.Int64).cast(pl.Duration(unit))  # type: ignore[arg-type]
    for name, found in zip(TOTALS.values(), polars_totals(unit)(rows), strict=True):
        assert found == getattr(series.dt, f"total_{name}")().to_list(), name


@cache
def conversion(unit: str, to: str, floor: bool) -> Compiled:
    def function(x: Any) -> list[Any]:
        value, fits = clock.convert(x, unit, to, floor)
        return [value] if fits is None else [value, fits]

    return Compiled(function, "int64")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("to", UNITS)
def test_ticks_of_one_unit_are_ticks_of_another(unit: str, to: str) -> None:
    rows = [*ticks(unit), -(10**18), 9_223_372_036, -9_223_372_036, 9_223_372_037, -9_223_372_037, LOW]
    ours, theirs = clock.UNITS[unit], clock.UNITS[to]
    exact = [row * theirs // ours for row in rows]
    found = conversion(unit, to, True)(rows)
    if theirs > ours:
        fits = [LOW <= number <= HIGH for number in exact]
        assert found[1] == fits
        assert [n for n, ok in zip(found[0], fits, strict=True) if ok] == [
            n for n, ok in zip(exact, fits, strict=True) if ok
        ]
    else:
        assert found == [exact]
        toward_zero = [abs(row) * theirs // ours * (1 if row >= 0 else -1) for row in rows]
        assert conversion(unit, to, False)(rows) == [toward_zero]
        inside = [row for row in rows if row > LOW]
        assert (
            conversion(unit, to, True)(inside)[0] == pandas_times(inside, unit).dt.as_unit(to).astype("int64").tolist()
        )


@cache
def joined(unit: str) -> Compiled:
    return Compiled(lambda days, time: clock.at(days, time, unit), "int64", "int64")


@pytest.mark.parametrize("unit", UNITS)
def test_a_day_and_a_time_are_ticks_where_they_fit(unit: str) -> None:
    day = clock.per_day(unit)
    days = [LOW // day - 1, LOW // day, LOW // day + 1, -1, 0, HIGH // day, HIGH // day + 1, LOW // day * 2, 2**57]
    rows = [(d, t) for d in days for t in (0, LOW % day, LOW % day - 1, HIGH % day, HIGH % day + 1, day - 1)]
    exact = [d * day + t for d, t in rows]
    found, fits = joined(unit)(*zip(*rows, strict=True))
    assert fits == [LOW <= number <= HIGH for number in exact]
    assert [n for n, ok in zip(found, fits, strict=True) if ok] == [n for n in exact if LOW <= n <= HIGH]


@cache
def numbers(period: str, unit: str) -> Compiled:
    return Compiled(lambda x: clock.from_numbers(x, period, unit)[0], "int64")


@pytest.mark.parametrize("period", ["W", "D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("unit", UNITS)
def test_integers_that_count_a_period_are_ticks(period: str, unit: str) -> None:
    rows = [-1001, -1, 0, 1, 999, 1000, 15_000]
    expected = pd.to_timedelta(pd.Series(rows), unit=period).dt.as_unit(unit)
    assert numbers(period, unit)(rows) == [expected.astype("int64").tolist()]


@cache
def divided(unit: str, period: str) -> Compiled:
    return Compiled(lambda x: clock.total_periods(x, unit, period), "int64")


@pytest.mark.parametrize("period", ["D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("unit", UNITS)
@columns
@given(rows=st.lists(st.integers(-(10**9), 10**9), max_size=20))
def test_a_duration_divides_by_a_period_as_in_pandas(unit: str, period: str, rows: list[int]) -> None:
    series = pd.Series(np.array(rows, "int64").view(f"m8[{unit}]"))
    assert divided(unit, period)(rows) == [(series / pd.Timedelta(1, period)).tolist()]


def test_times_that_exist_have_ticks_and_others_are_not_valid() -> None:
    compiled = Compiled(lambda h, m, s, f: clock.from_time(h, m, s, f, "ms"), *["int64"] * 4)
    rows = [
        (h, m, s, f)
        for h in (-1, 0, 23, 24)
        for m in (-1, 0, 59, 60)
        for s in (0, 59, 60, LOW)
        for f in (-1, 0, 999, 1000)
    ]
    ticks, valid = compiled(*zip(*rows, strict=True))
    expected = [0 <= h <= 23 and 0 <= m <= 59 and 0 <= s <= 59 and 0 <= f <= 999 for h, m, s, f in rows]
    assert valid == expected
    exact = [((h * 60 + m) * 60 + s) * 1000 + f for h, m, s, f in rows]
    assert [t for t, ok in zip(ticks, valid, strict=True) if ok] == [
        t for t, ok in zip(exact, valid, strict=True) if ok
    ]


def test_a_unit_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'D'"):
        clock.per_second("D")
