"""Dates, datetimes, durations and times of Polars: parts of them, rounding, moving, making and writing them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import TICKS, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded, scalar
from onward.frontends.dataframe.polars.arithmetic import in_ticks, in_unit, ticks_per_day, to_days
from onward.frontends.dataframe.polars.casts import INT64, cast_column
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, literal_value, rule, spoken
from onward.frontends.dataframe.tensors import integers
from onward.frontends.dataframe.tensors.time import clock as clocks
from onward.frontends.dataframe.tensors.time import time_format, time_offset, time_parse, time_round
from onward.frontends.dataframe.tensors.time.calendar import Civil, days_from_date
from onward.frontends.dataframe.tensors.time.clock import Clock
from onward.graph.build import Tensor


def _moments(scope: Scope) -> dict[Any, Any]:
    """What is known of the times of a column is shared by its parts."""
    found: dict[Any, Any] = scope.shared("moments", dict)
    return found


def clock_of(scope: Scope, column: Column) -> Clock:
    """The time of datetimes, durations and times; nulls have some time."""
    known = _moments(scope)
    key = (id(column.value.value), "clock")
    if key not in known:
        known[key] = Clock(column.value, column.type.unit or "ns")
    made: Clock = known[key]
    return made


def date_of(scope: Scope, column: Column) -> Civil:
    """The date of dates and datetimes."""
    if column.type.meaning == "datetime":
        return clock_of(scope, column).date
    known = _moments(scope)
    key = (id(column.value.value), "date")
    if key not in known:
        known[key] = Civil(column.value)
    made: Civil = known[key]
    return made


_OF_DATES: dict[str, Callable[[Civil], Tensor]] = {
    "dt.Year": lambda d: d.year,
    "dt.Month": lambda d: d.month,
    "dt.Day": lambda d: d.day,
    "dt.Quarter": lambda d: d.quarter,
    "dt.WeekDay": lambda d: d.iso_weekday,
    "dt.Week": lambda d: d.iso_week,
    "dt.IsoYear": lambda d: d.iso_year,
    "dt.OrdinalDay": lambda d: d.day_of_year,
    "dt.DaysInMonth": lambda d: d.days_in_month,
    "dt.IsLeapYear": lambda d: d.is_leap_year,
    "dt.Century": lambda d: integers.floor_by(d.year - 1, 100) + 1,
    "dt.Millennium": lambda d: integers.floor_by(d.year - 1, 1000) + 1,
}
_OF_TIMES: dict[str, Callable[[Clock], Tensor]] = {
    "dt.Hour": lambda c: c.hour,
    "dt.Minute": lambda c: c.minute,
    "dt.Second": lambda c: c.second,
    "dt.Millisecond": lambda c: c.millisecond,
    "dt.Microsecond": lambda c: c.microsecond,
    "dt.Nanosecond": lambda c: c.nanosecond,
}


@rule(*_OF_DATES)
def part_of_date(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    type = scope.type(expr)
    if a.type.meaning not in ("date", "datetime"):
        raise UnsupportedError(f"`{spoken(expr.kind)}` of {a.type} has no form in a graph")
    return elementwise(lambda _: _OF_DATES[expr.kind](date_of(scope, a)).cast(type.dtype), type, a)


@rule(*_OF_TIMES)
def part_of_time(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    type = scope.type(expr)
    if a.type.meaning not in ("datetime", "time"):
        raise UnsupportedError(f"`{spoken(expr.kind)}` of {a.type} has no form in a graph")
    return elementwise(lambda _: _OF_TIMES[expr.kind](clock_of(scope, a)).cast(type.dtype), type, a)


@rule("dt.Date", "dt.Time", "dt.Datetime")
def convert(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    return cast_column(a, scope.type(expr), strict=True)


@rule("dt.TimeStamp")
def timestamp(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    moved = in_ticks(a, str(expr.options[0]))
    masked = moved.masked()
    return replace(masked, type=scope.type(expr))


@rule("dt.CastTimeUnit")
def cast_time_unit(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    return in_unit(a, scope.type(expr).unit)


@rule("dt.ConvertTimeZone", "dt.ReplaceTimeZone", "dt.BaseUtcOffset", "dt.DSTOffset")
def time_zones(scope: Scope, expr: Expr) -> Column:
    if expr.kind == "dt.ReplaceTimeZone" and expr.options[0] is None:
        return scope(expr.args[0])
    raise UnsupportedError(f"`{spoken(expr.kind)}`: a time zone has no form in a graph. Convert times before the model")


_PERIODS = {
    "dt.TotalDays": "D",
    "dt.TotalHours": "h",
    "dt.TotalMinutes": "m",
    "dt.TotalSeconds": "s",
    "dt.TotalMilliseconds": "ms",
    "dt.TotalMicroseconds": "us",
    "dt.TotalNanoseconds": "ns",
}


@rule(*_PERIODS)
def total(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    period, type = _PERIODS[expr.kind], scope.type(expr)
    if expr.options and expr.options[0]:
        return elementwise(lambda x: clocks.total_periods(x, a.type.unit, period), type, a)
    return elementwise(lambda x: clocks.total(x, a.type.unit, period)[0], type, a)


@rule("dt.MonthStart", "dt.MonthEnd")
def end_of_month(scope: Scope, expr: Expr) -> Column:
    """At the same time of day."""
    (a,) = scope.all(expr)
    date = date_of(scope, a)
    days = date.month_start if expr.kind == "dt.MonthStart" else date.month_end
    return _on_days(scope, a, days)


def _on_days(scope: Scope, a: Column, days: Tensor) -> Column:
    """Other days, at the same time of day."""
    if a.type.meaning == "date":
        return elementwise(lambda _: days.cast(a.type.dtype), a.type, a)
    return elementwise(lambda _: clocks.same_time(clock_of(scope, a), days)[0], a.type, a)


_DURATION = re.compile(r"([0-9]+)(ns|us|µs|μs|ms|mo|s|m|h|d|w|q|y)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


def parsed_duration(text: Any, what: str) -> tuple[int, int, int]:
    """Months, days and nanoseconds of a text as `1mo`, `-2d3h`."""
    if not isinstance(text, str):
        raise UnsupportedError(f"{what} has to be a constant text such as '1d'")
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    parts = _DURATION.findall(rest)
    if "".join(number + unit for number, unit in parts) != rest or not parts:
        raise UnsupportedError(f"{what} is {text!r}, which has no form in a graph: use w, d, h, m, s, mo, q and y")
    months = days = nanoseconds = 0
    for number, unit in parts:
        amount = int(number)
        if unit in _MONTHS:
            months += amount * _MONTHS[unit]
        elif unit in ("d", "w"):
            days += amount * (7 if unit == "w" else 1)
        elif unit in _SECONDS:
            nanoseconds += amount * _SECONDS[unit] * 10**9
        else:
            nanoseconds += amount * 10**9 // TICKS["us" if unit in ("µs", "μs") else unit]
    return sign * months, sign * days, sign * nanoseconds


@rule("dt.Truncate", "dt.Round")
def truncate(scope: Scope, expr: Expr) -> Column:
    a = scope(expr.args[0])
    every = literal_value(expr.args[1], "the length to round to")
    months, days, nanoseconds = parsed_duration(every, "the length to round to")
    is_floor = expr.kind == "dt.Truncate"
    if sum(bool(each) for each in (months, days, nanoseconds)) != 1 or min(months, days, nanoseconds) < 0:
        raise UnsupportedError(f"times are not rounded to {every!r} in a graph: use one unit")
    if months:
        if not is_floor:
            raise UnsupportedError("times are not rounded to months in a graph: use `truncate`")
        made = time_offset.truncate_to_months(date_of(scope, a), months)
        if a.type.meaning == "date":
            return elementwise(lambda _: made.cast(a.type.dtype), a.type, a)
        return elementwise(lambda _: made * ticks_per_day(a.type.unit), a.type, a)
    per_day = ticks_per_day(a.type.unit) if a.type.unit else 1
    if nanoseconds and a.type.meaning == "date":
        raise UnsupportedError("dates are not rounded to parts of a day in a graph: they stay as they are")
    length = days * per_day if days else _ticks(nanoseconds, a.type.unit, every)
    # Weeks begin on Mondays, and 1970 began on a Thursday.
    start = -3 * per_day if days and days % 7 == 0 and "w" in str(every) else 0
    if a.type.meaning == "duration":
        raise UnsupportedError("durations are not rounded in a graph: use `dt.total_seconds()` and round that")
    function = time_round.floor if is_floor else time_round.round_half_up
    return elementwise(lambda x: function(x.cast(ir.DataType.INT64), length, start).cast(a.type.dtype), a.type, a)


def _ticks(nanoseconds: int, unit: str, what: Any) -> int:
    ticks, rest = divmod(nanoseconds * TICKS[unit], 10**9)
    if rest:
        raise UnsupportedError(f"{what!r} is less than a tick of the column, which is of {unit}: cast the time unit")
    return ticks


@rule("dt.OffsetBy")
def offset_by(scope: Scope, expr: Expr) -> Column:
    a = scope(expr.args[0])
    by = literal_value(expr.args[1], "what a time is moved by")
    months, days, nanoseconds = parsed_duration(by, "what a time is moved by")
    made = a
    if months:
        made = _on_days(scope, a, time_offset.add_months(date_of(scope, a), months))
    if made.type.meaning == "date":
        if nanoseconds % (86400 * 10**9):
            raise UnsupportedError("a date is not moved by parts of a day in a graph: cast it to a datetime")
        amount = days + nanoseconds // (86400 * 10**9)
    else:
        amount = days * ticks_per_day(made.type.unit) + _ticks(nanoseconds, made.type.unit, by)
    return made if not amount else elementwise(lambda x: x.op.Add(x, x.op.like(amount, x)), made.type, made)


@rule("dt.DatetimeFunction")
def make_datetime(scope: Scope, expr: Expr) -> Column:
    unit, zone = expr.options
    type = scope.type(expr)
    if zone is not None:
        raise UnsupportedError("datetimes with a time zone have no form in a graph: leave it out")
    parts = [
        cast_column(column, INT64, strict=True) for column in scope.beside(*(scope(each) for each in expr.args[:7]))
    ]
    invalid: list[Tensor] = []

    def ticks(*values: Tensor) -> Tensor:
        year, month, day, hour, minute, second, micro = values
        days, there = days_from_date(year, month, day)
        exact = micro * (TICKS[str(unit)] // 10**6) if str(unit) != "ms" else integers.floor_by(micro, 1000)
        time, fine = clocks.from_time(hour, minute, second, exact, str(unit))
        made, fits = clocks.at(days, time, str(unit))
        invalid.append(made.op.Not(made.op.And(made.op.And(there, fine), fits)))
        return made

    made = elementwise(ticks, type, *parts)
    bad = invalid[0] if made.null is None else scope.op.And(invalid[0], scope.op.Not(made.null))
    return guarded(made, bad, "a date or time that does not exist")


@rule("dt.Duration")
def make_duration(scope: Scope, expr: Expr) -> Column:
    """Of weeks, days, hours, minutes, seconds, milliseconds, microseconds, nanoseconds."""
    type = scope.type(expr)
    scales = [604800, 86400, 3600, 60, 1]
    per_second = TICKS[type.unit]
    factors = [scale * per_second for scale in scales]
    for finer in (10**3, 10**6, 10**9):
        factors.append(per_second // finer if per_second >= finer else 0)
    made: Column | None = None
    for each, factor in zip(expr.args, factors, strict=True):
        column = scope(each)
        value = column.value.value.const_value
        if value is not None and column.null is None and value.numpy().reshape(-1)[0] == 0:
            continue
        if factor == 0:
            raise UnsupportedError(f"a duration in {type.unit} has no parts finer than that: give `time_unit='ns'`")
        if column.type.is_float:
            raise UnsupportedError("durations of fractions have no form in a graph: give whole numbers of a finer unit")
        whole = cast_column(column, INT64, strict=True)
        term = elementwise(lambda x, by=factor: x.op.Mul(x, x.op.like(by, x)), INT64, whole)
        made = term if made is None else elementwise(lambda x, y: x.op.Add(x, y), INT64, *scope.beside(made, term))
    if made is None:
        return scalar(scope.op, 0, type)
    return replace(made, type=type)


@rule("dt.Combine")
def combine(scope: Scope, expr: Expr) -> Column:
    day, time = scope.all(expr)
    type = scope.type(expr)
    date = to_days(day, ColumnType(ir.DataType.INT32, "date", masked=True)) if day.type.meaning == "datetime" else day
    by = ticks_per_day("ns") // ticks_per_day(type.unit)
    midnight = in_ticks(date, type.unit)
    return elementwise(lambda x, y: x.op.Add(x, integers.truncate_by(y, by)), type, midnight, time)


@rule("dt.Replace")
def replace_parts(scope: Scope, expr: Expr) -> Column:
    a = scope(expr.args[0])
    given = [None if each.dtype.base_type() == pl.Null else scope(each) for each in expr.args[1:8]]
    date, rows = date_of(scope, a), [a, *(each for each in given if each is not None)]
    type = scope.type(expr)
    scope.beside(*rows)
    columns = [None if each is None else cast_column(each, INT64, strict=True) for each in given]
    invalid: list[Tensor] = []
    unit = a.type.unit or "us"

    def ticks(_: Tensor, *values: Tensor) -> Tensor:
        found = iter(values)
        year, month, day = (
            old if new is None else next(found)
            for new, old in zip(columns[:3], (date.year, date.month, date.day), strict=True)
        )
        days, there = days_from_date(year, month, day)
        if a.type.meaning == "date":
            invalid.append(days.op.Not(there))
            return days.cast(a.type.dtype)
        clock = clock_of(scope, a)
        times = (clock.hour, clock.minute, clock.second)
        hour, minute, second = (
            old if new is None else next(found) for new, old in zip(columns[3:6], times, strict=True)
        )
        if columns[6] is None:
            fraction = integers.remainder_by(clock.ticks, TICKS[unit])
        else:
            fraction = next(found) * (TICKS[unit] // 10**6)
        time, fine = clocks.from_time(hour, minute, second, fraction, unit)
        made, fits = clocks.at(days, time, unit)
        invalid.append(made.op.Not(made.op.And(made.op.And(there, fine), fits)))
        return made

    made = elementwise(ticks, type, a, *(each for each in columns if each is not None))
    bad = invalid[0] if made.null is None else scope.op.And(invalid[0], scope.op.Not(made.null))
    return guarded(made, bad, "a date or time that does not exist")


@rule("dt.ToString")
def to_string(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    (format,) = expr.options
    type = scope.type(expr)
    if a.type.meaning == "duration" or (a.type.meaning == "time" and format == "iso"):
        raise UnsupportedError(f"{a.type} is not written as text in a graph: use its parts")
    return written(scope, a, str(format), type)


def written(scope: Scope, a: Column, format: str, type: ColumnType) -> Column:
    """The text of times in a format; a year that has not four digits is an error."""
    if a.type.meaning == "time":
        return elementwise(lambda _: time_format.strftime(clock_of(scope, a), format, "polars"), type, a)
    date = date_of(scope, a)
    if format == "iso":
        made = elementwise(
            lambda _: (
                time_format.date_text(date)
                if a.type.meaning == "date"
                else time_format.iso_text(clock_of(scope, a), " ")
            ),
            type,
            a,
        )
    else:
        moment = date if a.type.meaning == "date" else clock_of(scope, a)
        made = elementwise(lambda _: time_format.strftime(moment, format, "polars"), type, a)
    bad = scope.op.Not(time_format.has_plain_year(date, "polars"))
    null = a.masked().null
    return guarded(
        made, bad if null is None else scope.op.And(bad, scope.op.Not(null)), "a year of other than four digits"
    )


def perhaps_read(format: str) -> str:
    """A pattern of all that Polars may read in a format."""
    made = ""
    for part in time_format.directives(format):
        if part in ("%b", "%B", "%h", "%p", "%a", "%A"):
            made += r"\s*[A-Za-z]+"
        elif part == "%%":
            made += "%"
        elif part.startswith("%"):
            made += r"\s*[+-]?[0-9][0-9+:/. \t-]*" if part in ("%T", "%R", "%F", "%D", "%.f") else r"\s*[+-]?[0-9]+"
        else:
            made += "".join(r"\s*" if letter.isspace() else re.escape(letter) for letter in part)
    return f"(?s){made}.?"


def plain_form(format: str) -> str:
    """A pattern of texts in which every number has all its digits: what is no date then is none for Polars either."""
    numbers = {"%Y": "[0-9]{4}", "%S": "(?:[0-57-9][0-9]|6[1-9])", "%j": "[0-9]{3}", "%b": "[A-Za-z]{3}"}
    made = ""
    for part in time_format.directives(format):
        made += numbers.get(part, "[0-9]{2}") if part.startswith("%") else re.escape(part)
    return made


@rule("str.Strptime")
def strptime(scope: Scope, expr: Expr) -> Column:
    format, strict, exact, _ = expr.options
    a = scope(expr.args[0])
    op, type = scope.op, scope.type(expr)
    if not exact:
        raise UnsupportedError(
            "`exact=False` finds dates inside of texts, which has no form in a graph: cut them out before"
        )
    if type.meaning == "time":
        raise UnsupportedError("`str.to_time` has no form in a graph: put a date before it and use `str.to_datetime`")
    if format is None:
        if not strict or type.meaning != "date":
            raise UnsupportedError("a format that is found in the data has no form in a graph: give `format`")
        format = "%Y-%m-%d"
    unit = type.unit or "us"
    found = time_parse.parse(a.expanded().value if not a.is_scalar else a.value, str(format), unit, "polars")
    null = a.missing()
    if type.meaning == "date":
        value, valid = found.days.cast(type.dtype), found.valid
    else:
        value, valid = found.ticks(unit)
    made = Column(value, type, a.rows, null)
    # Polars reads signs, white space and other numbers of digits too, which are an error here, never another date.
    perhaps = op.RegexFullMatch(a.value, pattern=perhaps_read(str(format)))
    plainly = op.RegexFullMatch(a.value, pattern=plain_form(str(format)))
    unclear = op.And(op.And(perhaps, op.Not(plainly)), op.Not(found.valid))
    bad = op.Not(valid) if strict else unclear
    known = bad if null is None else op.And(bad, op.Not(null))
    made = guarded(made, known, f"a text that is not in the format {format}")
    return made if strict else made.with_null(op.Not(valid))
