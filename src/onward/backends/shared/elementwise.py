"""Arithmetic, element by element, as far as every backend says it alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.settings import Setting
from onward.backends.emit.target import Rule

_D = ir.DataType

FLOATS = (_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16)
WRAPPING = {"Add": "+", "Sub": "-", "Mul": "*", "And": "&", "Or": "|", "Xor": "^"}
WRAPPING |= {f"Bitwise{op}": WRAPPING[op] for op in ("And", "Or", "Xor")}
"""Operators for which only the bits of integers count, not whether they have a sign."""
ROLES = {"Add": "offset", "Sub": "offset", "Mul": "scale", "Div": "divisor"}
"""What a number beside a tensor is called."""
COMPARISONS = {"Less": "<", "LessOrEqual": "<=", "Greater": ">", "GreaterOrEqual": ">="}


def is_float(e: Emitter, x: Expr) -> bool:
    of = e.dtype(x)
    return of is None or of.is_floating_point()


def in_float(e: Emitter, x: Expr, compute: Callable[[Expr], Expr]) -> Expr:
    """A float function; of integers it is computed in double precision and cut off."""
    if is_float(e, x):
        return compute(x)
    return e.target.cast(compute(e.target.cast(x, _D.DOUBLE)), e.dtype(x) or _D.INT64)


def functions(named: Mapping[str, Expr]) -> dict[str, Rule]:
    """Rules of ops that are one function, called with the input."""

    def rule(function: Expr) -> Rule:
        return lambda e, x: function(x)

    return {op: rule(function) for op, function in named.items()}


def literal(e: Emitter, x: Expr, other: Expr) -> Any:
    """The input as a number that can stand beside `other`, None where it is a tensor."""
    number = e.scalar(x, e.rank(other))
    return number if number is not None and e.target.is_literal(number) else None


def operands(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Both operands of a broadcasting op; a lone number beside a tensor stays a Python number."""
    left, right = literal(e, a, b), literal(e, b, a)
    if right is not None and e.scalar(a) is None:
        return a, right
    return (left, b) if left is not None and e.scalar(b) is None else (a, b)


def settable(e: Emitter, op: str, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Both operands of a broadcasting op; a lone float is one by which equal blocks may differ."""
    x, y = operands(e, a, b)
    return (_setting(e, op, x, b), y) if x is not a else (x, _setting(e, op, y, a) if y is not b else y)


def _setting(e: Emitter, op: str, number: Any, beside: Expr) -> Any:
    is_free = op in ROLES and isinstance(number, float) and math.isfinite(number)
    of = e.dtype(beside)
    return Setting(number, ROLES[op], of) if is_free and of in (_D.FLOAT, _D.DOUBLE, _D.FLOAT16) else number


def tensor_first(e: Emitter, a: Expr, b: Expr) -> tuple[Any, Any]:
    """Operands for a function whose first argument must be a tensor."""
    number = literal(e, b, a)
    return (a, b) if number is None else (a, number)


def limit(e: Emitter, x: Expr, bound: Expr | None, last: Expr) -> Any:
    """A number or a tensor; where no bound is given, the `last` finite number, but none in what PyTorch exported."""
    if bound is None:
        return last if e.dtype(x) in FLOATS and e.producer != "pytorch" else None
    number = literal(e, bound, x)
    return bound if number is None else number


def equal(e: Emitter, a: Expr, b: Expr) -> Expr:
    x, y = operands(e, a, b)
    if isinstance(x, bool):
        return b if x else ~b
    if isinstance(y, bool):
        return a if y else ~a
    return Binary("==", x, y)


def total(e: Emitter, *xs: Expr) -> Expr:
    return reduce(lambda a, b: a + b, xs)


def mean(e: Emitter, *xs: Expr) -> Expr:
    return total(e, *xs) / len(xs) if len(xs) > 1 else xs[0]


def invert(e: Emitter, x: Expr) -> Expr:
    return ~x


RULES: dict[str, Rule] = {"Sum": total, "Mean": mean, "Neg": lambda e, x: -x, "Not": invert}
