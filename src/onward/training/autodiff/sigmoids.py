"""Sigmoids that a file writes out: their derivative is NaN in pieces where exp(-x) is too large for a number."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.replace import constant, is_op, made_by, new_node, only_user, remove_unread, take_over
from onward.graph.walk import all_nodes


def name_sigmoids(model: ir.Model) -> None:
    """Replace 1 / (1 + exp(-x)) by Sigmoid, in place."""
    for node in list(all_nodes(model.graph)):
        parts = _sigmoid(node)
        if parts is not None:
            x = parts[0].inputs[0]
            take_over(node.outputs[0], new_node("Sigmoid", [x], {}, node, node).outputs[0])
            remove_unread([*parts, node])


def _sigmoid(node: ir.Node) -> list[ir.Node] | None:
    """The Neg, the Exp and the Add of a sigmoid that ends in this node, if nobody else asks for what they give."""
    if is_op(node, "Reciprocal"):
        divisor = node.inputs[0]
    elif is_op(node, "Div") and _is_one(node.inputs[0]):
        divisor = node.inputs[1]
    else:
        return None
    add = made_by(divisor, "Add")
    if add is None:
        return None
    for value, one in (add.inputs, add.inputs[::-1]):
        exp = made_by(value, "Exp")
        neg = made_by(exp.inputs[0], "Neg") if exp is not None and _is_one(one) else None
        if exp is not None and neg is not None and neg.inputs[0] is not None:
            parts = [neg, exp, add]
            return parts if all(only_user(part.outputs[0]) for part in parts) else None
    return None


def _is_one(value: ir.Value | None) -> bool:
    """Whether a value is the number 1, and takes the shape of what it is added to."""
    if value is None or value.is_graph_input():
        return False
    tensor = constant(value)
    return tensor is not None and tensor.size == 1 and not len(tensor.shape) and bool(np.all(tensor.numpy() == 1))
