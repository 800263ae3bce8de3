"""The keys and values of earlier tokens, which language models take as inputs: in training there are none.

A training step sees whole texts, so such an input becomes a tensor of no places, and a batch does not have it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.graph.build import Builder, Tensor

PAST = {
    "Attention": (4, 5),
    "com.microsoft::GroupQueryAttention": (3, 4),
    "com.microsoft::MultiHeadAttention": (6, 7),
    "com.microsoft::SparseAttention": (3, 4),
}
"""Inputs of ops that are earlier keys and values: (batch, heads, places, features)."""
PLACES = 2


def cache_names(graph: ir.Graph) -> set[str]:
    """The inputs of a model that are caches."""
    return {value.name or "" for value in graph.inputs if _axis(value) is not None}


def empty_caches(model: ir.Model) -> list[str]:
    """Replace inputs that are such caches, in place; gives their names."""
    graph = model.graph
    found = {value: axis for value in graph.inputs if (axis := _axis(value)) is not None}
    given = [value for value in graph.inputs if value not in found]
    sizes = {
        dim.value: (value, axis)
        for value in reversed(given)
        for axis, dim in enumerate(value.shape or ())
        if not isinstance(dim, int) and dim.value
    }
    op = Builder(model)
    replaced = []
    for value, axis in found.items():
        made = _empty(op, value, axis, sizes)
        if made is not None:
            value.replace_all_uses_with(made.value)
            graph.inputs.remove(value)
            replaced.append(value.name or "")
    if replaced:
        graph.sort()
    return replaced


def _axis(value: ir.Value) -> int | None:
    """The axis of the places, if an input is a cache: what attention takes as one, or what grows into an output."""
    if value.dtype is None or value.shape is None or value.shape.rank() != 4:
        return None
    for node, index in value.uses():
        if index in PAST.get(key_of(node), ()):
            return PLACES
        if key_of(node) == "Concat" and index == 0 and node.outputs[0].is_graph_output():
            return node.attributes.get_int("axis", 0) % 4
    return None


def _empty(op: Builder, value: ir.Value, axis: int, sizes: dict[str, tuple[ir.Value, int]]) -> Tensor | None:
    """A tensor of no places; None where another of its sizes is not to be had."""
    assert value.shape is not None and value.dtype is not None
    if isinstance(value.shape[axis], int):
        return None
    dims = []
    for place, dim in enumerate(value.shape):
        if place == axis or isinstance(dim, int):
            dims.append(op.ints([0 if place == axis else int(dim)]))  # type: ignore[arg-type]
        elif dim.value in sizes:
            known, at = sizes[dim.value]
            dims.append(op.Shape(op.tensor(known), start=at, end=at + 1))
        else:
            return None
    zero = op.constant(np.zeros((), value.dtype.numpy()), value.dtype)
    return op.Expand(zero, op.Concat(*dims, axis=0))
