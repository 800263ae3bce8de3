"""Text and numbers as times: pd.to_datetime of text, of numbers and of columns of years, months and days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, common_rows, either
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame
from onward.frontends.dataframe.pandas.rules.times.common import fitting
from onward.frontends.dataframe.pandas.rules.times.doubt import unclear, unclear_if_guessed
from onward.frontends.dataframe.pandas.rules.times.numbers import from_numbers, whole_numbers
from onward.frontends.dataframe.pandas.values import column_of
from onward.frontends.dataframe.tensors import integers
from onward.frontends.dataframe.tensors.time import time_parse
from onward.frontends.dataframe.tensors.time.calendar import days_from_date
from onward.frontends.dataframe.tensors.time.clock import at
from onward.graph.build import Tensor

NOT_READ = "a text is not a date in the format that pd.to_datetime reads"
UNCLEAR = "a text is a date that pandas may read in another way: clean it, or give pd.to_datetime its format"
MISSING = "NaT|nat|NAT|nan|NaN|NAN|"
"""What pandas takes for missing."""
DIGITS_OF_NANOSECONDS = r"(?s:.*\.[0-9]{7,}.*)"
AMBIGUOUS = "2001-02-03 04:05:06.789"
"""A date that reads in several ways: the format that pandas guesses for it is the one it prefers."""
_FIELDS = {"year": "year", "month": "month", "day": "day", "hour": "h", "minute": "m", "second": "s",
           "millisecond": "ms", "ms": "ms", "microsecond": "us", "us": "us"}  # fmt: skip
_TICKS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}


@rule("pandas.to_datetime")
def to_datetime(
    call: Call,
    arg: Any,
    errors: str = "raise",
    dayfirst: bool = False,
    yearfirst: bool = False,
    utc: bool = False,
    format: str | None = None,
    exact: bool = True,
    unit: str | None = None,
    origin: Any = "unix",
    cache: bool = True,
) -> Any:
    if utc:
        raise call.refuse("utc=True gives times with a time zone, which ONNX does not have: leave it out")
    if origin != "unix" or yearfirst or not exact:
        raise call.refuse("origin, yearfirst and exact cannot be converted: give the format, or add the origin")
    if isinstance(arg, Frame | Mapping):
        return _assembled(call, arg, errors)
    column = column_of(call, arg)
    if column.type.categories is not None:
        column = call.part("part: to labels", column)
    if column.type.meaning == "datetime":
        return column
    if column.type.is_text:
        return _of_text(call, column, arg.real, errors, format, dayfirst)
    if format is not None:
        return _of_digits(call, column, errors, format)
    if unit is None and column.type.is_float:
        raise call.refuse("floats need a unit: unit='s', …")
    return from_numbers(call, column, unit or "ns", "datetime", errors)


def _of_text(call: Call, column: Column, real: Any, errors: str, format: str | None, dayfirst: bool) -> Column:
    present = real.dropna()
    guessed = format is None
    if format is None:
        format = _guessed(call, present, dayfirst)
    if format == "mixed":
        raise call.refuse("format='mixed' guesses for every row: give the format, or 'ISO8601'")
    # Of no text at all pandas gives seconds.
    unit = call.type.unit if len(present) else "us"
    op, text = column.op, column.value
    parsed = time_parse.parse_iso(text, unit) if format == "ISO8601" else time_parse.parse(text, format, unit)
    value, valid = parsed.ticks(unit)
    missing = op.RegexFullMatch(text, pattern=MISSING)
    missing = missing if column.null is None else op.Or(missing, column.null)
    made = Column(value, ColumnType(ir.DataType.INT64, "datetime", unit), column.rows, missing)
    if unit != "ns" and ("%f" in format or format == "ISO8601"):
        finer = op.RegexFullMatch(text, pattern=DIGITS_OF_NANOSECONDS)
        made = fitting(made, op.Not(finer), "a text has digits of nanoseconds, which the sample has not")
    if errors == "raise":
        return fitting(made, valid, NOT_READ)
    if errors != "coerce":
        raise call.refuse(f"errors={errors!r} cannot be converted: use 'coerce' or 'raise'")
    if format == "ISO8601":
        doubt = parsed.unclear
    elif guessed:
        doubt = unclear_if_guessed(column, parsed, format, valid, missing)
    else:
        doubt = unclear(text, format, valid)
    return fitting(made, op.Not(doubt), UNCLEAR).with_null(op.Not(valid))


def _guessed(call: Call, present: Any, dayfirst: bool) -> str:
    """The format that pandas guesses from the first row, if it would guess the same from any row of that format."""
    import pandas

    if not len(present):
        raise call.refuse("the sample has no text to guess the format from: give format='…'")
    guess = pandas.tseries.api.guess_datetime_format
    first = str(present.iloc[0])
    format = guess(first, dayfirst=dayfirst)
    if format is None:
        raise call.refuse(f"pandas guesses no format for {first!r}, and reads each row by itself: give format='…'")
    words = [directive for directive in ("%b", "%B", "%p", "%z") if directive in format]
    text = pandas.Timestamp(AMBIGUOUS).strftime(format)
    if words or guess(text, dayfirst=dayfirst) != format:
        raise call.refuse(
            f"the format {format!r} is guessed from the first row, and other rows let pandas guess otherwise: "
            f"give format={format!r}"
        )
    return str(format)


def _of_digits(call: Call, column: Column, errors: str, format: str) -> Column:
    """Numbers such as 20240105, which pandas reads as text in the format."""
    if format not in ("%Y%m%d", "%Y%m", "%Y"):
        raise call.refuse(f"numbers in the format {format!r} cannot be converted: make them text first")
    whole, missing, bad = whole_numbers(call, column, cuts=True)
    op = column.op
    low, high = {"%Y%m%d": (10_000_000, 99_999_999), "%Y%m": (100_000, 999_999), "%Y": (1000, 9999)}[format]
    one = op.constant(np.ones((1, 1), np.int64))
    year, month, day = whole, one, one
    if format == "%Y%m%d":
        year, month, day = whole / 10_000, integers.remainder_by(whole / 100, 100), integers.remainder_by(whole, 100)
    elif format == "%Y%m":
        year, month = whole / 100, integers.remainder_by(whole, 100)
    days, exists = days_from_date(year, month, day)
    value, fits = at(days, None, "us")
    type = ColumnType(ir.DataType.INT64, "datetime", "us")
    plain = op.And(whole >= low, whole <= high)
    if bad is not None:
        plain = op.And(plain, op.Not(bad))
    made = fitting(Column(value, type, column.rows, missing), plain, f"a number has not the digits of {format}")
    valid = op.And(exists, fits)
    return fitting(made, valid, NOT_READ) if errors == "raise" else made.with_null(op.Not(valid))


def _assembled(call: Call, parts: Any, errors: str) -> Column:
    """Of columns of years, months and days, and hours and so on."""
    given: dict[str, Column] = {}
    for name in parts:
        field = _FIELDS.get(str(name).lower().removesuffix("s") if len(str(name)) > 2 else str(name))
        if field is None:
            raise call.refuse(f"a column {name!r} of parts of a date cannot be converted")
        given[field] = column_of(call, parts.series(name) if isinstance(parts, Frame) else parts[name])
    if missing_field := {"year", "month", "day"} - set(given):
        raise UnsupportedError(f"pandas.to_datetime needs a column {sorted(missing_field)[0]}")
    op, rows = call.op, common_rows(*given.values())
    missing: Tensor | None = None
    bad: Tensor | None = None
    numbers: dict[str, Tensor] = {}
    for field, column in given.items():
        if column.type.is_bool or column.type.is_text or column.type.masked:
            raise call.refuse(f"parts of a date are numbers, not {column.type}: convert with astype")
        whole, lost, wrong = whole_numbers(call, column)
        numbers[field] = whole
        missing = either(missing, lost)
        if field in _TICKS:
            small = op.And(whole >= -(2**31), whole < 2**31)
            wrong = either(wrong, op.Not(small))
        bad = either(bad, wrong)
    days, exists = days_from_date(numbers["year"], numbers["month"], numbers["day"])
    value, fits = at(days, None, "us")
    valid = op.And(exists, fits)
    for field, ticks in _TICKS.items():
        if field in numbers:
            value, fits = integers.add(value, numbers[field] * ticks)
            valid = op.And(valid, fits)
    made = Column(value, ColumnType(ir.DataType.INT64, "datetime", "us"), rows, missing)
    if bad is not None:
        made = fitting(made, op.Not(bad), "a part of a date is no whole number")
    if errors == "raise":
        return fitting(made, valid, "there is no such date")
    return made.with_null(op.Not(valid))


@rule("pandas.date_range")
def date_range(call: Call, *args: Any, **options: Any) -> Any:
    raise call.refuse("how many rows it gives depends on the data: use times of the frame")


def _declare_refusals() -> None:
    why = "it makes rows of a calendar: group by .dt.floor(…) or by parts of the time"
    for name in ("Series.resample", "DataFrame.resample", "Series.asfreq", "DataFrame.asfreq"):

        def refused(call: Call, *args: Any, **options: Any) -> Any:
            raise call.refuse(why)

        rule(name)(refused)


_declare_refusals()
