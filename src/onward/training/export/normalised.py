"""Whether a prediction is seen to be logarithms of probabilities."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import permutation


def is_normalised(value: ir.Value | None, axis: int = -1) -> bool:
    """Whether the numbers along an axis, counted from the last one, come out of a LogSoftmax along it."""
    node = None if value is None else value.producer()
    if node is None or node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type in ("Identity", "Cast"):
        return is_normalised(node.inputs[0], axis)
    shape = node.outputs[0].shape
    if shape is None:
        return node.op_type == "LogSoftmax" and node.attributes.get_int("axis", -1) == axis
    rank = shape.rank()
    if node.op_type == "LogSoftmax":
        return (node.attributes.get_int("axis", -1) - axis) % rank == 0
    if node.op_type == "Transpose":
        order = permutation(node) or list(reversed(range(rank)))
        return is_normalised(node.inputs[0], order[axis] - rank)
    return False
