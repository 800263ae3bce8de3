"""Times rounded, in other units, and as text: floor, normalize, as_unit, strftime, to_period."""

from __future__ import annotations

from typing import Any

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import INT64, TEXT
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, Trace, placed, rule
from onward.frontends.dataframe.pandas.proxies import Traced, asked, wrapped
from onward.frontends.dataframe.pandas.rules.times.common import fitting, moved, ticks_of, to_unit
from onward.frontends.dataframe.tensors import time_format, time_round
from onward.frontends.dataframe.tensors.clock import Clock, same_time, per_second
from onward.frontends.dataframe.tensors.time_offset import end_of_period
from onward.graph.build import Tensor


def length_of(call: Call, freq: Any, unit: str) -> int:
    """The ticks of a fixed length such as `15min`; 0 if it is shorter than a tick."""
    import pandas

    try:
        offset = pandas.tseries.frequencies.to_offset(freq)
        fixed = pandas.Timedelta(days=offset.n) if isinstance(offset, pandas.offsets.Day) else pandas.Timedelta(offset)
    except ValueError as error:
        raise call.refuse(f"{freq!r} is no fixed length: {error}") from error
    tick = 10**9 // per_second(unit)
    nanoseconds = int(fixed.as_unit("ns")._value)
    if nanoseconds < tick:
        return 0
    if nanoseconds % tick:
        raise call.refuse(f"{freq!r} is no whole number of ticks of {unit}: use .dt.as_unit('ns') first")
    return nanoseconds // tick


def rounded(call: Call, x: Any, freq: Any, how: str, ambiguous: Any, nonexistent: Any) -> Column:
    if ambiguous != "raise" or nonexistent != "raise":
        raise call.refuse("ambiguous and nonexistent are for time zones, which ONNX does not have")
    column = ticks_of(call, x)
    length = length_of(call, freq, column.type.unit)
    if length <= 1:
        return column
    functions = {
        "floor": (time_round.floor, time_round.fits_floor),
        "ceil": (time_round.ceil, time_round.fits_ceil),
        "round": (time_round.round_half_even, time_round.fits_round),
    }
    function, fits = functions[how]
    value = function(column.value, length)
    return moved(column, (value, fits(column.value, value)))


def _declare() -> None:
    for name in ("floor", "ceil", "round"):

        def to_length(
            call: Call, x: Any, freq: Any, ambiguous: Any = "raise", nonexistent: Any = "raise", name: str = name
        ) -> Column:
            return rounded(call, x, freq, name, ambiguous, nonexistent)

        rule(f"Series.dt.{name}", f"Scalar.{name}")(to_length)


_declare()


@rule("Series.dt.normalize", "Scalar.normalize")
def normalize(call: Call, x: Any) -> Column:
    ticks_of(call, x, "datetime")
    return rounded(call, x, "D", "floor", "raise", "raise")


@rule("Series.dt.as_unit", "Scalar.as_unit")
def as_unit(call: Call, x: Any, unit: str, round_ok: bool = True) -> Column:
    if not round_ok:
        raise call.refuse("round_ok=False raises for some values: leave it out")
    return to_unit(call, ticks_of(call, x), unit)


def text_of(call: Call, column: Column, format: str) -> Column:
    """In a format of strftime; the model fails for years that are not written in four digits."""
    clock = Clock(column.value, column.type.unit)
    made = column.of(time_format.strftime(clock, format), TEXT)
    plain = format.replace("%%", "")
    has_year = any(directive in plain for directive in ("%Y", "%G", "%y", "%F", "%D", "%c", "%x"))
    if column.type.unit == "ns" or not has_year:
        return made
    return fitting(made, time_format.has_plain_year(clock.date), "a year is not written in four digits")


@rule("Series.dt.strftime", "Scalar.strftime")
def strftime(call: Call, x: Any, date_format: str) -> Column:
    return text_of(call, ticks_of(call, x, "datetime"), date_format)


@rule("Series.dt.day_name", "Scalar.day_name")
def day_name(call: Call, x: Any, locale: Any = None) -> Column:
    return _name(call, x, locale, "%A")


@rule("Series.dt.month_name", "Scalar.month_name")
def month_name(call: Call, x: Any, locale: Any = None) -> Column:
    return _name(call, x, locale, "%B")


def _name(call: Call, x: Any, locale: Any, format: str) -> Column:
    if locale is not None:
        raise call.refuse("a locale cannot be converted: map the numbers to names")
    return text_of(call, ticks_of(call, x, "datetime"), format)


class Periods(Traced):
    """A column of periods: ONNX has no data for them, but for their text and where they start."""

    __slots__ = ("column", "freq")
    kind = "Periods"

    def __init__(self, trace: Trace, real: Any, column: Column, freq: str) -> None:
        super().__init__(trace, real)
        self.column = column
        self.freq = freq

    @property
    def dt(self) -> PeriodParts:
        return PeriodParts(self)


class PeriodParts(Traced):
    """`.dt` of a column of periods."""

    __slots__ = ("owner",)
    kind = "Periods.dt"

    def __init__(self, owner: Periods) -> None:
        super().__init__(owner.trace, owner.real.dt)
        self.owner = owner

    def _ask(self, full: str, run: Any, /, *args: Any, **kwargs: Any) -> Any:
        call, result = asked(self.trace, full, run, self.owner, *args, **kwargs)
        return wrapped(call, result)


_TEXTS = {"M": "%Y-%m", "Y": "%Y", "D": "%Y-%m-%d"}
_STARTS = {"M": "month_start", "Q": "quarter_start", "Y": "year_start"}


@rule("Series.dt.to_period")
def to_period(call: Call, x: Any, freq: Any = None) -> Periods:
    column = ticks_of(call, x, "datetime")
    name = str(call.real.dtype).removeprefix("period[").removesuffix("]")
    short = {"M": "M", "Q-DEC": "Q", "Y-DEC": "Y", "D": "D"}.get(name)
    if short is None:
        raise call.refuse(f"periods of {name} cannot be converted: use M, Q, Y or D, or .dt.floor")
    return Periods(call.trace, call.real, column, short)


def _period_start(call: Call, periods: Periods) -> Column:
    column = periods.column
    clock = Clock(column.value, column.type.unit)
    if periods.freq == "D":
        value = time_round.floor(column.value, 86_400 * per_second(column.type.unit))
        return moved(column, (value, time_round.fits_floor(column.value, value)))
    days = getattr(clock.date, _STARTS[periods.freq])
    return moved(column, _at_midnight(clock, days))


def _at_midnight(clock: Clock, days: Tensor) -> tuple[Tensor, Tensor]:
    from onward.frontends.dataframe.tensors.clock import at

    return at(days, None, clock.unit)


@rule("Periods.dt.to_timestamp", "Periods.dt.start_time")
def to_timestamp(call: Call, periods: Periods, freq: Any = None, how: str = "start") -> Column:
    if freq is not None or how.lower() not in ("s", "start"):
        raise call.refuse("it is converted for the start of the period only: use how='start' without freq")
    return to_unit(call, _period_start(call, periods), call.type.unit)


@rule("Periods.astype")
def period_astype(call: Call, periods: Periods, dtype: Any, copy: Any = None) -> Column:
    import pandas

    name = str(pandas.api.types.pandas_dtype(dtype))
    if name.startswith("datetime64"):
        return to_unit(call, _period_start(call, periods), call.type.unit)
    if dtype is not str and name not in ("str", "string", "<U0"):
        raise call.refuse("periods become text or times only: use .astype(str), or .dt.to_timestamp()")
    if periods.freq != "Q":
        return text_of(call, periods.column, _TEXTS[periods.freq])
    column = periods.column
    clock = Clock(column.value, column.type.unit)
    year = text_of(call, column, "%Y")
    from onward.frontends.dataframe.tensors.calendar import look_up

    return year.of(column.op.StringConcat(year.value, look_up(["", "Q1", "Q2", "Q3", "Q4"], clock.date.quarter)))


def _declare_parts() -> None:
    for name in ("year", "month", "quarter", "day", "dayofweek", "day_of_week", "weekday", "days_in_month"):

        def part(call: Call, periods: Periods, name: str = name) -> Column:
            """What is missing is -1 in pandas."""
            column = periods.column
            if name in ("day", "dayofweek", "day_of_week", "weekday") and periods.freq != "D":
                raise call.refuse("it is that of the last day of the period: ask the times themselves")
            date = Clock(column.value, column.type.unit).date
            if periods.freq in ("Q", "Y"):
                from onward.frontends.dataframe.tensors.calendar import Civil

                date = Civil(end_of_period(date, 0, {"Q": 3, "Y": 12}[periods.freq]))
            names = {"dayofweek": "weekday", "day_of_week": "weekday"}
            value = getattr(date, names.get(name, name))
            if column.null is not None:
                value = value.op.Where(column.null, value.op.like(-1, value), value)
            return Column(value, INT64, column.rows)

        rule(f"Periods.dt.{name}")(part)


_declare_parts()

__all__ = ["Periods", "UnsupportedError", "placed"]
