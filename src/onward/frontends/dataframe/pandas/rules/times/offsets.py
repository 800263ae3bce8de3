"""Dates moved by offsets of pandas: DateOffset(months=1), MonthEnd, BusinessDay."""

from __future__ import annotations

from typing import Any

from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.times.arithmetic import added
from onward.frontends.dataframe.pandas.rules.times.common import moved, ticks_of, to_unit
from onward.frontends.dataframe.pandas.values import column_of
from onward.frontends.dataframe.tensors.time import time_offset
from onward.frontends.dataframe.tensors.time.clock import Clock, same_time
from onward.graph.build import Tensor

_FIXED = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


@rule("part: times by offset")
def by_offset(call: Call, name: str, a: Any, b: Any) -> Column:
    """A column plus or minus an offset; either may be first in a sum."""
    import pandas

    is_first = isinstance(a, pandas.offsets.BaseOffset)
    offset, x = (a, b) if is_first else (b, a)
    if name not in ("add", "sub") or (name == "sub" and is_first):
        raise call.refuse(f"{name} with a {type(offset).__name__} cannot be converted")
    column = ticks_of(call, x, "datetime" if not _is_fixed(offset) else "")
    moved_by = offset if name == "add" else -offset
    if getattr(moved_by, "normalize", False):
        raise call.refuse("an offset with normalize=True: use .dt.normalize() on the result")
    return to_unit(call, _moved(call, column, moved_by), call.type.unit)


def _is_fixed(offset: Any) -> bool:
    import pandas

    return isinstance(offset, pandas.offsets.Tick | pandas.offsets.Day)


def _moved(call: Call, column: Column, offset: Any) -> Column:
    import pandas

    if isinstance(offset, pandas.offsets.Day):
        return _later(call, column, pandas.Timedelta(days=offset.n))
    if isinstance(offset, pandas.offsets.Tick):
        return _later(call, column, pandas.Timedelta(offset))
    if type(offset) is pandas.offsets.DateOffset:
        return _relative(call, column, offset)
    clock = Clock(column.value, column.type.unit)
    return moved(column, same_time(clock, _days(call, clock, offset)))


def _days(call: Call, clock: Clock, offset: Any) -> Tensor:
    date, steps = clock.date, offset.n
    match type(offset).__name__:
        case "MonthEnd":
            return time_offset.end_of_period(date, steps)
        case "MonthBegin":
            return time_offset.start_of_period(date, steps)
        case "QuarterEnd":
            return time_offset.end_of_period(date, steps, 3, offset.startingMonth)
        case "QuarterBegin":
            return time_offset.start_of_period(date, steps, 3, offset.startingMonth)
        case "YearEnd":
            return time_offset.end_of_period(date, steps, 12, offset.month)
        case "YearBegin":
            return time_offset.start_of_period(date, steps, 12, offset.month)
        case "BusinessDay" if not offset.offset:
            return time_offset.add_business_days(date, steps)
        case "Week" if offset.weekday is None:
            return date.days + int(7 * steps)
    raise call.refuse(
        f"{offset!r} cannot be converted: use DateOffset, MonthEnd, MonthBegin, QuarterEnd, YearEnd or BusinessDay"
    )


def _relative(call: Call, column: Column, offset: Any) -> Column:
    """Months first, then what has a fixed length."""
    import pandas

    given = dict(offset.kwds) or {"days": 1}
    if unknown := [key for key in given if key not in (*_FIXED, "months", "years")]:
        raise call.refuse(f"DateOffset({unknown[0]}=…) cannot be converted: use months, years, weeks, days, hours, …")
    if any(not isinstance(number, int) for number in given.values()):
        raise call.refuse("a DateOffset of fractions cannot be converted: give whole numbers")
    months = offset.n * (given.pop("years", 0) * 12 + given.pop("months", 0))
    if months:
        clock = Clock(column.value, column.type.unit)
        column = moved(column, same_time(clock, time_offset.add_months(clock.date, months)))
    if not given:
        return column
    return _later(call, column, offset.n * pandas.Timedelta(**given))


def _later(call: Call, column: Column, step: Any) -> Column:
    other = column_of(call, step, column.type)
    return added(call, "add", column, to_unit(call, other, call.type.unit), call.type)
