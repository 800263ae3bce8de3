"""Squeeze in front of Transpose: TensorFlow's converter makes invalid files of some that come behind."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op, made_by, shape_of
from onward.graph.rewriter import Rewriter


def squeeze_first(model: ir.Model) -> None:
    """Take axes away before the others change places, in place; an axis that was just added goes with what added it."""
    op = Rewriter(model)
    for graph in graphs(model):
        for node in list(graph):
            transpose = made_by(node.inputs[0], "Transpose") if is_op(node, "Squeeze") else None
            if transpose is None or (axes := _axes(node)) is None:
                continue
            x, perm = transpose.inputs[0], list(transpose.attributes.get_ints("perm", ()))
            if x is None or x.shape is None or len(perm) != len(x.shape):
                continue
            _move(op.at(node), x, perm, [axis % len(perm) for axis in axes])


def _move(op: Rewriter, x: ir.Value, perm: Sequence[int], axes: Sequence[int]) -> None:
    gone = sorted(perm[axis] for axis in axes)
    places = [place for i, place in enumerate(perm) if i not in axes]
    left = sorted(places)
    assert x.shape is not None
    dims = x.shape.dims
    added = made_by(x, "Unsqueeze")
    if added is not None and added.inputs[0] is not None and sorted(n % len(perm) for n in _axes(added) or ()) == gone:
        small = added.inputs[0]
    else:
        small = op("Squeeze", x, op.ints(gone))
        small.shape = ir.Shape([dims[place] for place in left])
    found = op("Transpose", small, perm=[left.index(place) for place in places])
    found.shape = ir.Shape([dims[place] for place in places])
    op.replace(found)


def _axes(node: ir.Node) -> list[int] | None:
    """Those that a Squeeze or an Unsqueeze takes away or adds, where that is known."""
    if len(node.inputs) > 1:
        tensor = constant(node.inputs[1])
        return None if tensor is None else [int(axis) for axis in tensor.numpy().reshape(-1)]
    dims = shape_of(node.inputs[0])
    return None if dims is None or None in dims else [axis for axis, dim in enumerate(dims) if dim == 1]
