"""Leaves out of a graph what nothing reads."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.graph.walk import all_graphs, all_nodes

LOOP_INPUTS = 2
"""The count of steps and the condition of a Loop have a place each, be they given or not."""


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
    for graph in all_graphs(model.graph):
        _remove_unused_weights(graph)
    for top in (model.graph, *(function.graph for function in model.functions.values())):
        for node in all_nodes(top):
            if node.op_type == "Loop" and len(node.inputs) < LOOP_INPUTS:  # the pass takes away what is left open
                node.resize_inputs(LOOP_INPUTS)


def _remove_unused_weights(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
            graph.initializers.pop(name)


def detach(body: ir.Graph) -> None:
    """Let nothing in a graph that is left out count as read."""
    for graph in all_graphs(body):
        graph.outputs.clear()
        for node in graph:
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)
