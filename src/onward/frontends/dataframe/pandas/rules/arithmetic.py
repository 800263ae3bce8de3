"""`+`, `-`, `*`, `/`, `//`, `%`, `**` of columns, and functions of one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.types import FLOAT64, INT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Series
from onward.frontends.dataframe.pandas.values import beside, column_of, is_missing, literal, to_type
from onward.frontends.dataframe.tensors import numbers
from onward.graph.build import Tensor

OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")


def binary(call: Call, name: str, a: Any, b: Any) -> Column:
    """An operator of two columns, or of a column and a value."""
    if _is_offset(a) or _is_offset(b):
        return _column(call.part("part: times by offset", name, a, b))
    x, y = operands(call, a, b)
    if x.type.is_text or y.type.is_text:
        return _column(call.part("part: arithmetic of text", name, x, y, a, b))
    if x.type.meaning or y.type.meaning:
        return _column(call.part("part: arithmetic of times", name, x, y, a, b))
    return number_arithmetic(call, name, x, y, divisor=b)


def _column(made: Any) -> Column:
    assert isinstance(made, Column)
    return made


def _is_offset(value: Any) -> bool:
    import pandas

    return isinstance(value, pandas.offsets.BaseOffset)


def operands(call: Call, a: Any, b: Any) -> list[Column]:
    """Two sides of an operator. A number takes on the type of the column beside it, as in numpy."""
    x = column_of(call, a) if hasattr(a, "column") else None
    y = column_of(call, b, None if x is None else x.type)
    return beside(call, x if x is not None else column_of(call, a, y.type), y)


def number_arithmetic(call: Call, name: str, x: Column, y: Column, divisor: Any = None) -> Column:
    type = call.type
    if type.categories is not None:
        raise call.refuse("categories have no arithmetic")
    if name in ("floordiv", "mod"):
        return _divided(call, name, x, y, type, divisor)
    if name == "pow":
        return _power(call, x, y, type, divisor)
    functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "add": lambda p, q: p + q,
        "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q,
        "truediv": lambda p, q: p / q,
    }
    if type.is_bool:
        logic = {"add": lambda p, q: p.op.Or(p, q), "mul": lambda p, q: p.op.And(p, q)}
        if name not in logic:
            raise call.refuse(f"booleans have no {name}")
        return elementwise(logic[name], type, x, y)
    return elementwise(functions[name], type, to_type(call, x, type), to_type(call, y, type))


def _divided(call: Call, name: str, x: Column, y: Column, type: ColumnType, divisor: Any) -> Column:
    if x.type.is_int and y.type.is_int and x.rows.is_array and y.rows.is_array:
        raise call.refuse("arrays of integers give 0 where a divisor is 0: divide the columns, without .values")
    known = divisor if isinstance(divisor, int | np.integer) and not isinstance(divisor, bool) else None
    if type.is_int or (not type.is_float and known is None):
        if known:
            function = numbers.floor_division if name == "floordiv" else numbers.modulo
            return elementwise(function, type, to_type(call, x, type), to_type(call, y, type))
        if type.masked:
            raise call.refuse("integers with nulls are divided by a column, which may be 0: divide with / instead")
        type = FLOAT64  # where a divisor is 0, pandas gives inf or NaN, in floats
    if x.type.is_int and y.type.is_int:
        # Integers beyond 2**53 are divided as integers, and only then made floats.
        return _divided_integers(name, x, y)
    function = numbers.float_floor_division if name == "floordiv" else numbers.float_modulo
    return elementwise(function, type, to_type(call, x, type), to_type(call, y, type))


def _divided_integers(name: str, x: Column, y: Column) -> Column:
    def divide(p: Tensor, q: Tensor) -> Tensor:
        op = p.op
        zero = op.Equal(q, op.like(0, q))
        safe = op.Where(zero, op.like(1, q), q)
        whole = (numbers.floor_division if name == "floordiv" else numbers.modulo)(p, safe).cast(ir.DataType.DOUBLE)
        if name == "mod":
            return op.Where(zero, op.like(float("nan"), whole), whole)
        return op.Where(zero, p.cast(ir.DataType.DOUBLE) / op.like(0.0, whole), whole)

    return elementwise(divide, FLOAT64, x.cast(INT64), y.cast(INT64))


def _power(call: Call, x: Column, y: Column, type: ColumnType, exponent: Any) -> Column:
    is_number = isinstance(exponent, int | float | np.number) and not isinstance(exponent, bool)
    if type.is_int:
        if not is_number or not 0 <= exponent <= 64:
            raise call.refuse("a power of integers needs a fixed exponent from 0 to 64: make the base a float first")
        return elementwise(lambda p: numbers.whole_power(p, int(exponent)), type, to_type(call, x, type))
    x = to_type(call, x, type)
    if is_number and exponent in (2, 0.5, 1, -1):
        return elementwise(lambda p: numbers.simple_power(p, float(exponent)), type, x)
    return elementwise(lambda p, q: p.op.Pow(p, q), type, x, to_type(call, y, type))


def _declare_operators() -> None:
    for name in OPERATORS:

        def operator(call: Call, a: Any, b: Any, name: str = name) -> Column:
            return binary(call, name, a, b)

        def method(call: Call, a: Any, b: Any, fill_value: Any = None, name: str = name) -> Column:
            return binary(call, name, *filled_for(call, a, b, fill_value))

        def swapped(call: Call, a: Any, b: Any, fill_value: Any = None, name: str = name) -> Column:
            if fill_value is not None:
                raise call.refuse("fill_value with swapped sides: swap them, and use the plain method")
            return binary(call, name, b, a)

        ufunc = {"sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"}.get(name, name)
        rule(f"Series.__{name}__", f"numpy.{'power' if name == 'pow' else 'remainder' if name == 'mod' else ufunc}")(
            operator
        )
        rule(f"Series.{name}")(method)
        rule(f"Series.r{name}")(swapped)
    for alias, name in {"subtract": "sub", "multiply": "mul", "div": "truediv", "divide": "truediv"}.items():

        def other(call: Call, a: Any, b: Any, fill_value: Any = None, name: str = name) -> Column:
            return binary(call, name, *filled_for(call, a, b, fill_value))

        rule(f"Series.{alias}")(other)


def filled_for(call: Call, a: Any, b: Any, value: Any) -> tuple[Any, Any]:
    """The sides of an operator with a number in place of what is missing in one of them; not where both are."""
    if value is None:
        return a, b
    if not (isinstance(a, Series) and isinstance(b, Series)):
        return tuple(side.fillna(value) if isinstance(side, Series) else side for side in (a, b))
    neither = a.isna() & b.isna()
    return a.fillna(value).mask(neither), b.fillna(value).mask(neither)


_declare_operators()


def unary(call: Call, x: Any, function: Callable[[Tensor], Tensor], *, floats: bool = False) -> Column:
    """A function of each number; with `floats`, one that gives floats of integers too."""
    column = column_of(call, x)
    if not column.type.is_number and not column.type.is_bool:
        raise call.refuse(f"it is for numbers, not for {column.type}")
    type = call.type
    return elementwise(function, type, to_type(call, column, type) if floats or type.is_float else column)


@rule("Series.__neg__", "numpy.negative")
def negative(call: Call, x: Any) -> Column:
    column = column_of(call, x)
    if column.type.meaning == "duration":
        return elementwise(lambda p: -p, column.type, column)
    if column.type.dtype.is_integer() and not column.type.dtype.is_signed():
        return elementwise(lambda p: p.op.like(0, p) - p, column.type, column)
    return unary(call, x, lambda p: -p)


@rule("Series.__pos__", "numpy.positive")
def positive(call: Call, x: Any) -> Column:
    return column_of(call, x)


@rule("Series.__abs__", "Series.abs", "numpy.absolute", "numpy.fabs")
def absolute(call: Call, x: Any) -> Column:
    column = column_of(call, x)
    if column.type.meaning == "duration":
        return elementwise(lambda p: p.op.Abs(p), column.type, column)
    return column if column.type.is_bool else unary(call, x, lambda p: p.op.Abs(p))


@rule("Series.round", "numpy.round", "numpy.around", "Series.__round__")
def rounded(call: Call, x: Any, decimals: int = 0) -> Column:
    column = column_of(call, x)
    if column.type.is_int and decimals >= 0:
        return column
    if not column.type.is_float:
        raise call.refuse("it is for numbers with a fixed number of decimals that is not negative")
    return unary(call, x, lambda p: numbers.rounded(p, int(decimals)))


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": lambda p: p.op.Sqrt(p),
    "exp": lambda p: p.op.Exp(p),
    "log": lambda p: p.op.Log(p),
    "log1p": numbers.log1p,
    "log2": numbers.log2,
    "log10": numbers.log10,
    "expm1": numbers.expm1,
    "exp2": numbers.exp2,
    "sin": lambda p: p.op.Sin(p),
    "cos": lambda p: p.op.Cos(p),
    "tan": numbers.tan,
    "tanh": numbers.tanh,
    "sinh": numbers.sinh,
    "cosh": numbers.cosh,
    "arcsin": numbers.arcsin,
    "arccos": numbers.arccos,
    "arctan": numbers.arctan,
    "reciprocal": lambda p: p.op.Reciprocal(p),
    "cbrt": numbers.cbrt,
    "deg2rad": lambda p: p * (np.pi / 180),
    "radians": lambda p: p * (np.pi / 180),
    "rad2deg": lambda p: p * (180 / np.pi),
    "degrees": lambda p: p * (180 / np.pi),
}


def _declare_functions() -> None:
    for name, function in _FUNCTIONS.items():

        def of_floats(call: Call, x: Any, function: Callable[[Tensor], Tensor] = function) -> Column:
            if not call.type.is_float:
                raise call.refuse("it is for floats: convert with astype(float) first")
            return unary(call, x, function, floats=True)

        rule(f"numpy.{name}")(of_floats)


_declare_functions()


@rule("numpy.square")
def square(call: Call, x: Any) -> Column:
    return unary(call, x, lambda p: p * p)


@rule("numpy.sign")
def sign(call: Call, x: Any) -> Column:
    def signed(p: Tensor) -> Tensor:
        found = p.op.Sign(p)
        return p.op.Where(p.op.IsNaN(p), p, found) if call.type.is_float else found

    return unary(call, x, signed)


def _declare_roundings() -> None:
    for name, op_type in {"floor": "Floor", "ceil": "Ceil", "rint": "Round", "trunc": ""}.items():

        def to_whole(call: Call, x: Any, op_type: str = op_type) -> Column:
            if not call.type.is_float:
                return column_of(call, x)
            return unary(call, x, lambda p: getattr(p.op, op_type)(p) if op_type else numbers.truncated(p))

        rule(f"numpy.{name}", *(["numpy.fix"] if name == "trunc" else []))(to_whole)


_declare_roundings()


@rule("numpy.arctan2")
def arctan2(call: Call, y: Any, x: Any) -> Column:
    a, b = operands(call, y, x)
    return elementwise(numbers.arctan2, call.type, to_type(call, a, call.type), to_type(call, b, call.type))


@rule("numpy.hypot")
def hypot(call: Call, x: Any, y: Any) -> Column:
    a, b = operands(call, x, y)
    return elementwise(numbers.hypot, call.type, to_type(call, a, call.type), to_type(call, b, call.type))


def _declare_extremes() -> None:
    for name, best, skips in (
        ("maximum", numbers.larger, False),
        ("minimum", numbers.smaller, False),
        ("fmax", numbers.larger, True),
        ("fmin", numbers.smaller, True),
    ):

        def extreme(
            call: Call, a: Any, b: Any, best: Callable[[Tensor, Tensor], Tensor] = best, skips: bool = skips
        ) -> Column:
            x, y = operands(call, a, b)
            if x.type.is_text or x.type.masked:
                raise call.refuse(f"it is for numbers and times, not for {x.type}")
            type = call.type
            x, y = to_type(call, x, type), to_type(call, y, type)
            if skips and type.is_float:
                x, y = _else(x, y), _else(y, x)
            return elementwise(best, type, x, y)

        rule(f"numpy.{name}")(extreme)


def _else(x: Column, y: Column) -> Column:
    op = x.op
    return replace(x, value=op.Where(op.IsNaN(x.value), y.value, x.value), rows=y.rows if x.is_scalar else x.rows)


_declare_extremes()


@rule("numpy.nan_to_num")
def nan_to_num(
    call: Call, x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Column:
    column = column_of(call, x)
    if not column.type.is_float:
        return column
    op, limits = column.op, np.finfo(column.type.dtype.numpy())
    value = column.value
    for mask, number in (
        (op.IsNaN(value), nan),
        (op.IsInf(value, detect_negative=0), limits.max if posinf is None else posinf),
        (op.IsInf(value, detect_positive=0), limits.min if neginf is None else neginf),
    ):
        value = op.Where(mask, op.like(float(number), value), value)
    return replace(column, value=value)


@rule("numpy.isnan", "numpy.isinf", "numpy.isfinite")
def is_special(call: Call, x: Any) -> Column:
    column = column_of(call, x)
    name = call.name.removeprefix("numpy.")
    if not column.type.is_float:
        if column.type.masked or column.type.is_text or column.type.is_time:
            raise call.refuse("it is for floats: use isna")
        from onward.formats.dataframe.types import BOOL

        false = elementwise(lambda p: p.op.Not(p.op.Equal(p, p)), BOOL, column)
        return false if name != "isfinite" else elementwise(lambda p: p.op.Not(p), BOOL, false)
    op, p = column.op, column.value
    found = op.IsNaN(p) if name == "isnan" else op.IsInf(p)
    if name == "isfinite":
        found = op.Not(op.Or(op.IsNaN(p), op.IsInf(p)))
    return replace(column, value=found, type=call.type, null=None)


__all__ = ["binary", "guarded", "is_missing", "literal", "operands", "unary"]
