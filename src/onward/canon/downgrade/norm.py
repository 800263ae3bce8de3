"""Normalisations."""

import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, is_used, needed, require, take

T = ir.DataType


def _stashed(node: ir.Node, x: ir.Value, op: Older) -> tuple[ir.Value, ir.DataType]:
    """The input in the type that statistics are computed in, and that of the result."""
    stash, own = T(take(node, "stash_type", T.FLOAT.value)), op.typed(x)
    wide = own if own == T.DOUBLE else stash
    return (x if own == wide else op("Cast", x, to=wide)), own


@downgrade("LayerNormalization", since=17)
def layer_norm(node: ir.Node, op: Older) -> None:
    x, scale, bias = needed(node, 0), needed(node, 1), input_of(node, 2)
    axis, epsilon = take(node, "axis", -1), take(node, "epsilon", 1e-5)
    known = dims(x)
    if axis >= 0 and known is None:
        refuse("the rank of its input is not known")
    first = axis if axis < 0 else axis - len(known or ())
    axes = op.ints(range(first, 0))
    wide, own = _stashed(node, x, op)
    mean = op("ReduceMean", wide, axes)
    deviation = op("Sub", wide, mean)
    variance = op("ReduceMean", op("Mul", deviation, deviation), axes)
    spread = op("Sqrt", op("Add", variance, op.number(epsilon, wide)))
    normal = op("Div", deviation, spread)
    if normal.dtype != own:
        normal = op("Cast", normal, to=own)
    y = op("Mul", normal, scale)
    if bias is not None:
        y = op("Add", y, bias)
    inverse = op("Reciprocal", spread) if len(node.outputs) > 2 and is_used(node.outputs[2]) else None
    statistics = [mean if len(node.outputs) > 1 and is_used(node.outputs[1]) else None, inverse]
    op.replace(*[y, *statistics][: len(node.outputs)])


@downgrade("RMSNormalization", since=23)
def rms_norm(node: ir.Node, op: Older) -> None:
    x, scale = needed(node, 0), needed(node, 1)
    axis, epsilon = take(node, "axis", -1), take(node, "epsilon", 1e-5)
    if axis >= 0:
        axis = counted(axis, x, op) - op.ranked(x)
    wide, own = _stashed(node, x, op)
    power = op("ReduceMean", op("Mul", wide, wide), op.ints(range(axis, 0)))
    normal = op("Div", wide, op("Sqrt", op("Add", power, op.number(epsilon, wide))))
    if normal.dtype != own:
        normal = op("Cast", normal, to=own)
    op.replace(op("Mul", normal, scale))


@downgrade("GroupNormalization", since=21)
def group_norm(node: ir.Node, op: Older) -> None:
    """Groups become rows, which are normalised over all their elements; then comes the scale of each channel."""
    x, scale, bias = (needed(node, i) for i in range(3))
    groups, epsilon = require(node, "num_groups"), take(node, "epsilon", 1e-5)
    size = op.ranked(x)
    wide, own = _stashed(node, x, op)
    rows = op("Reshape", wide, op.ints([0, groups, -1]))
    deviation = op("Sub", rows, op("ReduceMean", rows, op.ints([-1])))
    variance = op("ReduceMean", op("Mul", deviation, deviation), op.ints([-1]))
    normal = op("Div", deviation, op("Sqrt", op("Add", variance, op.number(epsilon, wide))))
    normal = op("Reshape", normal, op.shape(x))
    if normal.dtype != own:
        normal = op("Cast", normal, to=own)
    over = op.ints(range(1, size - 1))
    scale, bias = (op("Unsqueeze", v, over) if size > 2 else v for v in (scale, bias))
    op.replace(op("Add", op("Mul", normal, scale), bias))


@downgrade("BatchNormalization", since=14)
def batch_norm_mode(node: ir.Node, op: Older) -> None:
    """Version 9 trained where it had five outputs, of which none said how; it is written in simpler ops."""
    if not take(node, "training_mode", 0):
        return
    x, scale, bias, mean, variance = (needed(node, i) for i in range(5))
    momentum, epsilon = take(node, "momentum", 0.9), take(node, "epsilon", 1e-5)
    axes = op.ints([0, *range(2, op.ranked(x))])
    column = op.ints(range(1, op.ranked(x) - 1))
    of_batch = op("ReduceMean", x, axes)
    deviation = op("Sub", x, of_batch)
    spread = op("ReduceMean", op("Mul", deviation, deviation), axes)
    normal = op("Div", deviation, op("Sqrt", op("Add", spread, op.number(epsilon, x))))
    scale, bias = (op("Unsqueeze", v, column) if op.ranked(x) > 2 else v for v in (scale, bias))
    y = op("Add", op("Mul", normal, scale), bias)
    flat = op.ints([-1])
    running: list[ir.Value | None] = []
    for output, old, new in zip(node.outputs[1:], (mean, variance), (of_batch, spread), strict=False):
        if is_used(output):
            now = op("Mul", op("Reshape", new, flat), op.number(1 - momentum, x))
            running.append(op("Add", op("Mul", old, op.number(momentum, old)), now))
        else:
            running.append(None)
    op.replace(y, *running)


@downgrade("MeanVarianceNormalization", since=9)
def mean_variance(node: ir.Node, op: Older) -> None:
    """The schema's own formula: what keeps from dividing by zero is added to the deviation, not to the variance."""
    x, axes = needed(node, 0), op.ints(take(node, "axes", [0, 2, 3]))
    mean = op("ReduceMean", x, axes)
    squares = op("ReduceMean", op("Mul", x, x), axes)
    spread = op("Sqrt", op("Sub", squares, op("Mul", mean, mean)))
    op.replace(op("Div", op("Sub", x, mean), op("Add", spread, op.number(1e-9, x))))
