"""Normalisations: how BatchNormalization said that it trains, what GroupNormalization scaled."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, is_used, needed, put, rank, require, take


@upgrade("BatchNormalization", since=7)
def batch_norm_mode(node: ir.Node, op: Rewriter) -> None:
    """`is_test` decided whether the op trains; from 7 on the number of outputs did."""
    if not take(node, "is_test", 0):
        put(node, training_mode=1)
    else:
        _only_result(node)


def _only_result(node: ir.Node) -> None:
    """Drop the outputs that exist while training only."""
    if any(is_used(output) for output in node.outputs[1:]):
        raise UnsupportedError(f"{describe(node)}: outputs other than the first have no value outside training")
    node.resize_outputs(1)


@upgrade("BatchNormalization", since=9)
def batch_norm_by_element(node: ir.Node, op: Rewriter) -> None:
    """With `spatial=0` there were statistics for each element of a sample: each becomes a channel."""
    if take(node, "spatial", 1):
        return
    x, mean = needed(node, 0), needed(node, 3)
    flat = [op("Flatten", x, axis=1)]
    flat += [op.reshape(needed(node, i), op.ints([-1])) for i in range(1, 5)]
    y, *statistics = op.again(flat, version=9)
    shape = op.shape(mean) if statistics else None
    op.replace(op.reshape(y, op.shape(x)), *(op("Reshape", s, shape) for s in statistics))


@upgrade("BatchNormalization", since=14)
def batch_norm_outputs(node: ir.Node, op: Rewriter) -> None:
    """The op trained where it had more than one output. The last two were statistics of the batch that save
    work in a backward pass: its mean, and (as ONNX Runtime has it) one over its standard deviation."""
    if not take(node, "training_mode", 0) and not any(output.name for output in node.outputs[1:]):
        node.resize_outputs(1)
        return
    epsilon = take(node, "epsilon", 1e-5)
    put(node, training_mode=1, epsilon=epsilon)
    saved = node.outputs[3:]
    if any(is_used(output) for output in saved):
        x = needed(node, 0)
        axes = _all_but_channels(x, op)
        mean = op("ReduceMean", x, axes)
        deviation = op("Sub", x, mean)
        variance = op("ReduceMean", op("Mul", deviation, deviation), axes)
        inverse = op("Reciprocal", op("Sqrt", op("Add", variance, op.number(epsilon, x))))
        for output, statistic in zip(saved, (mean, inverse), strict=False):
            op.redirect(output, op("Reshape", statistic, op.ints([-1])))
    node.resize_outputs(3)
    for output in node.outputs[1:]:
        output.name = output.name or op.names.value(f"{node.outputs[0].name}_running")


def _all_but_channels(x: ir.Value, op: Rewriter) -> ir.Value:
    known = rank(x)
    if known is not None:
        return op.ints([0, *range(2, known)])
    spatial = op("Range", op.ints(2), op("Squeeze", op.rank(x)), op.ints(1))
    return op("Concat", op.ints([0]), spatial, axis=0)


@upgrade("GroupNormalization", since=21)
def group_norm_channels(node: ir.Node, op: Rewriter) -> None:
    """Scale and bias had one element for each group of channels, now they have one for each channel."""
    x, groups = needed(node, 0), require(node, "num_groups")
    known = dims(x)
    channels = known[1] if known else None
    if channels is not None:
        repeat = op.ints([1, channels // groups])
    else:
        size = op("Div", op("Shape", x, start=1, end=2), op.ints([groups]))
        repeat = op("Concat", op.ints([1]), size, axis=0)
    for index in (1, 2):
        column = op("Unsqueeze", needed(node, index), op.ints([1]))
        node.replace_input_with(index, op("Reshape", op("Expand", column, repeat), op.ints([-1])))
    put(node, num_groups=groups)
    if x.dtype == ir.DataType.DOUBLE:
        put(node, stash_type=ir.DataType.DOUBLE.value)
