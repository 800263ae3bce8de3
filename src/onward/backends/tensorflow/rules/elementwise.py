"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from functools import reduce

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.shared import elementwise as shared
from onward.backends.shared.elementwise import functions, is_float, limit, literal, operands, settable, tensor_first
from onward.backends.tensorflow.dtypes import UNSIGNED, cast, dtype_of
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule, tf
from onward.spec.elementwise import BitShift, IsInf, Mod

_D = ir.DataType


TARGET.rules.take(shared.RULES)


# Arithmetic


def _operator(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        return Binary(symbol, *settable(e, op, a, b))


for _op, _symbol in (shared.WRAPPING | shared.COMPARISONS).items():
    _operator(_op, _symbol)


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    if is_float(e, a):
        return Binary("/", *settable(e, "Div", a, b))
    return Binary("//", *operands(e, a, b)) if e.dtype(a) in UNSIGNED else tf.truncatediv(*tensor_first(e, a, b))


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, p: Mod) -> Expr:
    if is_float(e, a):
        return ops.float_remainder(a, b) if p.fmod else ops.float_modulo(a, b)
    if p.fmod and e.dtype(a) not in UNSIGNED:
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


@rule("Abs")
def absolute(e: Emitter, x: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else tf.abs(x)


@rule("Sign")
def sign(e: Emitter, x: Expr) -> Expr:
    return tf.cast(Binary("!=", x, 0), dtype(dtype_of(e, x))) if e.dtype(x) in UNSIGNED else tf.sign(x)


@rule("Reciprocal")
def reciprocal(e: Emitter, x: Expr) -> Expr:
    return Binary("/", 1, x)


TARGET.rules.take(
    functions(
        {
            op: getattr(tf, op.lower())
            for op in (
                *("Sqrt", "Exp", "Floor", "Round", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan"),
                *("Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
            )
        }
    )
)
TARGET.rules.take(functions({"Log": tf.math.log, "Erf": tf.math.erf, "Ceil": tf.math.ceil, "IsNaN": tf.math.is_nan}))


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
    lowest, highest = limit(e, x, low, x.dtype.min), limit(e, x, high, x.dtype.max)
    if isinstance(lowest, int | float) and isinstance(highest, int | float) and lowest <= highest:
        if (lowest, highest) == (0, 6) and is_float(e, x):
            return tf.nn.relu6(x)
        return tf.clip_by_value(x, lowest, highest)
    floored = x if lowest is None else tf.maximum(x, lowest)
    return floored if highest is None else tf.minimum(floored, highest)


# Comparison and logic


rule("Equal")(shared.equal)
rule("BitwiseNot")(shared.invert)


@rule("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, p: BitShift) -> Expr:
    """TensorFlow shifts by the width less 1 where it is asked for more."""
    number, of = literal(e, amount, x), e.dtype(x)
    if isinstance(number, int) and of is not None and 0 <= number < 8 * of.itemsize:
        return (tf.bitwise.left_shift if p.is_left else tf.bitwise.right_shift)(x, number)
    return (ops.shift_left if p.is_left else ops.shift_right)(x, amount)


@rule("IsInf")
def is_infinite(e: Emitter, x: Expr, p: IsInf) -> Expr:
    if p.detect_negative and p.detect_positive:
        return tf.math.is_inf(x)
    if not p.detect_negative and not p.detect_positive:
        return tf.zeros_like(x, tf.bool)
    return Binary("==", x, float("inf") if p.detect_positive else -float("inf"))


@rule("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    a, b = operands(e, yes, no)
    # The first operand decides on the dtype: a lone number there would be single precision.
    return tf.where(test, a if e.dtype(yes) == _D.FLOAT else yes, b)
