"""A Dropout that drops nothing goes."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op


def drop_dropout(model: ir.Model) -> int:
    """In place; returns how many went. One whose mask is read, or whose mode a caller chooses, stays."""
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "Dropout") and _drops_nothing(node) and (x := node.inputs[0]) is not None:
                node.outputs[0].replace_all_uses_with(x)
                graph.remove(node, safe=True)
                count += 1
    return count


def _drops_nothing(node: ir.Node) -> bool:
    if node.outputs[0].is_graph_output() or any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
        return False
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    if mode is None:
        return True
    held = None if mode.is_graph_input() else constant(mode)
    return held is not None and not held.numpy().any()
