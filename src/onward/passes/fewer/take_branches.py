"""An If whose condition is known gives way to the branch that is taken."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op
from onward.graph.unused import detach
from onward.graph.walk import all_graphs, inner_graphs


def take_branches(model: ir.Model) -> int:
    """In place; returns how many went. Names of the branch stay, but for those that the rest of the model has, too."""
    count = 0
    while (found := next(_known(model), None)) is not None:
        _take(model, *found)
        count += 1
    return count


def _known(model: ir.Model) -> Iterator[tuple[ir.Graph, ir.Node, ir.Graph]]:
    for graph in graphs(model):
        for node in graph:
            condition = node.inputs[0] if is_op(node, "If") else None
            held = constant(condition)
            if condition is None or held is None or condition.is_graph_input() or held.size != 1:
                continue
            branch = node.attributes["then_branch" if held.numpy().reshape(-1)[0] else "else_branch"].as_graph()
            if not any(value.is_graph_output() for value in node.outputs) or _makes_all(branch):
                yield graph, node, branch


def _makes_all(branch: ir.Graph) -> bool:
    """Whether each result has a node of the branch to itself, which can take over its name."""
    makers = [value.producer() for value in branch.outputs]
    return all(m is not None and m.graph is branch for m in makers) and len({*branch.outputs}) == len(branch.outputs)


def _take(model: ir.Model, graph: ir.Graph, node: ir.Node, branch: ir.Graph) -> None:
    for other in inner_graphs(node):
        if other is not branch:
            detach(other)
    node.attributes.clear()
    names = Names(model)  # of all that stays beside the branch
    results, weights = list(branch.outputs), list(branch.initializers.values())
    branch.outputs.clear()
    branch.initializers.clear()
    for each in (branch, *list(all_graphs(branch))[1:]):
        held = weights if each is branch else [*each.initializers.values(), *each.inputs]
        for value in [*held, *(value for one in each for value in one.outputs)]:
            value.name = names.value(value.name) if value.name else value.name
        for one in each:
            one.name = names.node(one.name) if one.name else one.name
    for value in weights:
        graph.register_initializer(value)
    inner = list(branch)
    branch.remove(inner)
    graph.insert_before(node, inner)
    for old, new in zip(node.outputs, results, strict=True):
        if old.is_graph_output():
            new.type, new.shape = old.type, old.shape
            old.replace_all_uses_with(new, replace_graph_outputs=True)
            old.name, new.name = None, old.name
        else:
            old.replace_all_uses_with(new)
    graph.remove(node, safe=True)
