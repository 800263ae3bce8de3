"""Elementwise ops: the old broadcast attributes, Clip, Cast and the coefficients of activations."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import InvalidModelError
from onward.graph.rewriter import Rewriter, describe, dims, needed, put, rank, set_inputs, take

FLOAT_MAX = 3.4028234663852886e38


@upgrade(
    *("Abs", "Add", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu"),
    *("Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu", "Reciprocal", "Relu", "Sigmoid", "Sqrt"),
    *("Sub", "Sum", "Tanh", "InstanceNormalization", "BatchNormalization"),
    since=6,
)
def consumed_inputs(node: ir.Node, op: Rewriter) -> None:
    take(node, "consumed_inputs")


@upgrade("Selu", since=6)
def selu_coefficients(node: ir.Node, op: Rewriter) -> None:
    take(node, "consumed_inputs")
    put(node, alpha=take(node, "alpha", 1.6732), gamma=take(node, "gamma", 1.0507))


@upgrade(
    *("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"),
    since=7,
)
def limited_broadcast(node: ir.Node, op: Rewriter) -> None:
    """`axis` says at which dimension of A the dimensions of B begin; without it they are the last ones."""
    broadcast, axis = take(node, "broadcast", 0), take(node, "axis")
    if broadcast and axis is not None:
        a, b = needed(node, 0), needed(node, 1)
        node.replace_input_with(1, _begin_at(a, b, axis, op))


def _begin_at(a: ir.Value, b: ir.Value, axis: int, op: Rewriter) -> ir.Value:
    """`b` with as many dimensions of 1 appended as let it begin at dimension `axis` of `a`."""
    rank_a, rank_b = rank(a), rank(b)
    if rank_a is not None and rank_b is not None:
        begin = axis + rank_a if axis < 0 else axis
        missing = max(rank_a - begin - rank_b, 0)
        if axis >= 0 and begin + rank_b > rank_a and not all(d == 1 for d in dims(b) or ()):
            raise InvalidModelError(f"{describe(op.node)}: its second input does not fit from axis {axis} on")
        return op("Unsqueeze", b, op.ints(range(rank_b, rank_b + missing))) if missing else b
    begin_at = op("Add", op.rank(a), op.ints([axis])) if axis < 0 else op.ints([axis])
    room = op("Sub", op("Sub", op.rank(a), begin_at), op.rank(b))
    return _append_ones(b, op("Max", room, op.ints([0])), op)


def _append_ones(x: ir.Value, count: ir.Value, op: Rewriter) -> ir.Value:
    ones = op("ConstantOfShape", count, value=ir.tensor([1]))
    return op.reshape(x, op("Concat", op("Shape", x), ones, axis=0))


@upgrade("PRelu", since=7)
def prelu_channels(node: ir.Node, op: Rewriter) -> None:
    """A vector of slopes belongs to dimension 1 of X, not to its last."""
    x, slope = needed(node, 0), needed(node, 1)
    rank_x, rank_slope = rank(x), rank(slope)
    if rank_slope not in (1, None) or (rank_x is not None and rank_x <= 2):
        return
    if rank_slope == 1 and rank_x is not None:
        slope = op("Unsqueeze", slope, op.ints(range(1, rank_x - 1)))
    else:
        after_channels = op("Max", op("Sub", op.rank(x), op.ints([2])), op.ints([0]))
        is_vector = op("Equal", op.rank(slope), op.ints([1]))
        slope = _append_ones(slope, op("Where", is_vector, after_channels, op.ints([0])), op)
    node.replace_input_with(1, slope)


@upgrade("Gemm", since=7)
def gemm_broadcast(node: ir.Node, op: Rewriter) -> None:
    take(node, "broadcast")


@upgrade("Clip", since=11)
def clip_bounds(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    low, high = take(node, "min", -FLOAT_MAX), take(node, "max", FLOAT_MAX)
    lower = None if low == -FLOAT_MAX else op.number(low, x)
    upper = None if high == FLOAT_MAX else op.number(high, x)
    set_inputs(node, [x, lower, upper])


@upgrade("Cast", since=6)
def cast_type_name(node: ir.Node, op: Rewriter) -> None:
    to = take(node, "to")
    if not isinstance(to, str) or to.upper() not in ir.DataType.__members__:
        raise InvalidModelError(f"{describe(node)}: attribute 'to' is {to!r}, which names no element type")
    put(node, to=ir.DataType[to.upper()].value)


@upgrade("Erf", since=13)
def erf_of_integers(node: ir.Node, op: Rewriter) -> None:
    through_float(node, op)


@upgrade("ReduceLogSum", "ReduceLogSumExp", since=28)
def logarithm_of_integers(node: ir.Node, op: Rewriter) -> None:
    through_float(node, op)


def through_float(node: ir.Node, op: Rewriter) -> None:
    """Integers, which the op no longer takes, are computed as doubles and cut off towards zero."""
    x = needed(node, 0)
    if x.dtype is None or not x.dtype.is_integer():
        return
    real = op("Cast", x, to=ir.DataType.DOUBLE)
    y = op(node.op_type, real, *node.inputs[1:], **node.attributes)
    op.replace(op("Cast", y, to=x.dtype))
