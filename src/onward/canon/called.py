"""What the calls of a model's functions say of what these are given."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onward.graph.infer_bodies import UNKNOWN, Kind, join, kind_of
from onward.graph.walk import all_nodes


def callers_first(model: ir.Model) -> list[ir.Function]:
    """The functions, each behind those that call it; functions that call themselves are refused as a file is read."""
    found: dict[ir.OperatorIdentifier, ir.Function] = {}

    def visit(key: ir.OperatorIdentifier) -> None:
        if key not in found:
            for node in all_nodes(model.functions[key].graph):
                if node.op_identifier() in model.functions:
                    visit(node.op_identifier())
            found[key] = model.functions[key]

    for key in model.functions:
        visit(key)
    return list(found.values())[::-1]


def type_inputs(function: ir.Function, model: ir.Model) -> None:
    """Give the inputs of a function, in place, the types and shapes that all calls of it have in common."""
    calls = list(_calls(function, model))
    for index, value in enumerate(function.inputs):
        kinds = [kind_of(call.inputs[index]) if index < len(call.inputs) else UNKNOWN for call in calls]
        common: Kind = kinds[0] if kinds else UNKNOWN
        for kind in kinds[1:]:
            common = join(common, kind)
        if common.type is not None:
            value.type = common.type
            value.shape = None if common.dims is None else ir.Shape(common.dims)


def _calls(function: ir.Function, model: ir.Model) -> Iterator[ir.Node]:
    for graph in (model.graph, *(other.graph for other in model.functions.values())):
        yield from (node for node in all_nodes(graph) if node.op_identifier() == function.identifier())
