"""Reductions: their axes were attributes."""

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, needed, put, set_inputs, take

OTHERS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSumSquare"),
)
LIKE_ITSELF = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"}
"""What one number by itself is reduced to is that number."""

IN_STEPS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "ReduceL1": (("Abs",), "ReduceSum", ()),
    "ReduceLogSum": ((), "ReduceSum", ("Log",)),
    "ReduceSumSquare": (("Mul",), "ReduceSum", ()),
}
"""What to do before the reduction of one axis after the other, that reduction, and what to do after it."""


@downgrade("ReduceMax", "ReduceMin", since=20)
def of_truths(node: ir.Node, op: Older) -> None:
    """As numbers; of none of them the largest is below 0, and the smallest above."""
    if op.typed(needed(node, 0)) == ir.DataType.BOOL:
        number = op("Cast", needed(node, 0), to=ir.DataType.INT32)
        found = op(node.op_type, number, input_of(node, 1), **node.attributes)
        op.replace(op("Greater", found, op.constant(np.array(0, np.int32))))


@downgrade("ReduceSum", since=13)
@downgrade(*OTHERS, since=18)
def reduction_axes(node: ir.Node, op: Older) -> None:
    x, axes = needed(node, 0), input_of(node, 1)
    noop = take(node, "noop_with_empty_axes", 0)
    known: Any = None if axes is None else [] if dims(axes) == [0] else op.read(axes)
    if known is not None:
        known = np.reshape(known, -1)
    if axes is not None and known is None:
        op.replace(over_axes_of_a_run(node, x, axes, bool(noop), op))
        return
    if known is None or not len(known):
        if noop:
            if node.op_type not in LIKE_ITSELF:
                refuse("noop_with_empty_axes is set, and it has no axes")
            op.replace(x)
            return
        set_inputs(node, [x])
        return
    set_inputs(node, [x])
    put(node, axes=[int(a) for a in known])


def over_axes_of_a_run(node: ir.Node, x: ir.Value, axes: ir.Value, noop: bool, op: Older) -> ir.Value:
    """Over each axis that is among those, one after the other."""
    size, op_type = op.ranked(x), node.op_type
    if noop and op_type not in LIKE_ITSELF:
        refuse("noop_with_empty_axes is set, and its axes are computed when the model runs")
    places = op("Where", op("Less", axes, op.ints(0)), op("Add", axes, op.ints(size)), axes)
    hits = op(
        "Cast", op("Equal", op("Unsqueeze", places, op.ints([1])), op.ints(list(range(size)))), to=ir.DataType.INT64
    )
    count = op("ReduceSum", hits, op.ints([0]), keepdims=0)
    chosen = op("Greater", count, op.ints(0))
    if not noop:
        none = op("Equal", op("Size", axes), op.ints(0))
        chosen = op("Or", chosen, none)
    before, step, after = IN_STEPS.get(op_type, ((), op_type, ()))
    for kind in before:
        x = op("Mul", x, x) if kind == "Mul" else op(kind, x)
    for axis in range(size):
        x = _reduced_if(op("Gather", chosen, op.ints(axis)), x, step, axis, op)
    for kind in after:
        x = op(kind, x)
    if not take(node, "keepdims", 1):
        x = op("Reshape", x, op("Compress", op("Shape", x), op("Not", chosen), axis=0), allowzero=1)
    return x


def _reduced_if(condition: ir.Value, x: ir.Value, op_type: str, axis: int, op: Older) -> ir.Value:
    branches = []
    for kind in (op_type, "Identity"):
        body = ir.Graph([], [], nodes=[], name=op.names.value(f"{kind}_{axis}"))
        with op.inside(body):
            y = op.of_version(12, kind, x, axes=[axis]) if kind == op_type else op(kind, x)
        y.type = y.type or x.type
        body.outputs.append(y)
        branches.append(body)
    return op("If", condition, then_branch=branches[0], else_branch=branches[1])


@downgrade("ReduceSum", *OTHERS, since=11)
def axes_from_front(node: ir.Node, op: Older) -> None:
    axes = take(node, "axes")
    if axes is not None:
        put(node, axes=[counted(a, needed(node, 0), op) for a in axes])


@downgrade("ArgMax", "ArgMin", since=12)
def last_of_equals(node: ir.Node, op: Older) -> None:
    """The last of those that are largest is the first from the back."""
    if not take(node, "select_last_index", 0):
        return
    x, axis = needed(node, 0), node.attributes.get_int("axis", 0)
    back, far = op.ints([-1]), op.ints([np.iinfo(np.int64).min + 1])
    turned = op("Slice", x, back, far, op.ints([axis]), back)
    place = op(node.op_type, turned, **node.attributes)
    known = dims(x)
    size = None if known is None else known[axis]
    last = op.ints(size - 1) if size is not None else op("Sub", _size(x, axis, op), op.ints(1))
    op.replace(op("Sub", last, place))


def _size(x: ir.Value, axis: int, op: Older) -> ir.Value:
    return op("Gather", op("Shape", x), op.ints(axis))


@downgrade("ArgMax", "ArgMin", since=11)
def axis_from_front(node: ir.Node, op: Older) -> None:
    axis = take(node, "axis", 0)
    put(node, axis=counted(axis, needed(node, 0), op))
