"""What only moves the numbers of a weight, such as a Reshape or Transpose of it, is done to the weight itself."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op, only_user
from onward.passes.fold_constants import EVALUATE, arguments

MOVES = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
TYPES = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT8, ir.DataType.UINT8}


def move_weights(model: ir.Model) -> int:
    """In place, where nothing else reads the weight, which keeps its name; returns how many nodes went."""
    nodes = [node for graph in graphs(model) for node in graph if is_op(node, *MOVES)]
    return sum(_moved(node) for node in nodes)


def _moved(node: ir.Node) -> bool:
    weight, graph = node.inputs[0], node.graph
    if weight is None or not weight.is_initializer() or weight.is_graph_input() or only_user(weight) is not node:
        return False
    held = weight.const_value
    others = [None if value is None else constant(value) for value in node.inputs[1:]]
    if held is None or held.dtype not in TYPES or node.outputs[0].is_graph_output() or graph is None:
        return False
    if any(found is None and value is not None for found, value in zip(others, node.inputs[1:], strict=True)):
        return False
    try:
        moved = EVALUATE[node.op_type](
            held.numpy(), *(None if x is None else x.numpy() for x in others), **arguments(node)
        )
    except (ValueError, IndexError, TypeError):
        return False
    node.outputs[0].replace_all_uses_with(weight)
    graph.remove(node, safe=True)
    weight.const_value = ir.Tensor(moved.copy(order="C"), name=weight.name)
    weight.shape = ir.Shape(moved.shape)
    return True
