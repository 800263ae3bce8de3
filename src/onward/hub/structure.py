"""What must hold of any graph, whoever made it: names are unique, values exist before they are used."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.hub.functions import check_functions
from onward.hub.wording import quote


def check(model: ir.Model) -> None:
    """Raise `InvalidModelError` unless the graph and every function are well formed and in order."""
    _check_graph(model.graph, set())
    for function in model.functions.values():
        _check_graph(function.graph, set())
    if model.functions:
        check_functions(model)


def sort(graph: ir.Graph) -> None:
    """Put nodes after those whose values they use, or name the nodes of a cycle."""
    try:
        graph.sort()
    except ValueError:
        raise InvalidModelError(f"the graph is cyclic: {_cycle(graph) or 'a node uses its own output'}") from None


def _label(node: ir.Node) -> str:
    name = node.name or next((value.name for value in node.outputs if value.name), "")
    return f"node {quote(name)} ({node.op_type})"


def _subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH and not attribute.is_ref():
            yield attribute.value
        elif attribute.type is ir.AttributeType.GRAPHS and not attribute.is_ref():
            yield from attribute.value


def _check_graph(graph: ir.Graph, visible: set[ir.Value]) -> None:
    """`visible` are the values of the graphs around this one."""
    names: set[str | None] = set()
    own: set[ir.Value] = set()

    def define(value: ir.Value, what: str) -> None:
        if value.name in names and value not in own:
            raise InvalidModelError(f"{what}: the name {quote(value.name)} is already taken")
        names.add(value.name)
        own.add(value)
        visible.add(value)

    for value in [*graph.inputs, *graph.initializers.values()]:
        define(value, "the graph")
    for node in graph:
        for used in node.inputs:
            if used is not None and used not in visible:
                raise InvalidModelError(
                    f"{_label(node)}: it reads {quote(used.name)}, which nothing before it produces"
                )
        for subgraph in _subgraphs(node):
            _check_graph(subgraph, visible)
        for value in node.outputs:
            if value.name != "":
                define(value, _label(node))
    for value in graph.outputs:
        if value not in own:
            raise InvalidModelError(f"no node produces the output {quote(value.name)}")
    visible -= own


def _cycle(graph: ir.Graph) -> str | None:
    """A cycle among the nodes of `graph`, or of a graph inside it, in words."""
    users: dict[ir.Node, set[ir.Node]] = {node: set() for node in graph}
    for node in graph:
        needed = [*node.inputs]
        for subgraph in _subgraphs(node):
            if inner := _cycle(subgraph):
                return inner
            needed += [value for inside in subgraph.all_nodes() for value in inside.inputs]
        users[node] |= {p for value in needed if value is not None and (p := value.producer()) in users}
    try:
        graphlib.TopologicalSorter(users).prepare()
    except graphlib.CycleError as error:
        nodes = [_label(node) for node in reversed(error.args[1])]
        return " feeds ".join(nodes if len(nodes) <= 5 else [*nodes[:3], "…", nodes[-1]])
    return None
