"""Ops of `com.microsoft` over windows and boxes of images: crops, pools under a mask, sliding windows."""

import numpy as np
import onnx_ir as ir

from onward.canon.lower.microsoft_attention import count_up, length
from onward.canon.lower.microsoft_fused import MS
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, needed, rank, require, take

_D = ir.DataType


@lowering(f"{MS}::UnfoldTensor")
def unfold_tensor(node: ir.Node, op: Rewriter) -> None:
    """All windows along one axis, each a row of a new last axis."""
    x, size, step = needed(node, 0), require(node, "size"), take(node, "step", 1)
    known = rank(x)
    if known is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its input is not known")
    axis = take(node, "dim", -1) % known
    last = op("Sub", length(x, axis, op), op.ints([size]))
    begins = op("Mul", count_up(op("Add", op("Div", last, op.ints([step])), op.ints([1])), op), op.ints(step))
    places = op("Add", op("Unsqueeze", begins, op.ints([1])), count_up(op.ints([size]), op))
    windows = op("Gather", x, places, axis=axis)
    order = [i for i in range(known + 1) if i != axis + 1]
    op.replace(op("Transpose", windows, perm=[*order, axis + 1]))


@lowering(f"{MS}::CropAndResize")
def crop_and_resize(node: ir.Node, op: Rewriter) -> None:
    """Boxes (y1, x1, y2, x2), in shares of the image, each stretched to one size; what is outside has one value."""
    x, boxes, which, size = (needed(node, i) for i in range(4))
    mode, outside = take(node, "mode", "bilinear"), take(node, "extrapolation_value", 0.0)
    sides = op.many(4, "Split", boxes, axis=1, num_outputs=4)
    sizes = op.many(2, "Split", op("Cast", size, to=_D.INT64), axis=0, num_outputs=2)
    ys = _along(sides[0], sides[2], length(x, 2, op), sizes[0], x, op)
    xs = _along(sides[1], sides[3], length(x, 3, op), sizes[1], x, op)
    image = op("Transpose", x, perm=[0, 2, 3, 1])
    batch = op("Reshape", op("Cast", which, to=_D.INT64), op.ints([-1, 1, 1]))
    hidden = op(
        "Or", op("Unsqueeze", _off(ys, x, 2, op), op.ints([2])), op("Unsqueeze", _off(xs, x, 3, op), op.ints([1]))
    )
    last = [op("Sub", length(x, axis, op), op.ints([1])) for axis in (2, 3)]

    def pixels(rows: ir.Value, columns: ir.Value) -> ir.Value:
        """What stands there: (boxes, rows, columns, channels)."""
        down, right = (
            op("Max", op("Min", op("Cast", place, to=_D.INT64), end), op.ints([0]))
            for place, end in zip((rows, columns), last, strict=True)
        )
        parts = [batch, op("Unsqueeze", down, op.ints([2])), op("Unsqueeze", right, op.ints([1]))]
        shape = op("Concat", length(rows, 0, op), sizes[0], sizes[1], axis=0)
        places = [op("Unsqueeze", op("Expand", part, shape), op.ints([3])) for part in parts]
        return op("GatherND", image, op("Concat", *places, axis=3))

    if mode == "nearest":
        half = op.number(0.5, x)
        y = pixels(op("Floor", op("Add", ys, half)), op("Floor", op("Add", xs, half)))
    else:
        top, left = op("Floor", ys), op("Floor", xs)
        down = op("Unsqueeze", op("Sub", ys, top), op.ints([2, 3]))
        right = op("Unsqueeze", op("Sub", xs, left), op.ints([1, 3]))
        below, beside = op("Ceil", ys), op("Ceil", xs)
        upper = _between(pixels(top, left), pixels(top, beside), right, op)
        lower = _between(pixels(below, left), pixels(below, beside), right, op)
        y = _between(upper, lower, down, op)
    y = op("Where", op("Unsqueeze", hidden, op.ints([3])), op.number(outside, x), y)
    op.replace(op("Transpose", y, perm=[0, 3, 1, 2]))


def _between(a: ir.Value, b: ir.Value, share: ir.Value, op: Rewriter) -> ir.Value:
    return op("Add", a, op("Mul", op("Sub", b, a), share))


def _along(begin: ir.Value, end: ir.Value, size: ir.Value, count: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    """Where the samples of each box lie on one axis: (boxes, count). One sample lies in the middle."""
    steps = op("Cast", op("Sub", count, op.ints([1])), to=like.dtype or _D.FLOAT)
    one = op.number(1.0, like)
    reach = op("Sub", op("Cast", size, to=like.dtype or _D.FLOAT), one)
    first, last = op("Mul", begin, reach), op("Mul", end, reach)
    number = op("Cast", count_up(count, op), to=like.dtype or _D.FLOAT)
    step = op("Div", op("Mul", op("Sub", end, begin), reach), op("Max", steps, one))
    many = op("Add", first, op("Mul", number, step))
    many = op("Where", op("Equal", number, steps), last, many)
    middle = op("Mul", op("Add", begin, end), op("Mul", reach, op.number(0.5, like)))
    return op("Where", op("Greater", steps, op.number(0.0, like)), many, middle)


def _off(places: ir.Value, x: ir.Value, axis: int, op: Rewriter) -> ir.Value:
    end = op("Cast", op("Sub", length(x, axis, op), op.ints([1])), to=x.dtype or _D.FLOAT)
    return op("Or", op("Less", places, op.number(0.0, x)), op("Greater", places, end))


@lowering(f"{MS}::ConvTransposeWithDynamicPads")
def conv_transpose_with_pads(node: ir.Node, op: Rewriter) -> None:
    """The pads are an input: what they cut off is cut from a result without any."""
    x, w = needed(node, 0), needed(node, 1)
    names = ("dilations", "group", "kernel_shape", "output_padding", "strides")
    given = {name: take(node, name) for name in names}
    if take(node, "auto_pad", "NOTSET") != "NOTSET":
        raise UnsupportedError(f"{describe(node)}: it has pads as an input and as 'auto_pad'; leave the latter out")
    pads = node.inputs[2] if len(node.inputs) > 2 else None
    bias = node.inputs[3] if len(node.inputs) > 3 else None
    y = op("ConvTranspose", x, w, bias, **given)
    if pads is None:
        op.replace(y)
        return
    known = rank(x) or rank(w)
    if known is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its input is not known")
    axes = list(range(2, known))
    begins, ends = op.many(2, "Split", op("Cast", pads, to=_D.INT64), axis=0, num_outputs=2)
    size = op("Shape", y, start=2)
    op.replace(op("Slice", y, begins, op("Sub", size, ends), op.ints(axes)))


@lowering(f"{MS}::WordConvEmbedding")
def word_conv_embedding(node: ir.Node, op: Rewriter) -> None:
    """A vector for each word out of those of its characters: convolution, tanh and the largest along the word.

    A character of 0 is none. A convolution over fewer characters than it is wide takes in those behind the word.
    """
    words, w, bias, table = (needed(node, i) for i in range(4))
    characters = op("Gather", table, words, axis=0)
    y = op("Conv", op("Unsqueeze", characters, op.ints([1])), w, bias)
    y = op("Tanh", op("Squeeze", y, op.ints([3])))
    some = op("Cast", op("Greater", words, op.number(0, words)), to=_D.INT64)
    count = op("ReduceSum", some, op.ints([1]), keepdims=1)
    width = length(w, 2, op)
    windows = op("Add", op("Sub", op("Max", count, width), width), op.ints(1))
    seen = op("Less", count_up(op("Shape", y, start=2, end=3), op), windows)
    lowest = op.constant(np.array(-1e12, np.float32))
    op.replace(op("ReduceMax", op("Where", op("Unsqueeze", seen, op.ints([1])), y, lowest), op.ints([2]), keepdims=0))
