"""`+`, `-`, `*`, `/`, `//`, `%` of datetimes and durations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.types import FLOAT64, INT64, NAT, TICKS, ColumnType
from onward.frontends.dataframe.columns.column import Column, common_rows, either, elementwise, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Scalar
from onward.frontends.dataframe.pandas.rules.times.common import OUT_OF_RANGE, fitting, to_unit
from onward.frontends.dataframe.tensors import integers
from onward.graph.build import Tensor

LOWEST, HIGHEST = 1 - 2**63, 2**63 - 1
EXACT = 2**53
"""Up to here, floats hold every integer."""


@rule("part: arithmetic of times")
def arithmetic(call: Call, name: str, x: Column, y: Column, a: Any, b: Any) -> Column:
    """An operator of two columns, or a column and a value, one of which holds times. Pandas says what is allowed."""
    type = call.type
    if name in ("add", "sub"):
        return added(call, name, x, y, type)
    if x.type.meaning == y.type.meaning == "duration":
        return _ratio(call, name, x, y, b)
    number, value = (y, b) if x.type.is_time else (x, a)
    if name == "mul":
        return _times_number(call, x if x.type.is_time else y, number, value)
    if name in ("truediv", "floordiv") and x.type.is_time:
        return _by_number(call, x, number, value)
    raise call.refuse(f"{name} of {x.type} and {y.type} cannot be converted")


def added(call: Call, name: str, x: Column, y: Column, type: ColumnType) -> Column:
    """A sum or difference, in the finer unit of both; the model fails where it is out of range."""
    if not (type.is_time and x.type.is_time and y.type.is_time):
        raise call.refuse(f"{name} of {x.type} and {y.type} cannot be converted")
    x, y = to_unit(call, x, type.unit).masked(), to_unit(call, y, type.unit).masked()
    total = x.value + y.value if name == "add" else x.value - y.value
    made = Column(total, type, common_rows(x, y), either(x.null, y.null))
    return fitting(made, _sum_fits(name, x, y, total))


def _sum_fits(name: str, x: Column, y: Column, total: Tensor) -> Tensor:
    """Beside a constant a comparison tells; a null may be told not to fit, as it is not looked at.

    The lowest integer does not fit: it stands for a time that is missing, and pandas fails where it is a result.
    """
    known = _constant(y)
    if known is not None and known != NAT:
        step = known if name == "add" else -known
        return x.value <= HIGHEST - step if step >= 0 else x.value >= LOWEST - step
    known = _constant(x)
    if known is not None and name == "add" and known != NAT:
        return y.value <= HIGHEST - known if known >= 0 else y.value >= LOWEST - known
    if known is not None and known != NAT:
        # known - y fits unless y is far on the other side of 0.
        return y.value >= known - HIGHEST if known >= 0 else y.value <= known - LOWEST
    op = total.op
    if name == "sub":
        # A number less a larger one is negative, and no other difference is; the lowest is its own opposite.
        return op.Equal(x.value < y.value, -total > 0)
    return op.And(integers.add(x.value, y.value)[1], op.Not(op.Equal(total, NAT)))


def _constant(column: Column) -> int | None:
    found = column.value.value.const_value
    return int(found.numpy().reshape(-1)[0]) if found is not None and found.size == 1 else None


def _ratio(call: Call, name: str, x: Column, y: Column, divisor: Any) -> Column:
    unit = x.type.unit if TICKS[x.type.unit] >= TICKS[y.type.unit] else y.type.unit
    x, y = to_unit(call, x, unit).masked(), to_unit(call, y, unit).masked()
    double = ir.DataType.DOUBLE
    if name == "truediv":
        return elementwise(lambda p, q: p.cast(double) / q.cast(double), FLOAT64, x, y)
    known = _constant(y)
    positive = known if known is not None and known > 0 else None
    if name == "mod":
        if known == 0 or positive is None:
            raise call.refuse("the rest of a division by a duration is converted for a fixed positive one")
        return to_unit(call, elementwise(lambda p: integers.remainder_by(p, positive), x.type, x), call.type.unit)
    if name != "floordiv":
        raise call.refuse(f"{name} of two durations cannot be converted")

    def divide(p: Tensor, q: Tensor) -> Tensor:
        return integers.floor_divide(p, q) if positive is None else integers.floor_by(p, positive)

    # Pandas has integers where nothing is missing, and floats otherwise: both are the same up to 2**53.
    whole = elementwise(divide, x.type, x, y)
    made = Column(whole.value.cast(double), FLOAT64, whole.rows).with_null(whole.null)
    if positive is not None and positive >= 2**10:
        return made
    op = made.op
    too_large = op.Abs(made.value) > float(EXACT)
    return guarded(made, too_large, "a quotient of durations is beyond 2**53, more than floats hold exactly")


def _plain_number(call: Call, number: Column, value: Any) -> None:
    if not number.type.is_number or number.type.dtype == ir.DataType.UINT64:
        raise call.refuse(f"a duration goes with integers and floats, not with {number.type}: convert with astype")
    if isinstance(value, Scalar) and number.type.is_float:
        raise call.refuse("a number that is computed from the data is a float here: use onward.fitted, or a column")


def _whole(value: Any) -> int | None:
    """The number, if it is fixed and whole: pandas computes with integers then."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating) and value != 0 and float(value).is_integer():
        return int(value)
    return None


def _times_number(call: Call, x: Column, number: Column, value: Any) -> Column:
    _plain_number(call, number, value)
    x, type, known = to_unit(call, x, call.type.unit).masked(), call.type, _whole(value)
    if known is not None:
        made = elementwise(lambda p: p * known, type, x)
        return _in_limits(made, x, HIGHEST // max(abs(known), 1))
    if number.type.is_float:
        made = elementwise(lambda p, q: p.cast(ir.DataType.DOUBLE) * q.cast(ir.DataType.DOUBLE), FLOAT64, x, number)
        return _truncated(made, type, infinite_is_null=False)
    wide = number.cast(replace(INT64, masked=number.type.masked))
    product, fits = integers.multiply(x.value, wide.value)
    made = elementwise(lambda p, q: product, type, x, wide)
    return fitting(made, fits)


def _in_limits(made: Column, x: Column, limit: int) -> Column:
    op = made.op
    return fitting(made, op.And(x.value >= -limit, x.value <= limit))


def _by_number(call: Call, x: Column, number: Column, value: Any) -> Column:
    """Without the fraction, towards 0, in `//` too; by 0 it is NaT."""
    _plain_number(call, number, value)
    x, type, known = to_unit(call, x, call.type.unit).masked(), call.type, _whole(value)
    if known is not None and known > 0:
        return elementwise(lambda p: integers.truncate_by(p, known), type, x)
    if number.type.is_float and known is None:
        made = elementwise(lambda p, q: p.cast(ir.DataType.DOUBLE) / q.cast(ir.DataType.DOUBLE), FLOAT64, x, number)
        return _truncated(made, type, infinite_is_null=True)
    wide = number.cast(replace(INT64, masked=number.type.masked))
    made = elementwise(integers.truncate_divide, type, x, wide)
    return made.with_null(made.op.Equal(wide.value, made.op.like(0, wide.value)))


def _truncated(made: Column, type: ColumnType, *, infinite_is_null: bool) -> Column:
    """Floats as ticks; NaN is NaT."""
    op, value = made.op, made.value
    is_null = op.IsNaN(value)
    large = op.Abs(value) >= 2.0**63
    if infinite_is_null:
        infinite = op.IsInf(value)
        is_null, large = op.Or(is_null, infinite), op.And(large, op.Not(infinite))
    safe = op.Where(op.Or(is_null, large), op.like(0.0, value), value)
    column = Column(safe.cast(ir.DataType.INT64), type, made.rows, is_null)
    return guarded(column, large, OUT_OF_RANGE)
