"""Gradient nodes with the computation they differentiate inside them.

`ai.onnx.preview.training::Gradient` names the tensors of the model it is about in its attributes, where no pass
would look for them. `onward::Gradient(xs…, zs…; body, count)` has a graph from these tensors to y instead, and
gives the derivatives of its sum with respect to the first `count` inputs.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.origin import origin
from onward.graph.replace import DOMAIN, graphs, new_node, take_over
from onward.graph.walk import all_nodes, inner_graphs


def enclose_gradients(model: ir.Model) -> int:
    """Rewrites in place, before anything renames or removes tensors; returns how many there were."""
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if node.op_type == "Gradient" and node.domain == "ai.onnx.preview.training":
                _enclose(node, graph)
                count += 1
    return count


def _enclose(node: ir.Node, graph: ir.Graph) -> None:
    xs = [str(name) for name in node.attributes.get_strings("xs", ())]
    zs = [str(name) for name in node.attributes.get_strings("zs", ())]
    named = {v.name: v for v in (*graph.inputs, *graph.initializers.values()) if v.name}
    named |= {output.name: output for other in graph for output in other.outputs if output.name}
    wanted = [*xs, *zs, node.attributes.get_string("y", "")]
    missing = [name for name in wanted if name not in named]
    if missing:
        raise UnsupportedError(f"{origin(node)}: there is no tensor {missing[0]!r} in the graph of the gradient")
    *start, y = (named[name] for name in wanted)
    if len(start) != len(node.inputs):
        raise InvalidModelError(f"{origin(node)}: it has {len(node.inputs)} inputs for {len(start)} tensors")
    body = _copy(start, y, _between(start, y, graph))
    attributes = {"body": body, "count": len(xs)}
    new = new_node("Gradient", node.inputs, attributes, node, node, domain=DOMAIN, outputs=len(node.outputs))
    for old, result in zip(node.outputs, new.outputs, strict=True):
        take_over(old, result)
    graph.remove(node, safe=True)


def _copy(start: list[ir.Value], y: ir.Value, nodes: list[ir.Node]) -> ir.Graph:
    """A graph of copies of the nodes; what they read besides `start` stays outside of it."""
    made = {output for node in nodes for inner in (node, *_inner(node)) for output in inner.outputs}
    made |= {value for node in nodes for inner in _inner(node) for value in _defined(inner.graph)}
    read = {v: None for node in nodes for inner in (node, *_inner(node)) for v in inner.inputs if v is not None}
    outside = [value for value in read if value not in made and value not in start]
    body = ir.GraphView([*start, *outside], [y], nodes=nodes, name=f"gradient of {y.name}").clone()
    for copied, value in zip(list(body.inputs)[len(start) :], outside, strict=True):
        copied.replace_all_uses_with(value)
    del body.inputs[len(start) :]
    for value in body.inputs:
        value.const_value = None
    return body


def _defined(graph: ir.Graph | ir.Function | None) -> list[ir.Value]:
    return [*graph.inputs, *graph.initializers.values()] if isinstance(graph, ir.Graph) else []


def _between(start: list[ir.Value], y: ir.Value, graph: ir.Graph) -> list[ir.Node]:
    """The nodes that compute y from given values, in the order of the graph."""
    found, pending = set(), [y]
    seen = set(start)
    while pending:
        value = pending.pop()
        node = value.producer()
        if value in seen or node is None or node.graph is not graph:
            continue
        seen.add(value)
        if node not in found:
            found.add(node)
            pending += [v for v in node.inputs if v is not None]
            pending += [v for inner in _inner(node) for v in inner.inputs if v is not None]
    return [node for node in graph if node in found]


def _inner(node: ir.Node) -> list[ir.Node]:
    """All nodes in the graphs inside a node."""
    return [inner for graph in inner_graphs(node) for inner in all_nodes(graph)]
