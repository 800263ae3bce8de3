"""Shapes of what common ops give, where they follow from those of the inputs by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

Dims = list[Any]
"""Sizes and symbolic dimensions."""


def broadcast(shapes: Sequence[ir.Shape]) -> ir.Shape:
    """The shape of what is computed of several, number by number."""
    if len(shapes) == 1:
        return ir.Shape(shapes[0])
    rank = max(map(len, shapes))
    dims: Dims = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            if dims[axis] == 1 or (isinstance(dim, int) and dim != 1):
                dims[axis] = dim
    return ir.Shape(dims)


def told(node: ir.Node) -> ir.Shape | None:
    """The shape of the result of an op that is listed here; None where it is for the schema to say."""
    function = _BY_OP.get(node.op_type)
    if function is None or node.domain or not node.inputs or node.inputs[0] is None or node.inputs[0].shape is None:
        return None
    dims = function(node, list(node.inputs[0].shape))
    return None if dims is None else ir.Shape(dims)


def _transpose(node: ir.Node, dims: Dims) -> Dims | None:
    perm = node.attributes.get("perm")
    return None if perm is None else [dims[axis] for axis in perm.as_ints()]


def _matmul(node: ir.Node, dims: Dims) -> Dims | None:
    """By a matrix, or of two stacks of equally many."""
    second = None if node.inputs[1] is None else node.inputs[1].shape
    if second is None or len(dims) < 2 or len(second) < 2:
        return None
    stacked = list(second)[:-2]
    sizes = [dim for dim in (*dims[:-2], *stacked) if isinstance(dim, int)]
    if stacked and (dims[:-2] != stacked or len(sizes) != 2 * len(stacked)):
        return None
    return [*dims[:-1], second[-1]]


def _reduced(node: ir.Node, dims: Dims) -> Dims | None:
    axes = _ints(node, 1)
    if not axes:
        return None
    gone = {axis % len(dims) for axis in axes}
    if node.attributes.get_int("keepdims", 1):
        return [1 if axis in gone else dim for axis, dim in enumerate(dims)]
    return [dim for axis, dim in enumerate(dims) if axis not in gone]


def _reshape(node: ir.Node, _: Dims) -> Dims | None:
    sizes = _ints(node, 1)
    return None if sizes is None or any(size <= 0 for size in sizes) else sizes


def _unsqueeze(node: ir.Node, dims: Dims) -> Dims | None:
    axes = _ints(node, 1)
    if axes is None or any(axis < 0 for axis in axes):
        return None
    result = list(dims)
    for axis in sorted(axes):
        result.insert(axis, 1)
    return result


def _ints(node: ir.Node, place: int) -> list[int] | None:
    value = node.inputs[place] if place < len(node.inputs) else None
    constant = None if value is None else value.const_value
    return None if constant is None else [int(number) for number in constant.numpy().reshape(-1)]


_BY_OP: dict[str, Callable[[ir.Node, Dims], Dims | None]] = {
    "Transpose": _transpose,
    "MatMul": _matmul,
    "ReduceMax": _reduced,
    "ReduceMean": _reduced,
    "ReduceSum": _reduced,
    "Reshape": _reshape,
    "Unsqueeze": _unsqueeze,
}
