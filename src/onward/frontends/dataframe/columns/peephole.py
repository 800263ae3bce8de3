"""Pairs of nodes that one node can say: at one row, each node that runs counts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.frontends.dataframe.columns.blanks import Blanks, is_nan, number_of
from onward.frontends.dataframe.columns.guards import move_guards
from onward.frontends.dataframe.columns.steps import join_steps, look_up
from onward.frontends.dataframe.tensors.lookup import Encoded, encoded
from onward.graph.build import Builder

LARGE = 4096
"""Tables of more entries keep their dtype, which may be a small one."""
COMMUTATIVE = ("Add", "And", "Equal", "Mul", "Or", "Xor")
OPPOSITE = {"GreaterOrEqual": "Less", "LessOrEqual": "Greater", "Less": "GreaterOrEqual", "Greater": "LessOrEqual"}


def peephole(op: Builder) -> None:
    """Join what can be joined, in place; nodes that nothing reads any more are for a later pass to remove."""
    blanks = Blanks(op)
    for node in _read(op):
        if node.op_type == "Cast":
            _cast_table(op, node)
        elif node.op_type == "Not":
            _opposite(node)
        elif node.op_type == "Where":
            _looked_up_and_filled(node)
            blanks.add(node)
        elif node.op_type == "Gather":
            _table_of_intervals(op, node)
        elif node.op_type == "GatherElements":
            _table_of_large_table(op, node)
        elif node.op_type == "And":
            _known_and_there(op, node)
        elif node.op_type == "Clip":
            _both_limits(node)
    join_steps(op)
    for node in _read(op):
        if node.op_type == "LabelEncoder":
            _table_of_table(op, node)
    for node in _read(op):
        if node.op_type == "LabelEncoder":
            _without_limits(node)
    for node in _read(op):
        if node.op_type == "IsNaN":
            _same_gaps(node)
    move_guards(op)
    op.graph.sort()


def _read(op: Builder) -> list[ir.Node]:
    """The nodes in order; those that nothing reads are taken out before."""
    op.graph.sort()
    for node in reversed(list(op.graph)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            op.graph.remove(node, safe=True)
    return list(op.graph)


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
    if lookup is not None and lookup.op_type == "LabelEncoder":
        return _cast_values(op, node, lookup)
    if lookup is not None and lookup.op_type == "Cast" and lookup.inputs[0] is not None:
        if lookup.inputs[0].dtype == ir.DataType.INT8 and lookup.outputs[0].dtype == ir.DataType.INT64:
            node.replace_input_with(0, lookup.inputs[0])
        return
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


def _cast_values(op: Builder, node: ir.Node, lookup: ir.Node) -> None:
    """As `_cast_table`, of floats that are all whole."""
    table = Encoded.of(lookup)
    target = node.attributes["to"].as_int()
    if table is None or table.values.dtype != np.float64 or target != int(ir.DataType.INT64):
        return
    cells = np.asarray([*table.values, table.default])
    if not (np.abs(cells) < 2**53).all() or not (cells == np.floor(cells)).all():
        return
    assert lookup.inputs[0] is not None
    *values, default = cells.astype(np.int64)
    made = encoded(op.tensor(lookup.inputs[0]), table.keys, np.asarray(values, np.int64), default)
    node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)


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
    blank = number_of(number)
    found = value.producer()
    masked = found if found is not None and found.op_type == "Where" else None
    if masked is not None:
        if masked.inputs[2] is None or not is_nan(masked.inputs[1]) or len(masked.inputs[2].uses()) != 1:
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


def _table_of_intervals(op: Builder, node: ir.Node) -> None:
    """What is looked up by the number of an interval: what tells the interval finds it, too."""
    table, index = node.inputs
    found = None if index is None else index.producer()
    cells = None if table is None else table.const_value
    if found is None or found.inputs[0] is None or cells is None or len(cells.shape) != 1:
        return
    if cells.dtype not in (ir.DataType.STRING, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.BOOL):
        return
    is_bool = cells.dtype == ir.DataType.BOOL
    values = np.where(cells.numpy(), np.nan, 0.0) if is_bool else cells.numpy()
    given, places, tree = op.tensor(found.inputs[0]), Encoded.of(found), found.inputs[0].producer()
    if places is not None and np.isin([*places.values, places.default], np.arange(cells.size)).all():
        made = encoded(given, places.keys, values[places.values], values[places.default])
    elif found.op_type == "Cast" and tree is not None and tree.op_type == "TreeEnsemble":
        made = look_up(given, values)
    else:
        return
    made = op.IsNaN(made) if is_bool else made
    node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)


def _table_of_large_table(op: Builder, node: ir.Node) -> None:
    """What a small table has for what a large one has: the large one has it itself, in the smallest integers."""
    table, cast = node.inputs[0], _before_index(node)
    large = None if cast is None or cast.op_type != "Cast" else _before(cast)
    if table is None or table.const_value is None or large is None or large.op_type != "GatherElements":
        return
    if large.inputs[0] is None or large.inputs[1] is None or large.inputs[0].const_value is None:
        return
    cells, places = table.const_value.numpy().reshape(-1), large.inputs[0].const_value.numpy()
    if places.size <= LARGE or places.shape[1:] != (1,) or cells.dtype.kind not in "iuf" or table.dtype is None:
        return
    found = cells[places]
    if not np.array_equal(found.astype(np.int8), found):
        return
    small = op.GatherElements(op.constant(found.astype(np.int8)), op.tensor(large.inputs[1]), axis=0)
    made = small.cast(table.dtype)
    made.value.shape = node.outputs[0].shape
    node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)


def _before_index(node: ir.Node) -> ir.Node | None:
    value = node.inputs[1]
    return None if value is None or len(value.uses()) != 1 else value.producer()


def _known_and_there(op: Builder, node: ir.Node) -> None:
    """Whether a text is one of some and not missing: 1 of a known one is more than the mask, 0 of others is not."""
    for test, mask in (node.inputs, node.inputs[::-1]):
        compared, negated = _alone(test, "GreaterOrEqual"), _alone(mask, "Not")
        lookup = None if compared is None else _alone(compared.inputs[0], "LabelEncoder")
        if compared is None or negated is None or lookup is None or number_of(compared.inputs[1]) != 0:
            continue
        keys = lookup.attributes.get("keys_strings")
        places = lookup.attributes.get("values_int64s")
        if keys is None or places is None or lookup.inputs[0] is None or negated.inputs[0] is None:
            continue
        default = lookup.attributes.get("default_int64")
        if (default is not None and default.as_int() != -1) or min(places.as_ints()) < 0:
            continue
        texts = [key.encode() for key in keys.as_strings()]
        found = encoded(op.tensor(lookup.inputs[0]), texts, np.ones(len(texts), np.int64), 0)
        made = found > op.tensor(negated.inputs[0]).cast(ir.DataType.INT64)
        node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)
        return


def _alone(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """The node of a type that gives a value, of which there is one reader."""
    node = None if value is None or len(value.uses()) != 1 else value.producer()
    return node if node is not None and node.op_type == op_type else None


def _both_limits(node: ir.Node) -> None:
    """A lower limit and then an upper one, which holds where it is below the other: at once."""
    inner = _before(node)
    if inner is None or inner.op_type != "Clip" or len(inner.inputs) != 3 or len(node.inputs) != 3:
        return
    low, high, none = number_of(node.inputs[1]), number_of(inner.inputs[2]), np.inf
    if low == -none and high == none:
        node.replace_input_with(0, inner.inputs[0])
        node.replace_input_with(1, inner.inputs[1])


def _table_of_table(op: Builder, node: ir.Node) -> None:
    """What is looked up by what was looked up."""
    before = None if node.inputs[0] is None else node.inputs[0].producer()
    first, second = None if before is None else Encoded.of(before), Encoded.of(node)
    if before is None or before.inputs[0] is None or first is None or second is None:
        return
    *values, default = (second.at(cell) for cell in (*first.values, first.default))
    made = encoded(op.tensor(before.inputs[0]), first.keys, np.asarray(values, second.values.dtype), default)
    node.outputs[0].replace_all_uses_with(made.value, replace_graph_outputs=True)


def _without_limits(node: ir.Node) -> None:
    """A table that has nothing else for its ends than for what is not in it needs no limits before it."""
    clip = None if node.inputs[0] is None else node.inputs[0].producer()
    table = Encoded.of(node)
    if table is None or clip is None or clip.op_type != "Clip" or len(clip.inputs) != 3:
        return
    limits = [number_of(value) for value in clip.inputs[1:]]
    other = np.asarray([table.default]).tobytes()
    if all(limit is not None and np.asarray([table.at(limit)]).tobytes() == other for limit in limits):
        node.replace_input_with(0, clip.inputs[0])


def _same_gaps(node: ir.Node) -> None:
    """Where one table has NaN another of the same keys has it as well: if that one is read anyway, this is not."""
    lookup = _before(node)
    table = None if lookup is None else Encoded.of(lookup)
    if lookup is None or lookup.inputs[0] is None or table is None or table.values.dtype != np.float64:
        return
    for use in lookup.inputs[0].uses():
        other = Encoded.of(use.node)
        if use.node is not lookup and other is not None and table.has_gaps_of(other):
            node.replace_input_with(0, use.node.outputs[0])
            return


def _fills_nan(node: ir.Node) -> bool:
    """Whether a table of floats gives NaN for what is not in it, and for nothing else."""
    if node.op_type != "LabelEncoder" or "default_tensor" not in node.attributes:
        return False
    default, values = (node.attributes[name].as_tensor().numpy() for name in ("default_tensor", "values_tensor"))
    return default.dtype == np.float64 and bool(np.isnan(default).all()) and not np.isnan(values).any()
