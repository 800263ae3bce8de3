"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Literal, Name, forced, lift
from onward.backends.matlab.target import COMPLEX, class_of, moves, ops, rule
from onward.backends.shared.elementwise import equal, is_float, limit, literal, operands, settable
from onward.spec.elementwise import BitShift, IsInf, Mod

_D = ir.DataType
INTEGER_HELPERS = {"Add": "add_integers", "Sub": "subtract_integers", "Mul": "multiply_integers"}
SYMBOLS = {"Add": "+", "Sub": "-", "Mul": "*"}
COMPARISONS = {"Less": "<", "LessOrEqual": "<=", "Greater": ">", "GreaterOrEqual": ">="}


def is_real(e: Emitter, x: Expr) -> bool:
    """Whether it is of floats, or complex numbers."""
    return is_float(e, x) or e.dtype(x) in COMPLEX


def helper(name: str) -> Expr:
    found: Expr = getattr(ops, name)
    return found


# Arithmetic


def _operator(op: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        if is_real(e, a):
            return Binary(SYMBOLS[op], *settable(e, op, a, b))
        return helper(INTEGER_HELPERS[op])(*operands(e, a, b))


for _op in SYMBOLS:
    _operator(_op)


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    if is_real(e, a):
        return Binary("/", *settable(e, "Div", a, b))
    return ops.divide_integers(*operands(e, a, b))


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, p: Mod) -> Expr:
    if is_float(e, a):
        return ops.float_remainder(*operands(e, a, b)) if p.fmod else ops.float_modulo(*operands(e, a, b))
    number = literal(e, b, a)
    if number is not None and number > 0:
        return (Name("rem") if p.fmod else Name("mod"))(a, number)
    return ops.remainder_of_integers(*operands(e, a, b), not p.fmod)


@rule("Pow")
def power(e: Emitter, x: Expr, y: Expr) -> Expr:
    number = literal(e, y, x)
    if is_float(e, x):
        if isinstance(number, int | float) and float(number).is_integer():
            return x ** int(number)
        same = class_of(e.dtype(x) or _D.FLOAT)
        exponent = number if number is not None else y if e.dtype(y) == e.dtype(x) else Name(same)(y)
        return ops.real_power(x, exponent)
    return ops.integer_power(x, y if number is None else number)


@rule("Reciprocal")
def reciprocal(e: Emitter, x: Expr) -> Expr:
    return Binary("/", 1, x)


@rule("Neg")
def negate(e: Emitter, x: Expr) -> Expr:
    return -x if is_real(e, x) else ops.subtract_integers(0, x)


@rule("Abs")
def absolute(e: Emitter, x: Expr) -> Expr:
    return Name("abs")(x) if is_real(e, x) else ops.absolute_integers(x)


def _function(op: str, made: Callable[[Expr], Expr]) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        if is_real(e, x):
            return made(x)
        return Name(class_of(e.dtype(x) or _D.INT64))(Name("fix")(made(Name("double")(x))))


def _real(function: str) -> Callable[[Expr], Expr]:
    """A function that MATLAB goes on with into complex numbers, where ONNX says NaN."""
    return lambda x: ops.real_or_nan(Name(function)(x))


for _op in ("Sign", "Exp", "Ceil", "Floor", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan", "Asinh", "Erf"):
    _function(_op, Name(_op.lower()))
for _op in ("Sqrt", "Log", "Asin", "Acos", "Acosh", "Atanh"):
    _function(_op, _real(_op.lower()))
_function("Round", lambda x: ops.round_even(x))


def _extreme(op: str, function: Expr, of_floats: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, *xs: Expr) -> Expr:
        chosen = of_floats if is_float(e, xs[0]) else function
        return chosen(*operands(e, *xs)) if len(xs) == 2 else reduce(chosen, xs)


_extreme("Min", Name("min"), ops.minimum)
_extreme("Max", Name("max"), ops.maximum)


@rule("Clip")
def clip(e: Emitter, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    last = _largest(e, x)
    bounds = [limit(e, x, low, -last), limit(e, x, high, last)]
    return x if bounds == [None, None] else ops.clip(x, *bounds)


def _largest(e: Emitter, x: Expr) -> Expr:
    """The largest finite number of a dtype of floats."""
    of = e.dtype(x) or _D.FLOAT
    if of in (_D.FLOAT, _D.DOUBLE):
        return Name("realmax")(class_of(of))
    return lift(float(ml_dtypes.finfo(of.numpy()).max)) if is_float(e, x) else lift(0)


@rule("Sum")
def total(e: Emitter, *xs: Expr) -> Expr:
    return reduce(lambda a, b: a + b, xs)


@rule("Mean")
def mean(e: Emitter, *xs: Expr) -> Expr:
    return total(e, *xs) / len(xs) if len(xs) > 1 else xs[0]


# Comparison and logic


def compared(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Operands of a comparison: a literal is as precise as what it is compared with."""
    x, y = operands(e, a, b)
    return _as_precise(e, b, x), _as_precise(e, a, y)


def _as_precise(e: Emitter, other: Expr, x: Any) -> Any:
    number = forced(x)._value if isinstance(x, Expr) and isinstance(forced(x), Literal) else x
    is_exact = not isinstance(number, float) or float(np.float32(number)) == number
    return x if is_exact or e.dtype(other) == _D.DOUBLE else Name("single")(x)


def _comparison(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        return Binary(symbol, *compared(e, a, b))


for _op, _symbol in COMPARISONS.items():
    _comparison(_op, _symbol)


@rule("Equal")
def is_equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    if e.dtype(a) == _D.STRING:
        return ops.string_equal(a, b)
    return equal(e, a, b) if e.dtype(a) == _D.BOOL else Binary("==", *compared(e, a, b))


@moves("Not")
def invert(e: Emitter, x: Expr) -> Expr:
    return ~x


@moves("And")
def both(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("&", *operands(e, a, b))


@moves("Or")
def either(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("|", *operands(e, a, b))


@moves("Xor")
def exclusive(e: Emitter, a: Expr, b: Expr) -> Expr:
    return Binary("!=", *operands(e, a, b))


def _bitwise(op: str, function: str) -> None:
    @moves(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        return ops.bitwise(function, a, b)


for _op, _symbol in {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}.items():
    _bitwise(_op, _symbol)


@moves("BitwiseNot")
def bitwise_not(e: Emitter, x: Expr) -> Expr:
    return ops.bitwise_not(x)


@moves("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, p: BitShift) -> Expr:
    return ops.bit_shift(x, amount, 1 if p.is_left else -1)


@moves("IsNaN")
def is_nan(e: Emitter, x: Expr) -> Expr:
    return Name("isnan")(x)


@moves("IsInf")
def is_infinite(e: Emitter, x: Expr, p: IsInf) -> Expr:
    inf = float("inf")
    if p.detect_negative and p.detect_positive:
        return Name("isinf")(x)
    if not p.detect_negative and not p.detect_positive:
        return Name("false")(Name("size")(x))
    return Binary("==", x, -inf if p.detect_negative else inf)


@moves("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    return ops.where(test, yes, no)
