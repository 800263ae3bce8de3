"""Gather, Scatter and their kin."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, needed, put, rank, take

T = ir.DataType
COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


@downgrade("ScatterElements", "ScatterND", since=18)
def larger_or_smaller(node: ir.Node, op: Older) -> None:
    if node.attributes.get_string("reduction", "none") in ("max", "min"):
        in_turn(node, op)


@downgrade("ScatterElements", "ScatterND", since=16)
def combined(node: ir.Node, op: Older) -> None:
    if node.attributes.get_string("reduction", "none") != "none":
        in_turn(node, op)
    else:
        take(node, "reduction")


def in_turn(node: ir.Node, op: Older) -> None:
    """One update after the other: equal indices meet what those before them left."""
    kind = COMBINED[take(node, "reduction", "none")]
    data, indices, updates = (needed(node, i) for i in range(3))
    flat = op.ints([-1])
    if node.op_type == "ScatterND":
        depth = (dims(indices) or [None])[-1]
        size = rank(data)
        if depth is None or size is None:
            refuse("the shapes of its data and indices are not known")
        shape = op("Shape", data)
        head = op("Slice", shape, op.ints([0]), op.ints([depth]), op.ints([0]))
        tail = op("Slice", shape, op.ints([depth]), op.ints([size]), op.ints([0]))
        width = op("Reshape", op("ReduceProd", tail, keepdims=0), flat) if depth < size else op.ints([1])
        strides = [_product(head, i + 1, depth, op) for i in range(depth)]
        table = op("Reshape", indices, op.ints([-1, depth]))
        table = op("Where", op("Less", table, op.ints(0)), op("Add", table, head), table)
        places = op("ReduceSum", op("Mul", table, op("Concat", *strides, axis=0)), op.ints([1]), keepdims=0)
        rows = op("Reshape", data, op("Concat", flat, width, axis=0))
        new = op("Reshape", updates, op("Concat", flat, width, axis=0))
    else:
        axis = counted(take(node, "axis", 0), data, op)
        shape = op("Shape", data)
        places = op("Reshape", _flat_places(indices, shape, axis, op.ranked(data), op), flat)
        rows = op("Reshape", data, op.ints([-1, 1]))
        new = op("Reshape", updates, op.ints([-1, 1]))
    op.replace(op("Reshape", _loop(rows, places, new, kind, op), shape))


def _product(shape: ir.Value, begin: int, end: int, op: Older) -> ir.Value:
    found = op.ints([1])
    for index in range(begin, end):
        found = op("Mul", found, op("Slice", shape, op.ints([index]), op.ints([index + 1]), op.ints([0])))
    return found


def _flat_places(indices: ir.Value, shape: ir.Value, axis: int, size: int, op: Older) -> ir.Value:
    """Where each element of the indices is in the data, if that were a vector."""
    if op.typed(indices) != T.INT64:
        indices = op("Cast", indices, to=T.INT64)
    own = op("Shape", indices)
    total: ir.Value | None = None
    for dim in range(size):
        if dim == axis:
            length = op("Gather", shape, op.ints(axis))
            along = op("Where", op("Less", indices, op.ints(0)), op("Add", indices, length), indices)
        else:
            line = op("Range", op.ints(0), op("Gather", own, op.ints(dim)), op.ints(1))
            others = [a for a in range(size) if a != dim]
            along = op("Unsqueeze", line, op.ints(others)) if others else line
        term = op("Mul", along, _product(shape, dim + 1, size, op))
        total = term if total is None else op("Add", total, term)
    assert total is not None
    return total


def _loop(rows: ir.Value, places: ir.Value, new: ir.Value, kind: str, op: Older) -> ir.Value:
    def given(name: str, type_: ir.DataType, shape: ir.Shape | None) -> ir.Value:
        return ir.Value(name=op.names.value(name), type=ir.TensorType(type_), shape=shape)

    scalar = ir.Shape([])
    step, going = given("step", T.INT64, scalar), given("going", T.BOOL, scalar)
    state = given("state", op.typed(rows), rows.shape)
    body = ir.Graph([step, going, state], [], nodes=[], name=op.names.value("updates"))
    with op.inside(body):
        still = op("Identity", going)
        at = op("Unsqueeze", step, op.ints([0]))
        place = op("Unsqueeze", op("Gather", places, at), op.ints([1]))
        old = op("GatherND", state, place)
        changed = op(kind, old, op("Gather", new, at))
        state = op("ScatterND", state, place, changed)
    body.outputs.extend([still, state])
    count = op("Squeeze", op("Shape", places), op.ints([0]))
    return op("Loop", count, op.constant(np.array(True)), rows, body=body)


@downgrade("GatherND", since=12)
def gather_batches(node: ir.Node, op: Older) -> None:
    """The place in the batch becomes a part of the index."""
    batch = take(node, "batch_dims", 0)
    if not batch:
        return
    data, indices = needed(node, 0), needed(node, 1)
    size = op.ranked(indices, "its indices")
    own = op("Shape", indices)
    lead = op("Slice", own, op.ints([0]), op.ints([size - 1]), op.ints([0]))
    columns = []
    for dim in range(batch):
        line = op("Range", op.ints(0), op("Gather", own, op.ints(dim)), op.ints(1))
        shape = [1] * size
        shape[dim] = -1
        columns.append(op("Expand", op("Reshape", line, op.ints(shape)), op("Concat", lead, op.ints([1]), axis=0)))
    op.replace(op("GatherND", data, op("Concat", *columns, indices, axis=-1)))


@downgrade("Gather", since=11)
def gather_from_front(node: ir.Node, op: Older) -> None:
    """Indices counted from the front."""
    data, indices = needed(node, 0), needed(node, 1)
    axis = counted(take(node, "axis", 0), data, op)
    put(node, axis=axis)
    node.replace_input_with(1, _from_front(data, indices, axis, op))


@downgrade("ScatterElements", since=11)
def scatter(node: ir.Node, op: Older) -> None:
    data, indices, updates = (needed(node, i) for i in range(3))
    axis = counted(take(node, "axis", 0), data, op)
    op.replace(op.of_version(9, "Scatter", data, _from_front(data, indices, axis, op), updates, axis=axis))


def _from_front(data: ir.Value, indices: ir.Value, axis: int, op: Older) -> ir.Value:
    """Indices with those below zero counted from the front."""
    known, sizes = op.read(indices), dims(data)
    if known is not None and (known >= 0).all():
        return indices
    size = None if sizes is None else sizes[axis]
    dtype = op.typed(indices, "its indices")
    length = op("Gather", op("Shape", data), op.ints(axis)) if size is None else op.ints(size)
    if dtype != T.INT64:
        length = op("Cast", length, to=dtype)
    below = op("Cast", op("Less", op("Cast", indices, to=T.DOUBLE), op.constant(np.zeros(()))), to=dtype)
    return op("Add", indices, op("Mul", below, length))


@downgrade("OneHot", since=11)
def one_hot_from_front(node: ir.Node, op: Older) -> None:
    """Indices below zero counted from the back, as ONNX Runtime always did."""
    known = op.fixed(input_of(node, 0), "its indices")
    if (known < 0).any():
        depth = int(op.fixed(input_of(node, 1), "its depth").reshape(-1)[0])
        node.replace_input_with(0, op.constant(np.where(known < 0, known + depth, known)))


@downgrade("OneHot", since=9)
def one_hot(node: ir.Node, op: Older) -> None:
    """Each index picks a row of a matrix that has the value on its diagonal."""
    indices, values = needed(node, 0), op.fixed(input_of(node, 2), "its values")
    depth = int(op.fixed(input_of(node, 1), "its depth").reshape(-1)[0])
    if take(node, "axis", -1) != -1:
        refuse("its axis is not the last")
    table = np.full((depth, depth), values[0])
    np.fill_diagonal(table, values[1])
    op.replace(op("Gather", op.constant(table), indices))
