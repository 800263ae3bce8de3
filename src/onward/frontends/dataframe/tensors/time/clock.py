"""Times as int64 ticks of a unit: what of them is days and what is time of day, and ticks of one unit in another.

A datetime is ticks since 1970, a duration is ticks, a time of day is ticks since midnight. Days are rounded down and
the rest counts from 0, before 1970 too, as pandas has it for datetimes and durations, and Polars for datetimes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.integers import floor_by, multiply_by, remainder_by, truncate_by
from onward.frontends.dataframe.tensors.time.calendar import Civil
from onward.graph.build import Tensor

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of a second."""
SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Seconds of what is longer than a second; `m` is a minute."""


def per_second(unit: str) -> int:
    if unit not in UNITS:
        raise UnsupportedError(f"ticks of {unit!r} are not counted: use s, ms, us or ns")
    return UNITS[unit]


def per_day(unit: str) -> int:
    return 86_400 * per_second(unit)


def ticks_of(period: str, unit: str, count: int = 1) -> int:
    """The ticks of `count` weeks `W`, days `D`, hours `h`, minutes `m`, or ticks of a unit; 0 for a fraction."""
    if period in SECONDS:
        return count * SECONDS[period] * per_second(unit)
    ticks, rest = divmod(count * per_second(unit), per_second(period))
    return 0 if rest else ticks


class Clock:
    """The time of ticks (N, 1) of a unit; each part is computed once, when it is first read. Parts are int64.

    A part of the time takes 2 nodes, days take 5. All are exact for every int64.
    """

    def __init__(self, ticks: Tensor, unit: str) -> None:
        self.ticks = ticks
        self.unit = unit
        self.second_ticks = per_second(unit)

    @cached_property
    def days(self) -> Tensor:
        """Whole days, rounded down."""
        return self.date.days

    @cached_property
    def date(self) -> Civil:
        return Civil(self.ticks, per_day(self.unit))

    @cached_property
    def time_of_day(self) -> Tensor:
        """Ticks since midnight."""
        return remainder_by(self.ticks, per_day(self.unit))

    @cached_property
    def seconds_of_day(self) -> Tensor:
        """From 0 to 86399: what pandas calls the seconds of a duration."""
        return truncate_by(self.time_of_day, self.second_ticks)

    @cached_property
    def hour(self) -> Tensor:
        return truncate_by(self.time_of_day, 3_600 * self.second_ticks)

    @cached_property
    def minute(self) -> Tensor:
        return truncate_by(remainder_by(self.ticks, 3_600 * self.second_ticks), 60 * self.second_ticks)

    @cached_property
    def second(self) -> Tensor:
        return truncate_by(remainder_by(self.ticks, 60 * self.second_ticks), self.second_ticks)

    @cached_property
    def _of_second(self) -> Tensor:
        return remainder_by(self.ticks, self.second_ticks)

    def _fraction(self, unit: str) -> Tensor:
        """What is past the second, in ticks of `unit`, rounded down."""
        theirs = per_second(unit)
        if theirs <= self.second_ticks:
            return truncate_by(self._of_second, self.second_ticks // theirs)
        return self._of_second * (theirs // self.second_ticks)

    @cached_property
    def millisecond(self) -> Tensor:
        """From 0 to 999."""
        return self._fraction("ms")

    @cached_property
    def microsecond(self) -> Tensor:
        """From 0 to 999999: since the second."""
        return self._fraction("us")

    @cached_property
    def nanosecond(self) -> Tensor:
        """From 0 to 999999999: since the second, as Polars has it."""
        return self._fraction("ns")

    @cached_property
    def microsecond_of_millisecond(self) -> Tensor:
        """From 0 to 999: the microseconds of pandas' components."""
        return remainder_by(self.microsecond, 1_000)

    @cached_property
    def nanosecond_of_microsecond(self) -> Tensor:
        """From 0 to 999: the nanoseconds of pandas."""
        return remainder_by(self.nanosecond, 1_000)

    @property
    def components(self) -> dict[str, Tensor]:
        """As pandas' `.dt.components` has them, of a duration."""
        return {
            "days": self.days,
            "hours": self.hour,
            "minutes": self.minute,
            "seconds": self.second,
            "milliseconds": self.millisecond,
            "microseconds": self.microsecond_of_millisecond,
            "nanoseconds": self.nanosecond_of_microsecond,
        }


def at(days: Tensor, time_of_day: Tensor | None, unit: str) -> tuple[Tensor, Tensor]:
    """Ticks of a day since 1970 and a time from 0 to a day, and a mask of where they fit int64: 8 nodes.

    Elsewhere the ticks are wrapped. Ticks fit if they lead back to the day.
    """
    days = days.cast(ir.DataType.INT64)
    ticks = days * per_day(unit)
    if time_of_day is None:
        return multiply_by(days, per_day(unit))
    ticks = ticks + time_of_day
    return ticks, ticks.op.Equal(floor_by(ticks, per_day(unit)), days)


def same_time(clock: Clock, days: Tensor) -> tuple[Tensor, Tensor]:
    """The ticks of other days at the same time of day, and a mask of where they fit int64: 9 nodes."""
    return at(days, clock.time_of_day, clock.unit)


def convert(ticks: Tensor, unit: str, to: str, floor: bool = True) -> tuple[Tensor, Tensor | None]:
    """Ticks in another unit, and a mask of where they fit int64 (None: everywhere); elsewhere they are wrapped.

    To a coarser unit they are rounded down (pandas, and datetimes of Polars) or, with `floor=False`, towards 0
    (durations of Polars). pandas raises for what does not fit.
    """
    ours, theirs = per_second(unit), per_second(to)
    if theirs > ours:
        return multiply_by(ticks, theirs // ours)
    return (floor_by if floor else truncate_by)(ticks, ours // theirs), None


def total(ticks: Tensor, unit: str, period: str) -> tuple[Tensor, Tensor | None]:
    """A duration in whole periods (`D`, `h`, `m`, s, ms, us, ns), towards 0, as Polars' `total_hours` and so on.

    With a mask of where it fits int64 (None: everywhere).
    """
    if ticks_of(period, unit):
        return truncate_by(ticks, ticks_of(period, unit)), None
    return convert(ticks, unit, period, floor=False)


NEARLY_HALF = 2.0**-53 * (1 + 2.0**-51)
"""A little more than half the distance of a float64 to the next, as a part of it: adding it gives the next one."""


def total_seconds(ticks: Tensor, unit: str) -> Tensor:
    """A duration in seconds, float64, as pandas adds seconds and fraction: 20 nodes, 1 for seconds, 24 for ms.

    A fraction that is lost against many seconds moves the result to the next float64, so that it is no whole second.
    """
    double = ir.DataType.DOUBLE
    moment = Clock(ticks, unit)
    if moment.second_ticks == 1:
        return ticks.cast(double)
    op = ticks.op
    seconds = floor_by(ticks, moment.second_ticks).cast(double)
    fraction = remainder_by(ticks, moment.second_ticks).cast(double) / float(moment.second_ticks)
    result = seconds + fraction
    kept = result - seconds
    lost = op.Ceil(fraction) - op.Ceil(kept) - op.Floor(kept)
    if unit == "ms":
        # From 2**52 seconds on, float64 has no fractions to move to.
        lost = lost * (op.Abs(seconds) < 2.0**52).cast(double)
    return result + lost * (op.Abs(result) * NEARLY_HALF)


def total_periods(ticks: Tensor, unit: str, period: str) -> Tensor:
    """A duration divided by a period (`D`, `h`, …), float64, as `series / Timedelta(…)`: 2 nodes.

    Ticks in a finer period must fit int64, as `convert` tells; pandas raises if they do not.
    """
    whole = ticks_of(period, unit)
    if whole:
        return ticks.cast(ir.DataType.DOUBLE) / float(whole)
    return convert(ticks, unit, period)[0].cast(ir.DataType.DOUBLE)


def from_numbers(numbers: Tensor, period: str, unit: str) -> tuple[Tensor, Tensor]:
    """Ticks of integers that count a period (`D`, `h`, `m`, s, …), and a mask of where they fit int64.

    A period finer than the unit is rounded down.
    """
    numbers = numbers.cast(ir.DataType.INT64)
    whole = ticks_of(period, unit)
    if whole:
        return multiply_by(numbers, whole)
    everywhere = numbers.op.constant(np.ones((1, 1), np.bool_))
    return floor_by(numbers, per_second(period) // per_second(unit)), everywhere


def from_time(
    hour: Tensor, minute: Tensor, second: Tensor, fraction: Tensor | None, unit: str
) -> tuple[Tensor, Tensor]:
    """Ticks since midnight of int64 parts, and a mask of where there is such a time (24:00 and second 60 are none).

    The fraction counts ticks of the unit. Elsewhere the ticks mean nothing.
    """
    op = hour.op
    ticks = ((hour * 60 + minute) * 60 + second) * per_second(unit)
    valid = op.And(op.And(hour >= 0, hour <= 23), op.And(minute >= 0, minute <= 59))
    valid = op.And(valid, op.And(second >= 0, second <= 59))
    if fraction is not None:
        ticks = ticks + fraction
        valid = op.And(valid, op.And(fraction >= 0, fraction < per_second(unit)))
    return ticks, valid
