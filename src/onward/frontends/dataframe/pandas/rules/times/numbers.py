"""Numbers as times and durations: pd.to_timedelta(df.n, unit="D"), and the same of datetimes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.times.common import fitting
from onward.frontends.dataframe.pandas.values import column_of
from onward.frontends.dataframe.tensors import integers
from onward.frontends.dataframe.tensors import numbers as floats
from onward.frontends.dataframe.tensors.time import clock
from onward.graph.build import Tensor

DIGITS = {"W": 14, "D": 13, "h": 12, "m": 10, "s": 9, "ms": 6, "us": 3}
"""The decimals to which pandas rounds a fraction of a unit before it makes nanoseconds of it."""
_UNITS = {
    "W": "W", "D": "D", "day": "D", "days": "D", "d": "D", "h": "h", "hour": "h", "hours": "h", "hr": "h", "m": "m",
    "min": "m", "minute": "m", "minutes": "m", "T": "m", "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "ms": "ms", "millisecond": "ms", "milliseconds": "ms", "us": "us", "microsecond": "us", "microseconds": "us",
    "ns": "ns", "nanosecond": "ns", "nanoseconds": "ns",
}  # fmt: skip


@rule("pandas.to_timedelta")
def to_timedelta(call: Call, arg: Any, unit: str | None = None, errors: str = "raise") -> Column:
    column = column_of(call, arg)
    if column.type.meaning == "duration":
        return column
    if column.type.is_text:
        raise call.refuse("text as a duration cannot be converted: cut its parts out, and give them as numbers")
    return from_numbers(call, column, unit or "ns", "duration", errors)


def from_numbers(call: Call, column: Column, unit: str, meaning: str, errors: str) -> Column:
    """Numbers that count a unit. Of floats that are not whole pandas makes nanoseconds, of others microseconds."""
    period = _UNITS.get(unit)
    if period is None or not column.type.is_number:
        raise call.refuse(f"{column.type} as times in {unit!r} cannot be converted")
    if errors not in ("raise", "coerce"):
        raise call.refuse(f"errors={errors!r} cannot be converted: use 'coerce' or 'raise'")
    own = call.type.unit
    if column.type.is_float and period != "ns" and own == "ns":
        return _of_fractions(column, period, meaning, errors)
    whole, missing, bad = whole_numbers(call, column, cuts=period == "ns")
    ticks, fits = clock.from_numbers(whole, period, own)
    made = Column(ticks, ColumnType(ir.DataType.INT64, meaning, own), column.rows, missing)
    if bad is not None:
        made = fitting(made, made.op.Not(bad), "numbers are not whole, as they are in the sample")
    return fitting(made, fits) if errors == "raise" else made.with_null(made.op.Not(fits))


def whole_numbers(call: Call, column: Column, *, cuts: bool = False) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Numbers as int64, where they are missing, and where they are no whole numbers; with `cuts` fractions are."""
    op, int64 = column.op, ir.DataType.INT64
    if column.type.dtype == ir.DataType.UINT64:
        raise call.refuse("uint64 cannot be converted to times: use astype('int64')")
    if not column.type.is_float:
        return column.value.cast(int64), column.null, None
    value = column.value.cast(ir.DataType.DOUBLE)
    missing = column.missing()
    outside = op.Not(op.Abs(value) < 2.0**63)
    bad = outside if cuts else op.Or(outside, op.Not(op.Equal(op.Floor(value), value)))
    if missing is not None:
        bad = op.And(bad, op.Not(missing))
    whole = op.Where(outside, op.like(0.0, value), value).cast(int64)
    return whole, missing, bad


def _of_fractions(column: Column, period: str, meaning: str, errors: str) -> Column:
    """Whole units and the rounded rest, each in nanoseconds."""
    op, double, int64 = column.op, ir.DataType.DOUBLE, ir.DataType.INT64
    scale = clock.ticks_of(period, "ns") or 10**9 // clock.per_second(period)
    value = column.value.cast(double)
    missing = column.missing()
    outside = op.Not(op.Abs(value) < 2.0**62)
    safe = op.Where(outside, op.like(0.0, value), value)
    base = safe.cast(int64)
    rest = floats.rounded(safe - base.cast(double), DIGITS[period])
    product, fits = integers.multiply_by(base, scale)
    total, also = integers.add(product, (rest * float(scale)).cast(int64))
    fits = op.And(op.And(fits, also), op.Not(outside))
    made = Column(total, ColumnType(ir.DataType.INT64, meaning, "ns"), column.rows, missing)
    return fitting(made, fits) if errors == "raise" else made.with_null(op.Not(fits))
