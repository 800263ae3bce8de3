"""Days since 1970 as dates of the Gregorian calendar, and back, exact for every day that int64 seconds reach.

The calendar repeats every 400 years. A table has for each day of them where it stands in its year, and whether that is
a leap year; all that follows from the two is a lookup in a table of 732 days. A year of the tables starts in March, so
that a leap day is its last day.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.dataframe.tensors.integers import floor_by, remainder_by, truncate_by
from onward.graph.build import Builder, Tensor

DAYS_OF_CYCLE = 146097
"""The days of 400 years, after which the calendar repeats."""
CYCLES = 740_000_000
"""Cycles added so that no month of int64 seconds is negative, and Div is plain."""
SHIFTED_DAYS = CYCLES * DAYS_OF_CYCLE + 719468
"""1970-01-01, counted from 1 March of the first shifted year."""
SHIFTED_YEARS = CYCLES * 400
SHIFTED_MONTHS = SHIFTED_YEARS * 12 - 2
"""January of the year 0, counted from that March."""
LENGTHS = (31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 29)
"""The days of the months from March to February of a leap year."""
DATES = tuple((month, day) for month, length in enumerate(LENGTHS) for day in range(1, length + 1))
"""The months (March is 0) and days of a year that starts in March."""
STARTS = tuple(sum((*LENGTHS[:-1], 28)[:month]) for month in range(12))
"""The days before each month (January is `STARTS[10]`) in a year that starts in March."""

MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July",
               "August", "September", "October", "November", "December")  # fmt: skip
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def look_up(table: Sequence[int | bool] | Sequence[str] | npt.NDArray[np.int16], index: Tensor) -> Tensor:
    """What a constant table of int64, int16, bool or text holds at `index` (N, 1), which lies inside it: 1 node.

    GatherElements takes a third of the time of Gather for single elements.
    """
    op = index.op
    is_column = index.rank == 2
    shape = (-1, 1) if is_column else (-1,)
    if isinstance(table[0], str):
        entries = op.strings(np.asarray(table, object).reshape(shape))
    else:
        array = table if isinstance(table, np.ndarray) else np.asarray(table)
        dtype = array.dtype if array.dtype.kind == "b" or isinstance(table, np.ndarray) else np.dtype(np.int64)
        entries = op.constant(array.astype(dtype).reshape(shape))
    return op.GatherElements(entries, index, axis=0) if is_column else op.Gather(entries, index)


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def calendar_month(march: int) -> int:
    """January is 1, of months where March is 0."""
    return (march + 2) % 12 + 1


def day_of_year(march: int, day: int, leap: bool) -> int:
    before = STARTS[march] + day
    return before - 306 if march >= 10 else before + 59 + leap


def length_of_month(march: int, leap: bool) -> int:
    return 28 if march == 11 and not leap else LENGTHS[march]


@cache
def _cycle() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """For each day of the 400 years from 1970 on, its year and its place in `DATES`, 366 more in a leap year."""
    places = {leap: [day_of_year(month, day, leap) for month, day in DATES] for leap in (False, True)}
    year_of: list[npt.NDArray[np.int16]] = []
    place_of: list[npt.NDArray[np.int16]] = []
    for year in range(1970, 2370):
        leap = is_leap(year)
        order = np.argsort(places[leap][: 365 + leap])
        place_of.append((order + 366 * leap).astype(np.int16))
        year_of.append(np.full(365 + leap, year, np.int16))
    return np.concatenate(year_of), np.concatenate(place_of)


class Civil:
    """The date of times (N, 1), int32 or int64, of so many ticks a day; of days since 1970 unless told otherwise.

    Each part is computed once, when it is first read, and is exact for every int64. Nodes: 4 that all parts share (6
    more for nanoseconds), then 1 for a part of month, day and leap year, 2 for the weekday, 9 for the year. Parts are
    int64.
    """

    def __init__(self, times: Tensor, per_day: int = 1) -> None:
        self._times = times.cast(ir.DataType.INT64)
        self._per_day = per_day

    @cached_property
    def days(self) -> Tensor:
        """Days since 1970, rounded down."""
        return floor_by(self._times, self._per_day)

    @property
    def _ticks(self) -> tuple[Tensor, int]:
        """What 400 years are counted in, and how many of it are a day: 400 years of nanoseconds are beyond int64."""
        is_long = self._per_day * DAYS_OF_CYCLE > np.iinfo(np.int64).max
        return (self.days, 1) if is_long else (self._times, self._per_day)

    @cached_property
    def _day_of_cycle(self) -> Tensor:
        """From 0 on 1970-01-01, and on every day that is a multiple of 400 years from it."""
        times, per_day = self._ticks
        return truncate_by(remainder_by(times, DAYS_OF_CYCLE * per_day), per_day)

    @cached_property
    def date_place(self) -> Tensor:
        """Where the date stands in `DATES`, twice one after the other: in a leap year, 366 later."""
        return look_up(_cycle()[1], self._day_of_cycle).cast(ir.DataType.INT64)

    @property
    def op(self) -> Builder:
        return self._times.op

    def by_date(self, entry: Callable[[int, int], int | bool | str]) -> Tensor:
        """What follows from month (March is 0) and day alone: 1 node."""
        return look_up(2 * [entry(month, day) for month, day in DATES], self.date_place)  # type: ignore[arg-type]

    def by_date_and_leap(self, entry: Callable[[int, int, bool], int | bool]) -> Tensor:
        """What follows from month (March is 0), day and whether the year is a leap year: 1 node."""
        return look_up([entry(month, day, leap) for leap in (False, True) for month, day in DATES], self.date_place)

    @cached_property
    def year(self) -> Tensor:
        """The year; 0 is the one before year 1."""
        times, per_day = self._ticks
        years = look_up(_cycle()[0], self._day_of_cycle).cast(ir.DataType.INT64)
        return floor_by(times, DAYS_OF_CYCLE * per_day) * 400 + years

    @cached_property
    def month(self) -> Tensor:
        """From 1 to 12."""
        return self.by_date(lambda month, _: calendar_month(month))

    @cached_property
    def month_number(self) -> Tensor:
        """`year * 12 + month - 1`: months since January of the year 0."""
        return self.year * 12 + self.by_date(lambda month, _: calendar_month(month) - 1)

    @cached_property
    def day(self) -> Tensor:
        """From 1 to 31."""
        return self.by_date(lambda _, day: day)

    @cached_property
    def quarter(self) -> Tensor:
        """From 1 to 4."""
        return self.by_date(lambda month, _: (calendar_month(month) + 2) // 3)

    @cached_property
    def weekday(self) -> Tensor:
        """Monday is 0, as in pandas; Polars and ISO count one more: `iso_weekday`."""
        return remainder_by(self._day_of_cycle + 3, 7)

    @cached_property
    def iso_weekday(self) -> Tensor:
        """Monday is 1, Sunday is 7."""
        return self.weekday + 1

    @cached_property
    def day_of_year(self) -> Tensor:
        """From 1 to 366."""
        return self.by_date_and_leap(day_of_year)

    @cached_property
    def days_in_month(self) -> Tensor:
        return self.by_date_and_leap(lambda month, _, leap: length_of_month(month, leap))

    @cached_property
    def is_leap_year(self) -> Tensor:
        return self.by_date_and_leap(lambda month, day, leap: leap)

    @cached_property
    def is_month_start(self) -> Tensor:
        return self.by_date(lambda _, day: day == 1)

    @cached_property
    def is_month_end(self) -> Tensor:
        return self.by_date_and_leap(lambda month, day, leap: day == length_of_month(month, leap))

    @cached_property
    def is_quarter_start(self) -> Tensor:
        return self.by_date(lambda month, day: day == 1 and calendar_month(month) % 3 == 1)

    @cached_property
    def is_quarter_end(self) -> Tensor:
        return self.by_date(lambda month, day: day == LENGTHS[month] and calendar_month(month) % 3 == 0)

    @cached_property
    def is_year_start(self) -> Tensor:
        return self.by_date(lambda month, day: (calendar_month(month), day) == (1, 1))

    @cached_property
    def is_year_end(self) -> Tensor:
        return self.by_date(lambda month, day: (calendar_month(month), day) == (12, 31))

    @cached_property
    def week(self) -> Civil:
        """The Thursday of the same week: its year is the ISO year, and its day of the year tells the ISO week."""
        return Civil(self.days - self.weekday + 3)

    @cached_property
    def iso_year(self) -> Tensor:
        return self.week.year

    @cached_property
    def iso_week(self) -> Tensor:
        """From 1 to 53."""
        return self.week.by_date_and_leap(lambda month, day, leap: (day_of_year(month, day, leap) - 1) // 7 + 1)

    @cached_property
    def month_name(self) -> Tensor:
        """`January` to `December`."""
        return self.by_date(lambda month, _: MONTH_NAMES[calendar_month(month) - 1])

    @cached_property
    def day_name(self) -> Tensor:
        """`Monday` to `Sunday`."""
        return look_up(DAY_NAMES, self.weekday)

    @cached_property
    def month_start(self) -> Tensor:
        """The first day of the month, as days since 1970."""
        return self.days - self.by_date(lambda _, day: day - 1)

    @cached_property
    def month_end(self) -> Tensor:
        """The last day of the month, as days since 1970."""
        return self.days + self.by_date_and_leap(lambda month, day, leap: length_of_month(month, leap) - day)

    @cached_property
    def quarter_start(self) -> Tensor:
        return self.days - self.by_date_and_leap(day_of_quarter)

    @cached_property
    def year_start(self) -> Tensor:
        return self.days - self.by_date_and_leap(lambda month, day, leap: day_of_year(month, day, leap) - 1)

    @cached_property
    def week_start(self) -> Tensor:
        """The Monday on or before the day."""
        return self.days - self.weekday


def day_of_quarter(march: int, day: int, leap: bool) -> int:
    """From 0, in a quarter of the calendar."""
    months = (calendar_month(march) - 1) % 3
    return sum(length_of_month((march - back) % 12, leap) for back in range(1, months + 1)) + day - 1


def start_of_month(month_number: Tensor) -> Tensor:
    """The first day, as days since 1970, of `year * 12 + month - 1`, of any year that int64 seconds reach: 7 nodes."""
    shifted = month_number.cast(ir.DataType.INT64) + SHIFTED_MONTHS
    # A century of 1200 months from March; only its last February differs, and no month of the century is after it.
    starts = [1461 * (month // 12) // 4 + STARTS[month % 12] - SHIFTED_DAYS for month in range(1200)]
    return shifted / 1200 * DAYS_OF_CYCLE / 4 + look_up(starts, remainder_by(shifted, 1200))


def days_from_date(year: Tensor, month: Tensor, day: Tensor) -> tuple[Tensor, Tensor]:
    """Days since 1970 of a date, and a mask of where there is such a date; elsewhere the days mean nothing: 33 nodes.

    A year that int64 seconds do not reach (about 292 billion years away) is not valid.
    """
    op = year.op
    year, month, day = (part.cast(ir.DataType.INT64) for part in (year, month, day))
    number = year * 12 + (month - 1)
    start, following = start_of_month(number), start_of_month(number + 1)
    days = start + (day - 1)
    limit = 292_000_000_000
    valid = op.And(op.And(month >= 1, month <= 12), op.And(day >= 1, day <= 31))
    valid = op.And(valid, op.And(year >= -limit, year <= limit))
    return days, op.And(valid, days < following)
