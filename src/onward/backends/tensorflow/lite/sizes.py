"""Whether numbers of shapes can be computed in single precision, as TensorFlow Lite has few kernels for double."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import constant
from onward.graph.values import INTEGERS
from onward.graph.walk import all_nodes

DOUBLE = ir.DataType.DOUBLE
TO_WHOLE = ("Ceil", "Floor", "Round")
OF_WHOLE = ("Add", "Sub", "Mul", "Min", "Max", "Neg", "Abs")
"""What gives whole numbers if it is given such."""


def fit_in_single(model: ir.Model) -> bool:
    """Whether no number in double precision is another one in single, for sizes below 2²⁴.

    Quotients of whole numbers are rounded to whole numbers then: 1 / b, by which such a quotient at least is off from
    the next one, is more than what single precision rounds.
    """
    for node in all_nodes(model.graph):
        made = next((value for value in node.outputs if value.dtype == DOUBLE), None)
        if made is None or _is_whole(made):
            continue
        is_quotient = node.op_type == "Div" and all(_is_whole(value) for value in node.inputs)
        if not is_quotient or not all(_rounds(use.node) for use in made.uses()) or made.is_graph_output():
            return False
    return True


def _is_whole(value: ir.Value | None) -> bool:
    tensor = constant(value)
    if tensor is not None:
        numbers = tensor.numpy()
        return bool(tensor.size == 1 and (numbers == numbers.round()).all())
    node = None if value is None else value.producer()
    if node is None:
        return False
    if node.op_type == "Cast" and node.inputs[0] is not None and node.inputs[0].dtype in INTEGERS:
        return True
    if node.op_type in ("Squeeze", "Unsqueeze", "Reshape", "Identity"):
        return _is_whole(node.inputs[0])
    return node.op_type in TO_WHOLE or (node.op_type in OF_WHOLE and all(map(_is_whole, node.inputs)))


def _rounds(node: ir.Node) -> bool:
    if node.op_type == "Cast":
        return node.outputs[0].dtype in INTEGERS
    return node.op_type in TO_WHOLE and node.op_type != "Round"
