"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.tensorflow.dtypes import FLOATS, UNSIGNED, cast, dtype_of, is_float
from onward.backends.tensorflow.target import dtype, is_minus_zero, ops, rule, tf

_D = ir.DataType


def literal(e: Emitter, x: Expr, other: Expr) -> Any:
    """The input as a number that is known now, None where it is a tensor beside `other`."""
    number = e.scalar(x, e.rank(other))
    return None if isinstance(number, Expr) or is_minus_zero(number) else number


def operands(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Both operands of a broadcasting op; a lone number beside a tensor stays a Python number."""
    left, right = literal(e, a, b), literal(e, b, a)
    if right is not None and e.scalar(a) is None:
        return a, right
    return (left, b) if left is not None and e.scalar(b) is None else (a, b)


def tensor_first(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Operands for a function whose first argument must be a tensor."""
    number = literal(e, b, a)
    return (a, b) if number is None else (a, number)


# Arithmetic


def _operator(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        return Binary(symbol, *operands(e, a, b))


ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*"}
COMPARISONS = {"Less": "<", "LessOrEqual": "<=", "Greater": ">", "GreaterOrEqual": ">="}
LOGIC = {"And": "&", "Or": "|", "Xor": "^"}
BITS = {f"Bitwise{op}": symbol for op, symbol in LOGIC.items()}
for _op, _symbol in (ARITHMETIC | COMPARISONS | LOGIC | BITS).items():
    _operator(_op, _symbol)


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    if is_float(e, a):
        return Binary("/", *operands(e, a, b))
    return Binary("//", *operands(e, a, b)) if e.dtype(a) in UNSIGNED else tf.truncatediv(*tensor_first(e, a, b))


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, *, fmod: int = 0) -> Expr:
    if is_float(e, a):
        return ops.float_remainder(a, b) if fmod else ops.float_modulo(a, b)
    if fmod and e.dtype(a) not in UNSIGNED:
        return a - tf.truncatediv(a, b) * b
    return Binary("%", *operands(e, a, b))


@rule("Pow")
def power(e: Emitter, x: Expr, y: Expr) -> Expr:
    number, of = literal(e, y, x), dtype_of(e, x)
    if is_float(e, x):
        if isinstance(number, float) and abs(number) == 0.5 and e.producer != "pytorch":
            return ops.root(x) if number > 0 else Binary("/", 1, ops.root(x))
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return x ** (cast(e, y, of) if number is None else number)
    if is_float(e, y):
        return tf.cast(tf.cast(x, tf.float64) ** tf.cast(y, tf.float64), dtype(of))
    if isinstance(number, int) and number >= 0 and of not in UNSIGNED:
        return x**number
    return tf.cast(ops.integer_power(cast(e, x, _D.INT64), cast(e, y, _D.INT64)), dtype(of))


@rule("Neg")
def negative(e: Emitter, x: Expr) -> Expr:
    return -x


@rule("Abs")
def absolute(e: Emitter, x: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else tf.abs(x)


@rule("Sign")
def sign(e: Emitter, x: Expr) -> Expr:
    return tf.cast(Binary("!=", x, 0), dtype(dtype_of(e, x))) if e.dtype(x) in UNSIGNED else tf.sign(x)


@rule("Reciprocal")
def reciprocal(e: Emitter, x: Expr) -> Expr:
    return Binary("/", 1, x)


def _function(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        return function(x)


for _op in (
    *("Sqrt", "Exp", "Floor", "Round"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
):
    _function(_op, getattr(tf, _op.lower()))
for _op in ("Log", "Erf", "Ceil"):
    _function(_op, getattr(tf.math, _op.lower()))


@rule("Sum")
def total(e: Emitter, *xs: Expr) -> Expr:
    return reduce(lambda a, b: a + b, xs)


@rule("Mean")
def mean(e: Emitter, *xs: Expr) -> Expr:
    return total(e, *xs) / len(xs) if len(xs) > 1 else xs[0]


def _extreme(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, *xs: Expr) -> Expr:
        if len(xs) == 2:
            a, b = operands(e, *xs)
            return function(a, b) if isinstance(a, Arg) else function(b, a)
        return reduce(function, xs)


_extreme("Min", tf.minimum)
_extreme("Max", tf.maximum)


@rule("Clip")
def clip(e: Emitter, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    """Where the bounds cross, ONNX's result is the upper one, that of `tf.clip_by_value` the lower one."""
    lowest, highest = _limit(e, x, low, "min"), _limit(e, x, high, "max")
    if isinstance(lowest, int | float) and isinstance(highest, int | float) and lowest <= highest:
        if (lowest, highest) == (0, 6) and is_float(e, x):
            return tf.nn.relu6(x)
        return tf.clip_by_value(x, lowest, highest)
    floored = x if lowest is None else tf.maximum(x, lowest)
    return floored if highest is None else tf.minimum(floored, highest)


def _limit(e: Emitter, x: Expr, bound: Expr | None, name: str) -> Any:
    """A number or a tensor; where no bound is given, the last finite number, but none in what PyTorch has exported."""
    if bound is None:
        return getattr(x.dtype, name) if e.dtype(x) in FLOATS and e.producer != "pytorch" else None
    number = literal(e, bound, x)
    return bound if number is None else number


# Comparison and logic


@rule("Equal")
def equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    x, y = operands(e, a, b)
    if isinstance(x, bool):
        return b if x else ~b
    if isinstance(y, bool):
        return a if y else ~a
    return Binary("==", x, y)


@rule("Not", "BitwiseNot")
def invert(e: Emitter, x: Expr) -> Expr:
    return ~x


@rule("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, *, direction: str) -> Expr:
    """TensorFlow shifts by the width less 1 where it is asked for more."""
    left = direction == "LEFT"
    number, of = literal(e, amount, x), e.dtype(x)
    if isinstance(number, int) and of is not None and 0 <= number < 8 * of.itemsize:
        return (tf.bitwise.left_shift if left else tf.bitwise.right_shift)(x, number)
    return (ops.shift_left if left else ops.shift_right)(x, amount)


@rule("IsNaN")
def is_nan(e: Emitter, x: Expr) -> Expr:
    return tf.math.is_nan(x)


@rule("IsInf")
def is_infinite(e: Emitter, x: Expr, *, detect_negative: int = 1, detect_positive: int = 1) -> Expr:
    if detect_negative and detect_positive:
        return tf.math.is_inf(x)
    if not detect_negative and not detect_positive:
        return tf.zeros_like(x, tf.bool)
    return Binary("==", x, float("inf") if detect_positive else -float("inf"))


@rule("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    a, b = operands(e, yes, no)
    # The first operand decides on the dtype: a lone number there would be single precision.
    return tf.where(test, a if e.dtype(yes) == _D.FLOAT else yes, b)
