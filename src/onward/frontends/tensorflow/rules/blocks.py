"""Images cut into every n-th row and column, and put together again: how TensorFlow 1 writes dilated convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

CONVOLUTIONS = {"Conv2D", "Conv3D", "DepthwiseConv2dNative"}
CUT = ("Transpose", "Reshape", "Transpose", "Reshape", "Pad")
"""The nodes before a convolution, from the last to the first, that cut an image into blocks."""


@rule("SpaceToBatchND")
def space_to_batch(op: Writer, x: Tensor, block: Tensor, pads: Tensor) -> Tensor:
    """Every n-th row and column, as images of their own."""
    blocks = op.numbers(block, "the block")
    count, rank = len(blocks), op.rank(x, "the images")
    x = op.Pad(x, _of_all_axes(op, pads, count, rank))
    shape = op.Shape(x)
    split = [op.Slice(shape, op.ints([0]), op.ints([1]))]
    for i, b in enumerate(blocks):
        split += [op.Div(op.Slice(shape, op.ints([i + 1]), op.ints([i + 2])), op.ints([b])), op.ints([b])]
    inner = op.Slice(shape, op.ints([count + 1]), op.ints([FAR]))
    y = op.Reshape(x, op.Concat(*split, inner, axis=0))
    perm = [2 * i + 2 for i in range(count)] + [0] + [2 * i + 1 for i in range(count)]
    y = op.transpose(y, perm + list(range(2 * count + 1, rank + count)))
    tail = op.Slice(op.Shape(y), op.ints([count + 1]), op.ints([FAR]))
    return _with_inner(op.Reshape(y, op.Concat(op.ints([-1]), tail, axis=0)), x, count)


@rule("BatchToSpaceND")
def batch_to_space(op: Writer, x: Tensor, block: Tensor, crops: Tensor) -> Tensor:
    blocks = op.numbers(block, "the block")
    count, rank = len(blocks), op.rank(x, "the images")
    if (whole := _dilated(op, x, blocks, crops)) is not None:
        return whole
    shape = op.Shape(x)
    y = op.Reshape(x, op.Concat(op.ints(blocks), op.ints([-1]), op.Slice(shape, op.ints([1]), op.ints([FAR])), axis=0))
    perm = [count] + [a for i in range(count) for a in (count + 1 + i, i)]
    y = op.transpose(y, perm + list(range(2 * count + 1, rank + count)))
    sizes = [op.ints([-1])]
    for i, b in enumerate(blocks):
        sizes.append(op.Slice(shape, op.ints([i + 1]), op.ints([i + 2])) * op.ints([b]))
    y = op.Reshape(y, op.Concat(*sizes, op.Slice(shape, op.ints([count + 1]), op.ints([FAR])), axis=0))
    pairs = op.Transpose(op.int64(crops), perm=[1, 0])
    before, after = (op.flat(op.Gather(pairs, op.index(i), axis=0)) for i in (0, 1))
    lengths = op.Slice(op.Shape(y), op.ints([1]), op.ints([count + 1]))
    return _with_inner(op.Slice(y, before, lengths - after, op.ints(list(range(1, count + 1)))), x, count)


def _of_all_axes(op: Writer, pairs: Tensor, count: int, rank: int) -> Tensor:
    """What is added before and after each axis of the blocks, as ONNX has it for all axes."""
    rest = [0] * (rank - 1 - count)
    known = op.known(pairs)
    if known is not None:
        before, after = known.T.tolist()
        return op.ints([0, *before, *rest, 0, *after, *rest])
    turned = op.Transpose(op.int64(pairs), perm=[1, 0])
    first, last = (op.flat(op.Gather(turned, op.index(i), axis=0)) for i in (0, 1))
    return op.Concat(op.ints([0]), first, op.ints([*rest, 0]), last, op.ints(rest), axis=0)


def _with_inner(y: Tensor, x: Tensor, count: int) -> Tensor:
    """With the inner axes as they were: those behind the batch and what is cut in blocks."""
    dims = x.dims or []
    y.value.shape = ir.Shape([*(y.dims or [None] * len(dims))[: count + 1], *dims[count + 1 :]])
    return y


def _dilated(op: Writer, y: Tensor, blocks: Sequence[int], crops: Tensor) -> Tensor | None:
    """A convolution of blocks as one of the whole image with dilations; None where there is no such convolution.

    What is cut off in the end was added in the beginning, to make the image fit the blocks.
    """
    if not op.operation.inputs:  # an op of TensorFlow Lite, whose converter has done this already
        return None
    convolution = op.operation.inputs[0].op
    if convolution.type not in CONVOLUTIONS or not _is_cut(convolution.inputs[0].op, blocks):
        return None
    turned = y.value.producer()
    conv = _maker(turned)
    if turned is None or turned.op_type != "Transpose" or conv is None or conv.op_type != "Conv":
        return None
    options = {name: attribute.value for name, attribute in conv.attributes.items()}
    ones = [1] * len(blocks)
    if list(options.pop("strides")) != ones or list(options.pop("dilations")) != ones or options.keys() - {"group"}:
        return None
    node: ir.Node | None = conv
    for op_type in CUT:
        node = _maker(node)
        if node is None or node.op_type != op_type:
            return None
    assert node is not None
    image, added = node.inputs[:2]
    assert image is not None and added is not None
    x, rank = op.tensor(image), len(blocks) + 2
    pads, removed = op.tensor(added), _of_all_axes(op, crops, len(blocks), rank)
    known, also = op.known(pads), op.known(removed)
    if known is not None and also is not None and (known >= also).all():
        left = (known - also).tolist()
        options["pads"] = [*left[1 : rank - 1], *left[rank + 1 : -1]]
    else:
        x = op.Pad(x, pads - removed)
        x.value.shape = ir.Shape([*(x.dims or [None] * rank)[:-1], (op.tensor(image).dims or [None])[-1]])
    weights = [op.tensor(value) for value in conv.inputs[1:] if value is not None]
    first = op.transpose(x, [0, rank - 1, *range(1, rank - 1)])
    return op.transpose(op.Conv(first, *weights, dilations=list(blocks), **options), [0, *range(2, rank), 1])


def _is_cut(operation: Any, blocks: Sequence[int]) -> bool:
    import tensorflow as tf

    if operation.type != "SpaceToBatchND":
        return False
    block = tf.get_static_value(operation.inputs[1])
    return block is not None and block.tolist() == list(blocks)


def _maker(node: ir.Node | None) -> ir.Node | None:
    """What makes the first input of a node."""
    return None if node is None or not node.inputs or node.inputs[0] is None else node.inputs[0].producer()
