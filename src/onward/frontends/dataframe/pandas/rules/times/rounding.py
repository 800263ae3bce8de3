"""Times rounded, in other units, and as text: floor, normalize, as_unit, strftime, day_name."""

from __future__ import annotations

from typing import Any

from onward.formats.dataframe.types import TEXT
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.times.common import fitting, moved, ticks_of, to_unit
from onward.frontends.dataframe.tensors.time import time_format, time_round
from onward.frontends.dataframe.tensors.time.clock import Clock, per_second


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
