"""Pairs of nodes that one node can say: at one row, each node that runs counts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.frontends.dataframe.columns.steps import join_steps, look_up
from onward.frontends.dataframe.tensors.lookup import encoded
from onward.graph.build import Builder, Tensor

LARGE = 4096
"""Tables of more entries keep their dtype, which may be a small one."""
COMMUTATIVE = ("Add", "And", "Equal", "Mul", "Or", "Xor")
OPPOSITE = {"GreaterOrEqual": "Less", "LessOrEqual": "Greater", "Less": "GreaterOrEqual", "Greater": "LessOrEqual"}


def peephole(op: Builder) -> None:
    """Join what can be joined, in place; nodes that nothing reads any more are for a later pass to remove."""
    blanks: dict[tuple[ir.Value, int], Tensor] = {}
    for node in list(op.graph):
        if node.op_type == "Cast":
            _cast_table(op, node)
        elif node.op_type == "Not":
            _opposite(node)
        elif node.op_type == "Where":
            _looked_up_and_filled(node)
            _missing_number(op, node, blanks)
        elif node.op_type == "Gather":
            _table_of_intervals(op, node)
    join_steps(op)
    op.graph.sort()


def in_one_order(graph: ir.Graph) -> None:
    """What can be said in two orders is said in one, so that equal nodes are found to be equal."""
    for node in graph:
        if node.op_type in COMMUTATIVE and len(node.inputs) == 2:
            first, second = node.inputs
            if first is not None and second is not None and _rank(first) > _rank(second):
                node.replace_input_with(0, second)
                node.replace_input_with(1, first)


def _rank(value: ir.Value) -> tuple[bool, str]:
    """Constants come last."""
    return value.const_value is not None and not value.is_graph_input(), value.name or ""


def _before(node: ir.Node) -> ir.Node | None:
    """The node whose result this one alone reads."""
    value = node.inputs[0]
    if value is None or value.is_graph_output() or len(value.uses()) != 1:
        return None
    return value.producer()


def _cast_table(op: Builder, node: ir.Node) -> None:
    """What is looked up in a constant table and cast is looked up in the table that was cast."""
    lookup = _before(node)
    if lookup is None or lookup.op_type not in ("Gather", "GatherElements") or lookup.inputs[0] is None:
        return
    table = lookup.inputs[0].const_value
    target = ir.DataType(node.attributes["to"].as_int())
    if table is None or ir.DataType.STRING in (table.dtype, target) or table.size > LARGE:
        return
    cast = op.constant(table.numpy().astype(target.numpy()), target)
    lookup.replace_input_with(0, cast.value)
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


def _missing_number(op: Builder, node: ir.Node, blanks: dict[tuple[ir.Value, int], Tensor]) -> None:
    """A number that is NaN where an integer has one value: NaN or 0 is added, in a third of the time of Where."""
    test, number, value = node.inputs
    equal = None if test is None else test.producer()
    if equal is None or equal.op_type != "Equal" or not _is_nan(number) or value is None or not _is_plain(value):
        return
    left, right = equal.inputs
    null = None if right is None or left is None or left.dtype != ir.DataType.INT64 else right.const_value
    if left is None or null is None or null.size != 1:
        return
    key = int(null.numpy().reshape(-1)[0])
    if (left, key) not in blanks:
        blanks[left, key] = encoded(op.tensor(left), [key], np.asarray([np.nan]), 0.0)
    filled = op.tensor(value) + blanks[left, key]
    node.outputs[0].replace_all_uses_with(filled.value, replace_graph_outputs=True)


def _is_plain(value: ir.Value) -> bool:
    """Whether it is a float64 that is never -0.0: an integer that was cast, or of a table."""
    node = value.producer()
    if node is None or value.dtype != ir.DataType.DOUBLE or node.inputs[0] is None:
        return False
    if node.op_type == "Cast":
        return node.inputs[0].dtype is not None and node.inputs[0].dtype.is_integer()
    table = node.inputs[0].const_value if node.op_type in ("Gather", "GatherElements") else None
    return table is not None and not (np.signbit(table.numpy()) & (table.numpy() == 0)).any()


def _table_of_intervals(op: Builder, node: ir.Node) -> None:
    """What is looked up by the number of an interval: the float that a tree gives finds it, too."""
    table, index = node.inputs
    cast = None if index is None else index.producer()
    if table is None or table.const_value is None or cast is None or cast.op_type != "Cast" or cast.inputs[0] is None:
        return
    tree = cast.inputs[0].producer()
    cells = table.const_value
    if tree is None or tree.op_type != "TreeEnsemble" or len(cells.shape) != 1:
        return
    if cells.dtype not in (ir.DataType.STRING, ir.DataType.DOUBLE, ir.DataType.INT64):
        return
    made = look_up(op.tensor(cast.inputs[0]), cells.numpy())
    node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)


def _fills_nan(node: ir.Node) -> bool:
    """Whether a table of floats gives NaN for what is not in it, and for nothing else."""
    if node.op_type != "LabelEncoder" or "default_tensor" not in node.attributes:
        return False
    default, values = (node.attributes[name].as_tensor().numpy() for name in ("default_tensor", "values_tensor"))
    return default.dtype == np.float64 and bool(np.isnan(default).all()) and not np.isnan(values).any()


def _number(value: ir.Value | None) -> float | None:
    found = None if value is None or value.dtype == ir.DataType.STRING else value.const_value
    return float(found.numpy().reshape(-1)[0]) if found is not None and found.size == 1 else None


def _is_nan(value: ir.Value | None) -> bool:
    number = _number(value)
    return number is not None and np.isnan(number)
