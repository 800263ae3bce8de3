"""Arithmetic, comparison, logic and functions applied to each element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.shared import elementwise as shared
from onward.backends.shared.elementwise import functions, is_float, limit, operands, settable, tensor_first
from onward.backends.torch.dtypes import FLOAT8, UNSIGNED, bits, from_bits, from_ordered, ordered
from onward.backends.torch.target import TARGET, F, dtype, ops, rule, torch
from onward.spec.elementwise import BitShift, IsInf, Mod

_D = ir.DataType

TARGET.rules.take(shared.RULES)


# Arithmetic


def _wrapping(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        if e.dtype(a) in UNSIGNED:
            return from_bits(e, a, Binary(symbol, bits(e, a), bits(e, b)))
        return Binary(symbol, *settable(e, op, a, b))


for _op, _symbol in shared.WRAPPING.items():
    _wrapping(_op, _symbol)


@rule("Div")
def divide(e: Emitter, a: Expr, b: Expr) -> Expr:
    if is_float(e, a):
        x, _ = operands(e, a, b)
        # PyTorch divides a number by a tensor in two steps, as number · (1 / tensor): exact for 1 only.
        exact = x is a or (isinstance(x, float) and x == 1)
        return Binary("/", *settable(e, "Div", a, b)) if exact else Binary("/", a, b)
    if e.dtype(a) == _D.UINT64:
        return ops.uint64_divide(a, b)
    if e.dtype(a) in UNSIGNED:
        return from_ordered(e, a, ordered(e, a) // ordered(e, b))
    if e.dtype(a) == _D.UINT8:
        return Binary("//", *operands(e, a, b))
    x, y = tensor_first(e, a, b)
    return ops.integer_divide(a, b) if y is b or y == -1 else torch.div(x, y, rounding_mode="trunc")


@rule("Mod")
def modulo(e: Emitter, a: Expr, b: Expr, p: Mod) -> Expr:
    if e.dtype(a) == _D.UINT64:
        return ops.uint64_remainder(a, b)
    if e.dtype(a) in UNSIGNED:
        return from_ordered(e, a, ordered(e, a) % ordered(e, b))
    if p.fmod:
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


@rule("Abs")
def absolute(e: Emitter, x: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else torch.abs(x)


@rule("Sign")
def sign(e: Emitter, x: Expr) -> Expr:
    of = e.dtype(x)
    if of in UNSIGNED:
        return Binary("!=", x, 0).to(dtype(of))
    return ops.float_sign(x) if is_float(e, x) else torch.sign(x)


TARGET.rules.take(
    functions(
        {
            op: getattr(torch, op.lower())
            for op in (
                *("Sqrt", "Reciprocal", "Exp", "Log", "Erf", "Ceil", "Floor", "Round"),
                *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh"),
            )
        }
    )
)


def _hyperbolic(op: str) -> None:
    own: Expr = getattr(torch, op.lower())
    helper: Expr = getattr(ops, op.lower())

    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        return own(x) if e.dtype(x) in (_D.FLOAT16, _D.BFLOAT16) else helper(x)


_hyperbolic("Sinh")
_hyperbolic("Cosh")


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
    if e.dtype(x) in UNSIGNED:
        bounds = {name: ordered(e, b) for name, b in (("min", low), ("max", high)) if b is not None}
        return from_ordered(e, x, torch.clamp(ordered(e, x), **bounds)) if bounds else x
    last = torch.finfo(x.dtype)
    limits = given(min=limit(e, x, low, last.min), max=limit(e, x, high, last.max))
    if list(limits.values()) == [0.0, 6.0] and is_float(e, x):
        return F.relu6(x)
    if len({isinstance(bound, Arg) for bound in limits.values()}) == 2:
        for name, bound in limits.items():
            x = torch.clamp(x, **{name: bound})
        return x
    return torch.clamp(x, **limits) if limits else x


# Comparison and logic


def _comparison(op: str, symbol: str) -> None:
    @rule(op)
    def apply(e: Emitter, a: Expr, b: Expr) -> Expr:
        if e.dtype(a) in UNSIGNED:
            return Binary(symbol, ordered(e, a), ordered(e, b))
        return Binary(symbol, *operands(e, a, b))


for _op, _symbol in shared.COMPARISONS.items():
    _comparison(_op, _symbol)


@rule("Equal")
def equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    if e.dtype(a) == _D.STRING:
        return ops.string_equal(a, b, device=e.device)
    if e.dtype(a) in UNSIGNED:
        return Binary("==", bits(e, a), bits(e, b))
    return shared.equal(e, a, b)


@rule("BitwiseNot")
def bitwise_not(e: Emitter, x: Expr) -> Expr:
    return from_bits(e, x, ~bits(e, x))


@rule("BitShift")
def shift(e: Emitter, x: Expr, amount: Expr, p: BitShift) -> Expr:
    """PyTorch defines shifts by a negative amount or by more than the width just as ONNX does."""
    if p.is_left:
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
def is_infinite(e: Emitter, x: Expr, p: IsInf) -> Expr:
    if e.dtype(x) in FLOAT8:
        x = x.to(torch.float32)
    test: dict[tuple[bool, bool], Callable[..., Expr]] = {
        (True, True): torch.isinf,
        (True, False): torch.isneginf,
        (False, True): torch.isposinf,
    }
    found = test.get((bool(p.detect_negative), bool(p.detect_positive)))
    return torch.zeros_like(x, dtype=torch.bool) if found is None else found(x)


@rule("Where")
def where(e: Emitter, test: Expr, yes: Expr, no: Expr) -> Expr:
    if e.dtype(yes) == _D.STRING:
        return ops.string_where(test, yes, no)
    if e.dtype(yes) in UNSIGNED:
        return from_bits(e, yes, torch.where(test, bits(e, yes), bits(e, no)))
    a, b = operands(e, yes, no)
    return torch.where(test, a, b)
