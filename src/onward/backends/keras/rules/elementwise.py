"""Sums and products of tensors."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import applied, is_tensor, made, rule


def _merge(op: str, layer: str) -> None:
    @rule(op)
    def apply(e: Emitter, *inputs: Expr) -> Expr | None:
        return applied(e, made(e, inputs[0], layer), list(inputs)) if _fit(e, inputs) else None


def _fit(e: Emitter, inputs: tuple[Expr, ...]) -> bool:
    """Whether these are several tensors of one rank: each axis is as long in all, or known to be stretched."""
    if len(inputs) < 2 or not is_tensor(e, *inputs) or len({e.rank(x) for x in inputs}) > 1:
        return False
    lengths = [set(axis) for axis in zip(*(e.shape(x) or () for x in inputs), strict=True)]
    return len(lengths[0]) == 1 and all(len(n) == 1 or (None not in n and len(n - {1}) == 1) for n in lengths)


_merge("Add", "Add")
_merge("Sum", "Add")
_merge("Sub", "Subtract")
_merge("Mul", "Multiply")
