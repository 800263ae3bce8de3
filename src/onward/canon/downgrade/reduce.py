"""Reductions: their axes were attributes."""

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


@downgrade("ReduceSum", since=13)
@downgrade(*OTHERS, since=18)
def reduction_axes(node: ir.Node, op: Older) -> None:
    x, axes = needed(node, 0), input_of(node, 1)
    noop = take(node, "noop_with_empty_axes", 0)
    known = None if axes is None else [] if dims(axes) == [0] else op.fixed(axes, "axes")
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
