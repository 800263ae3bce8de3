"""Leaves out of a graph what nothing reads."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.graph.walk import all_graphs


def remove_unused(model: ir.Model) -> None:
    """Remove nodes and initializers that nothing reads; what the body of a removed node reads does not count."""
    graph = model.graph
    outputs = set(graph.outputs)
    for node in reversed(list(graph)):
        if any(value.uses() or value in outputs for value in node.outputs):
            continue
        for attribute in node.attributes.values():
            bodies = [attribute.value] if attribute.type == ir.AttributeType.GRAPH else []
            for body in bodies:
                detach(body)
        graph.remove(node, safe=True)
    passes.RemoveUnusedNodesPass()(model)


def detach(body: ir.Graph) -> None:
    """Let nothing in a graph that is left out count as read."""
    for graph in all_graphs(body):
        graph.outputs.clear()
        for node in graph:
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)
