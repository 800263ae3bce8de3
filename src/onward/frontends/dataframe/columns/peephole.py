"""Pairs of nodes that one node can say: at one row, each node that runs counts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.names import Names

OPPOSITE = {"GreaterOrEqual": "Less", "LessOrEqual": "Greater", "Less": "GreaterOrEqual", "Greater": "LessOrEqual"}


def peephole(model: ir.Model) -> None:
    """Join what can be joined, in place; nodes that nothing reads any more are for a later pass to remove."""
    names = Names(model)
    for node in list(model.graph):
        if node.op_type == "Cast":
            _cast_table(model.graph, node, names)
        elif node.op_type == "Not":
            _opposite(node)
        elif node.op_type == "Where":
            _looked_up_and_filled(node)


def _before(node: ir.Node) -> ir.Node | None:
    """The node whose result this one alone reads."""
    value = node.inputs[0]
    if value is None or value.is_graph_output() or len(value.uses()) != 1:
        return None
    return value.producer()


def _cast_table(graph: ir.Graph, node: ir.Node, names: Names) -> None:
    """What is looked up in a constant table and cast is looked up in the table that was cast."""
    lookup = _before(node)
    if lookup is None or lookup.op_type not in ("Gather", "GatherElements") or lookup.inputs[0] is None:
        return
    table = lookup.inputs[0].const_value
    target = ir.DataType(node.attributes["to"].as_int())
    if table is None or ir.DataType.STRING in (table.dtype, target):
        return
    cast = ir.Tensor(table.numpy().astype(target.numpy()), dtype=target)
    name = names.value(lookup.inputs[0].name or "table")
    cast.name = name
    value = ir.Value(name=name, const_value=cast, type=ir.TensorType(target), shape=lookup.inputs[0].shape)
    graph.register_initializer(value)
    lookup.replace_input_with(0, value)
    old, new = node.outputs[0], lookup.outputs[0]
    new.type = ir.TensorType(target)
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def _opposite(node: ir.Node) -> None:
    """What is not at least a number is below it; not so of floats, of which NaN is neither."""
    test = _before(node)
    if test is None or test.op_type not in OPPOSITE or test.inputs[0] is None:
        return
    dtype = test.inputs[0].dtype
    if dtype is None or not dtype.is_integer():
        return
    test.op_type = OPPOSITE[test.op_type]
    node.outputs[0].replace_all_uses_with(test.outputs[0], replace_graph_outputs=True)


def _looked_up_and_filled(node: ir.Node) -> None:
    """What is looked up, NaN if it is not there, and then filled: the table itself has what fills it."""
    test, number, value = node.inputs
    nan = None if test is None else test.producer()
    if nan is None or nan.op_type != "IsNaN" or value is None or number is None or nan.inputs[0] is not value:
        return
    blank = _number(number)
    found = value.producer()
    masked = found if found is not None and found.op_type == "Where" else None
    if masked is not None:
        if masked.inputs[2] is None or not _is_nan(masked.inputs[1]) or len(masked.inputs[2].uses()) != 1:
            return
        found = masked.inputs[2].producer()
    uses = {use.node for use in value.uses()}
    if found is None or blank is None or value.is_graph_output() or uses != {nan, node} or not _fills_nan(found):
        return
    default = ir.tensor(np.asarray([blank], np.float64), name="default_tensor")
    found.attributes["default_tensor"] = ir.AttrTensor("default_tensor", default)
    if masked is not None:
        masked.replace_input_with(1, number)
    node.outputs[0].replace_all_uses_with(value, replace_graph_outputs=True)


def _fills_nan(node: ir.Node) -> bool:
    """Whether a table of floats gives NaN for what is not in it, and for nothing else."""
    if node.op_type != "LabelEncoder" or "default_tensor" not in node.attributes:
        return False
    default, values = (node.attributes[name].as_tensor().numpy() for name in ("default_tensor", "values_tensor"))
    return default.dtype == np.float64 and bool(np.isnan(default).all()) and not np.isnan(values).any()


def _number(value: ir.Value | None) -> float | None:
    found = None if value is None else value.const_value
    return float(found.numpy().reshape(-1)[0]) if found is not None and found.size == 1 else None


def _is_nan(value: ir.Value | None) -> bool:
    number = _number(value)
    return number is not None and np.isnan(number)
