"""Arithmetic of Polars: operators, and functions of numbers one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import TICKS, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, constant_of, is_constant, literal_value, rule, spoken
from onward.frontends.dataframe.tensors import integers, numbers
from onward.graph.build import Tensor

DAY = 86_400


def ticks_per_day(unit: str) -> int:
    return DAY * TICKS[unit]


@rule("binary.Plus", "binary.Minus", "binary.Multiply")
def plus_minus_times(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    type = scope.type(expr)
    if type.is_text:
        return elementwise(lambda x, y: x.op.StringConcat(x, y), type, a, b)
    if type.meaning or a.type.meaning or b.type.meaning:
        return _times(expr, a, b, type)
    name = {"binary.Plus": "Add", "binary.Minus": "Sub", "binary.Multiply": "Mul"}[expr.kind]
    a, b = a.cast(type), b.cast(type)
    return elementwise(lambda x, y: getattr(x.op, name)(x, y), type, a, b)


def _times(expr: Expr, a: Column, b: Column, type: ColumnType) -> Column:
    """Of dates, datetimes and durations."""
    if expr.kind == "binary.Multiply":
        duration, factor = (a, b) if a.type.meaning else (b, a)
        return _scaled(duration, factor, type)
    name = "Add" if expr.kind == "binary.Plus" else "Sub"
    if type.meaning == "date":
        moved, by = (a, b) if a.type.meaning == "date" else (b, a)
        unit = by.type.unit
        days = in_ticks(moved, unit)
        made = elementwise(lambda x, y: getattr(x.op, name)(x, y), days.type, days, in_unit(by, unit))
        return to_days(made, type)
    if type.meaning == "time":
        raise UnsupportedError(f"`{spoken(expr.kind)}` of a time has no form in a graph")
    return elementwise(lambda x, y: getattr(x.op, name)(x, y), type, in_ticks(a, type.unit), in_ticks(b, type.unit))


def _scaled(duration: Column, factor: Column, type: ColumnType) -> Column:
    if factor.type.is_float:
        product = elementwise(lambda x, y: x.op.Mul(x.cast(y.dtype), y), factor.type, duration, factor)
        return whole(product, type, strict=False)
    return elementwise(lambda x, y: x.op.Mul(x, y.cast(x.dtype)), type, duration, factor)


def in_ticks(column: Column, unit: str) -> Column:
    """A date as a datetime, and ticks in another unit."""
    if column.type.meaning == "date":
        made = ColumnType(ir.DataType.INT64, "datetime", unit, masked=True)
        return elementwise(lambda x: x.op.Mul(x.cast(ir.DataType.INT64), ticks_per_day(unit)), made, column)
    return in_unit(column, unit)


def in_unit(column: Column, unit: str) -> Column:
    """Ticks in another unit: rounded down in datetimes, towards 0 in durations."""
    old, new = TICKS[column.type.unit], TICKS[unit]
    type = replace(column.type, unit=unit)
    if old == new:
        return column
    if new > old:
        return elementwise(lambda x: x.op.Mul(x, new // old), type, column)
    by = old // new
    if column.type.meaning == "duration":
        return elementwise(lambda x: integers.truncate_by(x, by), type, column)
    return elementwise(lambda x: integers.floor_by(x, by), type, column)


def to_days(column: Column, type: ColumnType) -> Column:
    """The date of a datetime."""
    by = ticks_per_day(column.type.unit)
    return elementwise(lambda x: integers.floor_by(x, by).cast(type.dtype), type, column)


@rule("binary.TrueDivide", "binary.Divide")
def divide(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    type = scope.type(expr)
    if type.meaning == "duration":
        if b.type.is_float:
            quotient = elementwise(lambda x, y: x.op.Div(x.cast(y.dtype), y), b.type, a, b)
            return whole(quotient, type, strict=False)
        return _divided(a, b.cast(replace(type, meaning="", unit="")), type, integers.truncate_divide)
    if a.type.meaning:
        unit = a.type.unit if TICKS[a.type.unit] <= TICKS[b.type.unit] else b.type.unit
        a, b = in_unit(a, unit), in_unit(b, unit)
    if not type.is_float:
        raise UnsupportedError(f"`/` of {a.type} has no form in a graph")
    return elementwise(lambda x, y: x.op.Div(x.cast(type.dtype), y.cast(type.dtype)), type, a, b)


@rule("binary.FloorDivide")
def floor_divide(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    type = scope.type(expr)
    a, b = a.cast(type), b.cast(type)
    if type.is_float:
        return elementwise(lambda x, y: x.op.Floor(x.op.Div(x, y)), type, a, b)
    if is_constant(b) and int(constant_of(b)) > 0:
        by = int(constant_of(b))
        return elementwise(lambda x: integers.floor_by(x, by), type, a)
    _refuse_zero(scope, expr)
    return _divided(a, b, type, integers.floor_divide)


@rule("binary.Modulus")
def modulus(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    type = scope.type(expr)
    a, b = a.cast(type), b.cast(type)
    if type.is_float:
        return elementwise(lambda x, y: x.op.Sub(x, x.op.Mul(y, x.op.Floor(x.op.Div(x, y)))), type, a, b)
    if is_constant(b) and int(constant_of(b)) > 0:
        by = int(constant_of(b))
        return elementwise(lambda x: integers.remainder_by(x, by), type, a)
    _refuse_zero(scope, expr)
    return _divided(a, b, type, integers.floor_remainder)


def _refuse_zero(scope: Scope, expr: Expr) -> None:
    if scope.nan_is_null:
        raise UnsupportedError(
            f"`{spoken(expr.kind)}` of integers by what may be 0 is not the same in pandas and Polars: cast to Float64"
        )


def _divided(a: Column, b: Column, type: ColumnType, function: Callable[[Tensor, Tensor], Tensor]) -> Column:
    """Of integers: a divisor of 0 gives null."""
    made = elementwise(function, type, a, b)
    if is_constant(b) and int(constant_of(b)) != 0:
        return made
    return made.with_null(b.op.Equal(b.value, b.op.like(0, b.value)))


def whole(floats: Column, type: ColumnType, *, strict: bool) -> Column:
    """Floats as integers, without their fractions. What does not fit is null, or an error if `strict`."""
    low, high = _range(type)

    op, x = floats.op, floats.value
    inside = op.And(op.Greater(x, op.like(low, x)), op.Less(x, op.like(high, x)))
    outside = op.Not(inside)
    safe = replace(floats, value=op.Where(inside, x, op.like(0, x)))
    made = elementwise(lambda x: x.op.Cast(x, to=int(type.dtype)), type, safe)
    return limited(made, floats, outside, strict, f"a number that is no {type}")


def limited(made: Column, source: Column, bad: Tensor, strict: bool, problem: str) -> Column:
    """What could not be converted: null, or an error if `strict`."""
    if not strict:
        return made.with_null(bad)
    null = source.missing()
    return guarded(made, bad if null is None else bad.op.And(bad, bad.op.Not(null)), problem)


def _range(type: ColumnType) -> tuple[float, float]:
    """The floats just outside of what fits, on both sides."""
    info = np.iinfo(type.dtype.numpy())
    low = float(info.min) - 1 if info.bits < 64 else math.nextafter(float(info.min), -math.inf)
    low = -1.0 if info.min == 0 else low
    return low, float(int(info.max) + 1)


@rule("negate")
def negate(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    type = scope.type(expr)
    return elementwise(lambda x: x.op.Sub(x.op.like(0, x), x) if not type.is_float else x.op.Neg(x), type, a)


@rule("abs")
def absolute(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    if a.type.dtype.is_integer() and not a.type.dtype.is_signed():
        return a
    return elementwise(lambda x: x.op.Abs(x), a.type, a)


@rule("sign")
def sign(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    if not a.type.is_float:
        return elementwise(_sign_of_int, a.type, a)
    return elementwise(lambda x: x.op.Where(x.op.IsNaN(x), x, x.op.Sign(x)), a.type, a)


def _sign_of_int(x: Tensor) -> Tensor:
    op, dtype = x.op, int(x.dtype)
    return op.Sub(op.Cast(op.Greater(x, op.like(0, x)), to=dtype), op.Cast(op.Less(x, op.like(0, x)), to=dtype))


@rule("floor", "ceil")
def floor_or_ceil(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    if not a.type.is_float:
        return a
    name = expr.kind.capitalize()
    return elementwise(lambda x: getattr(x.op, name)(x), a.type, a)


@rule("round")
def round_to(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    if not a.type.is_float:
        return a
    decimals, mode = int(expr.options[0]), str(expr.options[1])
    if mode not in ("half_to_even", "half_away_from_zero"):
        raise UnsupportedError(f"`round` in the mode {mode} has no form in a graph: use half_to_even")

    def nearest(x: Tensor) -> Tensor:
        if mode == "half_to_even":
            return x.op.Round(x)
        # Away from zero: the part before the point, and one more where the rest is a half or above.
        op, size = x.op, x.op.Abs(x)
        down = op.Floor(size)
        up = op.Cast(op.GreaterOrEqual(op.Sub(size, down), op.like(0.5, x)), to=int(x.dtype))
        return op.Where(op.IsInf(size), x, op.Mul(op.Sign(x), op.Add(down, up)))

    def rounded(x: Tensor) -> Tensor:
        if decimals == 0:
            return nearest(x)
        op = x.op
        by = op.like(10.0**decimals, x)
        scaled = op.Mul(x, by)
        return op.Where(op.IsInf(scaled), x, op.Div(nearest(scaled), by))

    return elementwise(rounded, a.type, a)


@rule("truncate")
def truncate(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    if not a.type.is_float:
        return a
    if expr.options and int(expr.options[0]) != 0:
        raise UnsupportedError("`truncate` to decimals has no form in a graph: multiply before and divide after it")
    return elementwise(lambda x: x.op.Mul(x.op.Sign(x), x.op.Floor(x.op.Abs(x))), a.type, a)


@rule("pow")
def power(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    type = scope.type(expr)
    if type.is_float:
        return _float_power(a, b, type)
    if not is_constant(b):
        raise UnsupportedError("`**` of integers with an exponent that is no constant: cast one of them to Float64")
    exponent = int(constant_of(b))
    if exponent < 0:
        raise UnsupportedError("an integer to a negative power is an error in Polars: cast it to Float64 before")
    if exponent > 64:
        raise UnsupportedError("integers to powers above 64 have no form in a graph: cast them to Float64 before")
    a = a.cast(type)
    return elementwise(lambda x: _whole_power(x, exponent), type, a)


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    """By squares and products, which wrap as Polars does."""
    made: Tensor | None = None
    square = x
    while exponent:
        if exponent & 1:
            made = square if made is None else made.op.Mul(made, square)
        exponent >>= 1
        if exponent:
            square = square.op.Mul(square, square)
    return x.op.filled(x, 1) if made is None else made


def _float_power(a: Column, b: Column, type: ColumnType) -> Column:
    a, b = a.cast(type), b.cast(type)
    if is_constant(b):
        exponent = float(constant_of(b))
        if exponent == 1:
            return a
        if exponent == 2:
            return elementwise(lambda x: x.op.Mul(x, x), type, a)
        if exponent == 0.5:
            return elementwise(lambda x: x.op.Pow(x, x.op.like(0.5, x)), type, a)
    return elementwise(lambda x, y: x.op.Pow(x, y), type, a, b)


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: getattr(x.op, name)(x)


def _scaled_by(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda x: x.op.Mul(x, x.op.like(factor, x))


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": _unary("Sqrt"),
    "exp": _unary("Exp"),
    "sin": _unary("Sin"),
    "cos": _unary("Cos"),
    "tan": numbers.tan,
    "sinh": numbers.sinh,
    "cosh": numbers.cosh,
    "tanh": numbers.tanh,
    "arcsin": numbers.arcsin,
    "arccos": numbers.arccos,
    "arctan": numbers.arctan,
    "log1p": numbers.log1p,
    "cbrt": numbers.cbrt,
    "degrees": _scaled_by(180 / math.pi),
    "radians": _scaled_by(math.pi / 180),
}


@rule(*_FUNCTIONS)
def function_of_float(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    type = scope.type(expr)
    if not type.is_float:
        raise UnsupportedError(f"`{expr.kind}` of {a.type} has no form in a graph: cast it to Float64 before")
    return elementwise(lambda x: _FUNCTIONS[expr.kind](x), type, a.cast(type))


@rule("atan2")
def angle(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    y, x = (column.cast(type) for column in scope.all(expr))
    return elementwise(numbers.arctan2, type, y, x)


@rule("log")
def logarithm(scope: Scope, expr: Expr) -> Column:
    a = scope(expr.args[0])
    base = float(literal_value(expr.args[1], "the base of a logarithm"))
    type = scope.type(expr)

    def log(x: Tensor) -> Tensor:
        op = x.op
        return op.Log(x) if base == math.e else op.Div(op.Log(x), op.like(math.log(base), x))

    return elementwise(log, type, a.cast(type))
