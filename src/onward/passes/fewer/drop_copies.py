"""What is given on as it is, by a Dropout that drops nothing or under another name, is itself."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op
from onward.passes.fewer.moves import give_on


def drop_copies(model: ir.Model) -> int:
    """In place; returns how many nodes went. A Dropout whose mask is read, or whose mode a caller chooses, stays."""
    return sum(
        give_on(node, node.inputs[0])
        for graph in graphs(model)
        for node in list(graph)
        if (is_op(node, "Dropout") and _drops_nothing(node)) or (_is_copy(node) and node.outputs[0].is_graph_output())
    )


def _is_copy(node: ir.Node) -> bool:
    """Whether a node only has a name for a result; others go as they do in every conversion."""
    x = node.inputs[0] if node.inputs else None
    is_cast = is_op(node, "Cast") and x is not None and x.dtype == node.attributes.get_int("to", 0)
    return is_cast or is_op(node, "Identity")


def _drops_nothing(node: ir.Node) -> bool:
    if any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
        return False
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    if mode is None:
        return True
    held = None if mode.is_graph_input() else constant(mode)
    return held is not None and not held.numpy().any()
