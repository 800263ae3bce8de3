"""Parts of dates, times and durations: year, hour, is_month_end, total_seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.formats.dataframe.types import FLOAT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.times.common import flag_part, number_part, ticks_of
from onward.frontends.dataframe.tensors.time import clock as clocks
from onward.frontends.dataframe.tensors.time.clock import Clock
from onward.graph.build import Tensor

DATETIME_NUMBERS: dict[str, Callable[[Clock], Tensor]] = {
    "year": lambda clock: clock.date.year,
    "month": lambda clock: clock.date.month,
    "day": lambda clock: clock.date.day,
    "hour": lambda clock: clock.hour,
    "minute": lambda clock: clock.minute,
    "second": lambda clock: clock.second,
    "microsecond": lambda clock: clock.microsecond,
    "nanosecond": lambda clock: clock.nanosecond_of_microsecond,
    "dayofweek": lambda clock: clock.date.weekday,
    "day_of_week": lambda clock: clock.date.weekday,
    "weekday": lambda clock: clock.date.weekday,
    "dayofyear": lambda clock: clock.date.day_of_year,
    "day_of_year": lambda clock: clock.date.day_of_year,
    "quarter": lambda clock: clock.date.quarter,
    "days_in_month": lambda clock: clock.date.days_in_month,
    "daysinmonth": lambda clock: clock.date.days_in_month,
}
DATETIME_FLAGS = (
    "is_month_start",
    "is_month_end",
    "is_quarter_start",
    "is_quarter_end",
    "is_year_start",
    "is_year_end",
    "is_leap_year",
)
DURATION_NUMBERS: dict[str, Callable[[Clock], Tensor]] = {
    "days": lambda clock: clock.days,
    "seconds": lambda clock: clock.seconds_of_day,
    "microseconds": lambda clock: clock.microsecond,
    "nanoseconds": lambda clock: clock.nanosecond_of_microsecond,
}
REFUSED = {
    "date": "dates of Python have no form in ONNX: use .dt.normalize(), or .dt.floor('D')",
    "time": "times of Python have no form in ONNX: use .dt.hour, .dt.minute and .dt.second, or t - t.dt.normalize()",
    "timetz": "times of Python have no form in ONNX: use .dt.hour, .dt.minute and .dt.second",
    "tz_convert": "ONNX has no time zones: convert to UTC without a zone before the function",
    "to_pydatetime": "objects of Python have no form in ONNX: leave the column as it is",
    "to_pytimedelta": "objects of Python have no form in ONNX: leave the column as it is",
}


def _declare() -> None:
    for name, part in DATETIME_NUMBERS.items():

        def number(call: Call, x: Any, part: Callable[[Clock], Tensor] = part) -> Column:
            return number_part(ticks_of(call, x, "datetime"), part)

        rule(f"Series.dt.{name}", f"Scalar.{name}")(number)
    for name in DATETIME_FLAGS:

        def flag(call: Call, x: Any, name: str = name) -> Column:
            return flag_part(ticks_of(call, x, "datetime"), lambda clock: getattr(clock.date, name))

        rule(f"Series.dt.{name}", f"Scalar.{name}")(flag)
    for name, part in DURATION_NUMBERS.items():

        def amount(call: Call, x: Any, part: Callable[[Clock], Tensor] = part) -> Column:
            return number_part(ticks_of(call, x, "duration"), part)

        rule(f"Series.dt.{name}", f"Scalar.{name}")(amount)
    for name, why in REFUSED.items():

        def refused(call: Call, x: Any, *args: Any, why: str = why, **options: Any) -> Any:
            raise call.refuse(why)

        rule(f"Series.dt.{name}")(refused)


_declare()


@rule("Series.dt.total_seconds", "Scalar.total_seconds")
def total_seconds(call: Call, x: Any) -> Column:
    column = ticks_of(call, x, "duration")
    return elementwise(lambda p: clocks.total_seconds(p, column.type.unit), FLOAT64, column)


@rule("Series.dt.components")
def components(call: Call, x: Any) -> dict[str, Column]:
    column = ticks_of(call, x, "duration")
    names = list(Clock(column.value, column.type.unit).components)
    return {name: number_part(column, lambda clock, name=name: clock.components[name]) for name in names}  # type: ignore[misc]


@rule("Series.dt.isocalendar")
def isocalendar(call: Call, x: Any) -> dict[str, Column]:
    column = ticks_of(call, x, "datetime")
    date = Clock(column.value, column.type.unit).date
    parts = {
        "year": (date.iso_year, ir.DataType.INT32),
        "week": (date.iso_week, ir.DataType.UINT32),
        "day": (date.iso_weekday, ir.DataType.UINT32),
    }
    return {
        name: column.of(value.cast(dtype), ColumnType(dtype, masked=True)) for name, (value, dtype) in parts.items()
    }


@rule("Series.dt.unit", "Series.dt.tz")
def fact(call: Call, x: Any) -> Any:
    """What the dtype says by itself."""
    return call.real


@rule("Series.dt.tz_localize")
def tz_localize(call: Call, x: Any, tz: Any, *args: Any, **options: Any) -> Column:
    if tz is not None:
        raise call.refuse("ONNX has no time zones: use times in UTC, without a zone")
    return ticks_of(call, x, "datetime")
