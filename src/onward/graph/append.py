"""Writes a graph behind another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.graph.build import Builder
from onward.graph.names import Names, Unique, node_names, value_names
from onward.graph.walk import all_graphs, all_nodes
from onward.hub.write import ANNOTATED, DESCRIBED, function_bytes


@dataclass(frozen=True)
class Renamed:
    """What a model calls things now that another model has things of the same names."""

    values: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[ir.OperatorIdentifier, str] = field(default_factory=dict)


def appended(op: Builder, model: ir.Model, feeds: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Move the nodes of a model to the end of a graph; `feeds` are by the name of an input what it is fed.

    Inputs that are not fed have to be initializers. Names that are taken get a number behind them. What the outputs
    became is returned; the model that they come from is of no use afterwards.
    """
    fed = {value: feeds[value.name or ""] for value in model.graph.inputs if value.name in feeds}
    set_apart(op.names, op.model, model, but=fed)
    return moved(op, model, fed)


def set_apart(
    names: Names, target: ir.Model, model: ir.Model, prefix: str = "", *, but: Iterable[ir.Value] = (),
    also: Iterable[str] = (),
) -> Renamed:  # fmt: skip
    """Give everything in `model` whose name is taken in `target` a new one, with `prefix` before or a number behind it.

    Graphs inside nodes are renamed as well, since they must not hide a value of the graph around them. `but` are values
    that will be gone; `also` are names used beside the graph.
    """
    graphs = list(all_graphs(model.graph))
    gone = {value.name for value in but}
    own = [name for name in (*value_names(graphs), *also) if name not in gone]
    values, nodes = names.apart(own, node_names(graphs), prefix)
    for graph in graphs:
        for value in [*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)]:
            if value.name in values and value not in but:
                value.name = values[value.name]
        for node in graph:
            if node.name in nodes:
                node.name = nodes[node.name]
        annotations = graph.meta.get(ANNOTATED, {})
        for annotation in annotations.values():
            annotation.update({key: values.get(name, name) for key, name in annotation.items()})
    return Renamed(values, _functions_apart(target, model, prefix))


def _functions_apart(target: ir.Model, model: ir.Model, prefix: str) -> dict[ir.OperatorIdentifier, str]:
    """Rename the functions of `model` that `target` has with another body, and all calls of them."""
    shared = {key for key in model.functions if key in target.functions}
    other = {key for key in shared if function_bytes(model.functions[key]) != function_bytes(target.functions[key])}
    while calling := {key for key in shared - other if _calls(model.functions[key], other)}:
        other |= calling  # its text is the same, but not what it means
    free = Unique([name for _, name, _ in (*target.functions, *model.functions)])
    word = "".join(letter if letter.isalnum() else "_" for letter in prefix)
    made = {key: free.name(word + key[1]) for key in sorted(other)}
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    for node in (node for graph in graphs for node in all_nodes(graph)):
        node.op_type = made.get(node.op_identifier(), node.op_type)
    for key, name in made.items():
        function = model.functions.pop(key)
        function.name = name
        model.functions[function.identifier()] = function
    return made


def _calls(function: ir.Function, others: set[ir.OperatorIdentifier]) -> bool:
    return any(node.op_identifier() in others for node in all_nodes(function.graph))


def moved(op: Builder, model: ir.Model, feeds: Mapping[ir.Value, ir.Value]) -> list[ir.Value]:
    """As `appended`, of a model whose names were set apart; `feeds` are by input what it is fed."""
    source = model.graph
    outputs = [feeds.get(value, value) for value in source.outputs]
    source.outputs.clear()
    for value, fed in feeds.items():
        value.replace_all_uses_with(fed)
    source.inputs.clear()
    for name, value in list(source.initializers.items()):
        source.initializers.pop(name)
        if value not in feeds:
            op.graph.register_initializer(value)
    for node in list(source):
        source.remove(node)
        node.name = node.name or op.names.node(node.op_type)
        for result in node.outputs:
            if result.name is None:
                result.name = op.names.value(node.name)
        op.graph.append(node)
    op.graph.meta.setdefault(ANNOTATED, {}).update(source.meta.get(ANNOTATED, {}))
    op.graph.meta.setdefault(DESCRIBED, set()).update(source.meta.get(DESCRIBED, set()))
    for domain, version in model.opset_imports.items():
        op.model.opset_imports.setdefault(domain, version)
    for key, function in model.functions.items():
        op.model.functions.setdefault(key, function)
    return outputs
