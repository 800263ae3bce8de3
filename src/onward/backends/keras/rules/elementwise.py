"""Sums and products of tensors."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import applied, is_tensor, made, rule


def _merge(op: str, layer: str) -> None:
    @rule(op)
    def apply(e: Emitter, *inputs: Expr) -> Expr | None:
        fits = _fit(e, inputs) and not (layer == "Add" and _like_a_bias(e))
        return applied(e, made(e, inputs[0], layer), list(inputs)) if fits else None


def _fit(e: Emitter, inputs: tuple[Expr, ...]) -> bool:
    """Whether these are several tensors of one rank: each axis is as long in all, or known to be stretched."""
    if len(inputs) < 2 or not is_tensor(e, *inputs) or len({e.rank(x) for x in inputs}) > 1:
        return False
    lengths = [set(axis) for axis in zip(*(e.shape(x) or () for x in inputs), strict=True)]
    return len(lengths[0]) == 1 and all(len(n) == 1 or (None not in n and len(n - {1}) == 1) for n in lengths)


def _like_a_bias(e: Emitter) -> bool:
    """Whether Keras may take a term for a bias that is none: its layer does so with one axis that is longer than 1, and
    fails where another has no rows. That happens where the data say how many there are, and not with a batch."""
    graph = e.node.graph
    batches = {dim for value in graph.inputs for dim in value.shape or ()} if isinstance(graph, ir.Graph) else set()
    for shape in (value.shape for value in e.node.inputs[1:] if value is not None and value.shape is not None):
        counts = any(not isinstance(dim, int) and (dim.value is None or dim not in batches) for dim in shape)
        if counts and sum(isinstance(dim, int) and dim > 1 for dim in shape) == 1:
            return True
    return False


_merge("Add", "Add")
_merge("Sum", "Add")
_merge("Sub", "Subtract")
_merge("Mul", "Multiply")
