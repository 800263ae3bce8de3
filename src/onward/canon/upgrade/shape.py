"""Ops that move elements about: most took as attributes what are inputs today."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import InvalidModelError
from onward.graph.rewriter import (
    Rewriter,
    describe,
    input_of,
    needed,
    put,
    require,
    set_inputs,
    take,
)


@upgrade("Reshape", since=5)
def reshape_shape(node: ir.Node, op: Rewriter) -> None:
    take(node, "consumed_inputs")
    set_inputs(node, [needed(node, 0), op.ints(require(node, "shape"))])


@upgrade("Squeeze", since=13)
def squeeze_axes(node: ir.Node, op: Rewriter) -> None:
    axes = take(node, "axes")
    set_inputs(node, [needed(node, 0), None if axes is None else op.ints(axes)])


@upgrade("Unsqueeze", since=13)
def unsqueeze_axes(node: ir.Node, op: Rewriter) -> None:
    set_inputs(node, [needed(node, 0), op.ints(require(node, "axes"))])


@upgrade("Split", since=2)
def split_axis(node: ir.Node, op: Rewriter) -> None:
    """Version 1 gave `axis` no default. Its `split` input is kept for `split_lengths`."""
    if "axis" not in node.attributes:
        raise InvalidModelError(f"{describe(node)}: attribute 'axis' is missing and has no default")


@upgrade("Split", since=13)
def split_lengths(node: ir.Node, op: Rewriter) -> None:
    lengths = take(node, "split")
    split = input_of(node, 1) if lengths is None else op.ints(lengths)
    set_inputs(node, [needed(node, 0), split])


@upgrade("Split", since=18)
def split_count(node: ir.Node, op: Rewriter) -> None:
    if input_of(node, 1) is None:
        put(node, num_outputs=len(node.outputs))


@upgrade("Slice", since=10)
def slice_ranges(node: ir.Node, op: Rewriter) -> None:
    starts, ends = require(node, "starts"), require(node, "ends")
    axes = take(node, "axes", range(len(starts)))
    set_inputs(node, [needed(node, 0), op.ints(starts), op.ints(ends), op.ints(axes)])


@upgrade("Pad", since=2)
def pad_paddings(node: ir.Node, op: Rewriter) -> None:
    put(node, pads=require(node, "paddings"))


@upgrade("Pad", since=11)
def pad_inputs(node: ir.Node, op: Rewriter) -> None:
    data, pads, value = needed(node, 0), op.ints(require(node, "pads")), take(node, "value", 0.0)
    set_inputs(node, [data, pads, op.number(value, data) if value else None])


@upgrade("Concat", since=4)
def concat_axis(node: ir.Node, op: Rewriter) -> None:
    put(node, axis=take(node, "axis", 1))


@upgrade("Tile", since=6)
def tile_repeats(node: ir.Node, op: Rewriter) -> None:
    """`tiles` copies along the one dimension `axis`, both of them numbers of the type of the data."""
    x = needed(node, 0)
    tiles, axis = (op.reshape(op("Cast", needed(node, i), to=ir.DataType.INT64), op.ints([1])) for i in (1, 2))
    ones = op("ConstantOfShape", op.rank(x), value=ir.tensor([1]))
    set_inputs(node, [x, op("ScatterElements", ones, axis, tiles)])


@upgrade("TopK", since=10)
def topk_count(node: ir.Node, op: Rewriter) -> None:
    set_inputs(node, [needed(node, 0), op.ints([require(node, "k")])])


@upgrade("Scatter", since=11)
def scatter_elements(node: ir.Node, op: Rewriter) -> None:
    node.op_type = "ScatterElements"
