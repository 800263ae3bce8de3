"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.torch.dtypes import FLOAT8, UNSIGNED, bits, from_bits, from_ordered, ordered
from onward.backends.torch.target import F, dtype, ops, rule, torch

_D = ir.DataType
_FLOATS = (_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16)


def operands(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Both operands of a broadcasting op; a lone number beside a tensor stays a Python number."""
    number = e.scalar(b, e.rank(a))
    if number is not None and e.scalar(a) is None:
        return a, number
    number = e.scalar(a, e.rank(b))
    if number is not None and e.scalar(b) is None:
        return number, b
    return a, b


def is_float(e: Emitter, x: Expr) -> bool:
    of = e.dtype(x)
    return of is None or of.is_floating_point()


# Arithmetic


def _wrapping(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        if e.dtype(a) in UNSIGNED:
            return from_bits(e, a, Binary(symbol, bits(e, a), bits(e, b)))
        return Binary(symbol, *operands(e, a, b))


_wrapping("Add", "+")
_wrapping("Sub", "-")
_wrapping("Mul", "*")
_wrapping("BitwiseAnd", "&")
_wrapping("BitwiseOr", "|")
_wrapping("BitwiseXor", "^")
_wrapping("And", "&")
_wrapping("Or", "|")
_wrapping("Xor", "^")


def tensor_first(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Operands for a function whose first argument must be a tensor."""
    number = e.scalar(b, e.rank(a))
    return (a, b) if number is None else (a, number)


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    if is_float(e, a):
        x, y = operands(e, a, b)
        # PyTorch divides a number by a tensor in two steps, as number · (1 / tensor): exact for 1 only.
        exact = x is a or (isinstance(x, float) and x == 1)
        return Binary("/", x, y) if exact else Binary("/", a, b)
    if e.dtype(a) == _D.UINT64:
        return ops.uint64_divide(a, b)
    if e.dtype(a) in UNSIGNED:
        return from_ordered(e, a, ordered(e, a) // ordered(e, b))
    if e.dtype(a) == _D.UINT8:
        return Binary("//", *operands(e, a, b))
    x, y = tensor_first(e, a, b)
    return ops.integer_divide(a, b) if y is b or y == -1 else torch.div(x, y, rounding_mode="trunc")


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, *, fmod: int = 0) -> Expr:
    if e.dtype(a) == _D.UINT64:
        return ops.uint64_remainder(a, b)
    if e.dtype(a) in UNSIGNED:
        return from_ordered(e, a, ordered(e, a) % ordered(e, b))
    if fmod:
        return ops.float_remainder(a, b) if e.dtype(a) == _D.FLOAT else torch.fmod(*tensor_first(e, a, b))
    return ops.float_modulo(a, b) if is_float(e, a) else Binary("%", *operands(e, a, b))


@rule("Pow")
def power(e: Emitter, x: Expr, y: Expr) -> Expr:
    number = e.scalar(y, e.rank(x))
    if is_float(e, x):
        if isinstance(number, float) and abs(number) == 0.5 and e.producer != "pytorch":
            return ops.power(x, number)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if number is not None or e.dtype(x) == e.dtype(y):
            return x ** (y if number is None else number)
        return x ** y.to(dtype(e.dtype(x) or _D.FLOAT))
    same = dtype(e.dtype(x) or _D.INT64)
    if is_float(e, y):
        return (x.to(torch.float64) ** y).to(same)
    if isinstance(number, int) and number >= 0:
        return x**number
    return x**y if e.dtype(x) == e.dtype(y) else (x.to(torch.int64) ** y.to(torch.int64)).to(same)


@rule("Neg")
def negative(e: Emitter, x: Expr) -> Expr:
    return -x


@rule("Abs")
def absolute(e: Emitter, x: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else torch.abs(x)


@rule("Sign")
def sign(e: Emitter, x: Expr) -> Expr:
    of = e.dtype(x)
    if of in UNSIGNED:
        return Binary("!=", x, 0).to(dtype(of))
    return ops.float_sign(x) if is_float(e, x) else torch.sign(x)


def _function(op: str, name: str) -> None:
    function: Expr = getattr(torch, name)

    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        return function(x)


for _op in (
    *("Sqrt", "Reciprocal", "Exp", "Log", "Erf", "Ceil", "Floor", "Round"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh"),
):
    _function(_op, _op.lower())


def _hyperbolic(op: str) -> None:
    own: Expr = getattr(torch, op.lower())
    helper: Expr = getattr(ops, op.lower())

    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        return own(x) if e.dtype(x) in (_D.FLOAT16, _D.BFLOAT16) else helper(x)


_hyperbolic("Sinh")
_hyperbolic("Cosh")


@rule("Sum")
def total(e: Emitter, *xs: Expr) -> Expr:
    return reduce(lambda a, b: a + b, xs)


@rule("Mean")
def mean(e: Emitter, *xs: Expr) -> Expr:
    return total(e, *xs) / len(xs) if len(xs) > 1 else xs[0]


def _extreme(op: str, name: str, bound: str) -> None:
    @rule(op)
    def apply(e: Emitter, *xs: Expr) -> Expr:
        if e.dtype(xs[0]) in UNSIGNED:
            return from_ordered(e, xs[0], reduce(getattr(torch, name), (ordered(e, x) for x in xs)))
        if len(xs) == 2:
            a, b = operands(e, *xs)
            if not isinstance(a, Arg):
                a, b = b, a
            if not isinstance(b, Arg):
                return torch.clamp(a, **{bound: b})
        return reduce(getattr(torch, name), xs)


_extreme("Min", "minimum", "max")
_extreme("Max", "maximum", "min")


@rule("Clip")
def clip(e: Emitter, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    given = {"min": low, "max": high}
    if e.dtype(x) in UNSIGNED:
        bounds = {name: ordered(e, bound) for name, bound in given.items() if bound is not None}
        return from_ordered(e, x, torch.clamp(ordered(e, x), **bounds)) if bounds else x
    limits = {name: limit for name, bound in given.items() if (limit := _limit(e, x, name, bound)) is not None}
    if list(limits.values()) == [0.0, 6.0] and is_float(e, x):
        return F.relu6(x)
    tensors = [isinstance(limit, Arg) for limit in limits.values()]
    if any(tensors) and not all(tensors):
        for name, limit in limits.items():
            x = torch.clamp(x, **{name: limit})
        return x
    return torch.clamp(x, **limits) if limits else x


def _limit(e: Emitter, x: Expr, name: str, bound: Expr | None) -> Any:
    """A number or a tensor; where no bound is given, the last finite number, but none in what PyTorch has exported."""
    if bound is None:
        return getattr(torch.finfo(x.dtype), name) if e.dtype(x) in _FLOATS and e.producer != "pytorch" else None
    number = e.scalar(bound, e.rank(x))
    return bound if number is None else number


# Comparison and logic


def _comparison(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        if e.dtype(a) in UNSIGNED:
            return Binary(symbol, ordered(e, a), ordered(e, b))
        return Binary(symbol, *operands(e, a, b))


_comparison("Less", "<")
_comparison("LessOrEqual", "<=")
_comparison("Greater", ">")
_comparison("GreaterOrEqual", ">=")


@rule("Equal")
def equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    if e.dtype(a) == _D.STRING:
        return ops.string_equal(a, b, device=e.device)
    if e.dtype(a) in UNSIGNED:
        return Binary("==", bits(e, a), bits(e, b))
    x, y = operands(e, a, b)
    if isinstance(x, bool):
        return b if x else ~b
    if isinstance(y, bool):
        return a if y else ~a
    return Binary("==", x, y)


@rule("Not")
def logical_not(e: Emitter, x: Expr) -> Expr:
    return ~x


@rule("BitwiseNot")
def bitwise_not(e: Emitter, x: Expr) -> Expr:
    return from_bits(e, x, ~bits(e, x))


@rule("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, *, direction: str) -> Expr:
    """PyTorch defines shifts by a negative amount or by more than the width just as ONNX does."""
    if direction == "LEFT":
        if e.dtype(x) in UNSIGNED:
            return from_bits(e, x, bits(e, x) << bits(e, amount))
        return Binary("<<", *tensor_first(e, x, amount))
    if e.dtype(x) == _D.UINT64:
        return ops.uint64_shift_right(x, amount)
    if e.dtype(x) in UNSIGNED:
        return from_ordered(e, x, ordered(e, x) >> ordered(e, amount))
    return Binary(">>", *tensor_first(e, x, amount))


@rule("IsNaN")
def is_nan(e: Emitter, x: Expr) -> Expr:
    return torch.isnan(x.to(torch.float32) if e.dtype(x) in FLOAT8 else x)


@rule("IsInf")
def is_infinite(e: Emitter, x: Expr, *, detect_negative: int = 1, detect_positive: int = 1) -> Expr:
    if e.dtype(x) in FLOAT8:
        x = x.to(torch.float32)
    test: dict[tuple[bool, bool], Callable[..., Expr]] = {
        (True, True): torch.isinf,
        (True, False): torch.isneginf,
        (False, True): torch.isposinf,
    }
    found = test.get((bool(detect_negative), bool(detect_positive)))
    return torch.zeros_like(x, dtype=torch.bool) if found is None else found(x)


@rule("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    if e.dtype(yes) == _D.STRING:
        return ops.string_where(test, yes, no)
    if e.dtype(yes) in UNSIGNED:
        return from_bits(e, yes, torch.where(test, bits(e, yes), bits(e, no)))
    a, b = operands(e, yes, no)
    return torch.where(test, a, b)
