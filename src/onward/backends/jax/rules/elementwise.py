"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.jax.dtypes import UNSIGNED, cast
from onward.backends.jax.numbers import is_string
from onward.backends.jax.target import TARGET, dtype, jax, jnp, lax, np_, ops, rule
from onward.backends.shared import elementwise as shared
from onward.backends.shared.elementwise import functions, is_float, limit, literal, operands, settable, tensor_first
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
    if e.dtype(a) in UNSIGNED:
        return Binary("//", *operands(e, a, b))
    return ops.integer_divide(*tensor_first(e, a, b))


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, p: Mod) -> Expr:
    if p.fmod:
        return jnp.fmod(*operands(e, a, b))
    return ops.float_modulo(a, b) if is_float(e, a) else Binary("%", *operands(e, a, b))


@rule("Pow")
def power(e: Emitter, x: Expr, y: Expr) -> Expr:
    number = literal(e, y, x)
    if is_float(e, x):
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return x ** (cast(e, y, e.dtype(x) or _D.FLOAT) if number is None else number)
    same = dtype(e.dtype(x) or _D.INT64)
    if is_float(e, y):
        return (x.astype(dtype(_D.DOUBLE)) ** y).astype(same)
    return x**number if isinstance(number, int) and number >= 0 else ops.integer_power(x, y)


@rule("Reciprocal")
def reciprocal(e: Emitter, x: Expr) -> Expr:
    return Binary("/", 1, x)


TARGET.rules.take(
    functions(
        {
            op: getattr(jnp, op.lower())
            for op in (
                *("Abs", "Sign", "Sqrt", "Exp", "Log", "Ceil", "Floor", "Round"),
                *("Sin", "Cos", "Tan", "Sinh", "Cosh", "IsNaN"),
            )
        }
    )
)
TARGET.rules.take(functions({op: getattr(jnp, f"arc{op[1:]}") for op in ("Asin", "Acos", "Atan")}))
TARGET.rules.take(functions({op: getattr(jnp, f"arc{op[1:]}") for op in ("Asinh", "Acosh", "Atanh")}))
TARGET.rules.take(functions({"Erf": lax.erf}))


def _extreme(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, *xs: Expr) -> Expr:
        return function(*operands(e, *xs)) if len(xs) == 2 else reduce(function, xs)


_extreme("Min", jnp.minimum)
_extreme("Max", jnp.maximum)


@rule("Clip")
def clip(e: Emitter, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    last = jnp.finfo(x.dtype)
    lowest, highest = limit(e, x, low, last.min), limit(e, x, high, last.max)
    if (lowest, highest) == (0.0, 6.0) and is_float(e, x):
        return jax.nn.relu6(x)
    if lowest is not None and highest is not None:
        return jnp.clip(x, lowest, highest)
    bounds = given(min=lowest, max=highest)
    return jnp.clip(x, **bounds) if bounds else x


# Comparison and logic


@rule("Equal")
def equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    return ops.string_equal(a, b) if is_string(e, a) else shared.equal(e, a, b)


rule("BitwiseNot")(shared.invert)


@rule("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, p: BitShift) -> Expr:
    """XLA defines shifts by the width and more, and by negative amounts, just as ONNX does."""
    return Binary("<<" if p.is_left else ">>", *operands(e, x, amount))


@rule("IsInf")
def is_infinite(e: Emitter, x: Expr, p: IsInf) -> Expr:
    test: dict[tuple[bool, bool], Callable[..., Expr]] = {
        (True, True): jnp.isinf,
        (True, False): jnp.isneginf,
        (False, True): jnp.isposinf,
    }
    found = test.get((bool(p.detect_negative), bool(p.detect_positive)))
    return jnp.zeros_like(x, dtype(_D.BOOL)) if found is None else found(x)


@rule("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    if is_string(e, yes):
        return np_.where(test, yes, no)
    return jnp.where(test, *operands(e, yes, no))
