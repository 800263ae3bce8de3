"""Checks that make a model fail: they ride on a constant that is there anyway, instead of on an addition."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.schema import PREFIX
from onward.graph.build import Builder

CARRIERS = ("Add", "Div", "Mul", "Sub")
PASSED = ("Cast", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Neg", *CARRIERS)
"""What may stand before the constant: nodes that compute something of any number."""


def move_guards(op: Builder) -> None:
    """Take the constant of a later node from where the check would take its 0, if all that is guarded goes there."""
    for node in list(op.graph):
        guard = node.inputs[1].producer() if node.op_type == "Add" and node.inputs[1] is not None else None
        if guard is None or not _is_guard(guard) or node.inputs[0] is None:
            continue
        carrier = _carrier(op.graph, node)
        if carrier is None:
            continue
        place = next(place for place, value in enumerate(carrier.inputs) if _is_number(value))
        number = carrier.inputs[place]
        assert number is not None and number.const_value is not None and guard.inputs[1] is not None
        table = op.constant(number.const_value.numpy().reshape(1), number.dtype)
        scope, op.scope = op.scope, (guard.name or "").removesuffix("Gather")
        taken = op.Gather(table, op.tensor(guard.inputs[1]))
        op.scope = scope
        carrier.replace_input_with(place, taken.value)
        node.outputs[0].replace_all_uses_with(node.inputs[0])


def _is_guard(node: ir.Node) -> bool:
    table = node.inputs[0].const_value if node.op_type == "Gather" and node.inputs[0] is not None else None
    if table is None or table.dtype != ir.DataType.INT64 or len(node.outputs[0].uses()) != 1:
        return False
    return (node.name or "").startswith(PREFIX) and np.array_equal(table.numpy(), [0])


def _is_number(value: ir.Value | None) -> bool:
    found = None if value is None or value.is_graph_input() else value.const_value
    return found is not None and found.size == 1 and len(found.shape) == 2


def _carrier(graph: ir.Graph, first: ir.Node) -> ir.Node | None:
    """The first node with a constant through which all goes that is computed of a node's result."""
    made, done = {first.outputs[0]}, {first}
    for node in graph:
        readers = {use.node for value in made for use in value.uses()} - done
        if node not in readers:
            continue
        if readers == {node} and node.op_type in CARRIERS and any(_is_number(value) for value in node.inputs):
            return node
        if node.op_type not in PASSED:
            return None
        made.add(node.outputs[0])
        done.add(node)
    return None
