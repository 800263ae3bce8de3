"""Pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.conv import as_given, channels_first, conv, padding_attributes, spatial
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("MaxPool", "MaxPool3D")
def max_pool(
    op: Writer,
    x: Tensor,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
) -> Tensor:
    return pooled(op, "MaxPool", x, ksize, strides, padding, explicit_paddings, data_format)[0]


@rule("MaxPoolV2")
def max_pool_v2(
    op: Writer, x: Tensor, ksize: Tensor, strides: Tensor, *, padding: str, data_format: str = "NHWC"
) -> Tensor:
    window, steps = op.numbers(ksize, "the window"), op.numbers(strides, "the strides")
    return pooled(op, "MaxPool", x, window, steps, padding, (), data_format)[0]


@rule("AvgPool", "AvgPool3D")
def avg_pool(
    op: Writer, x: Tensor, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NHWC"
) -> Tensor:
    return pooled(op, "AveragePool", x, ksize, strides, padding, (), data_format)[0]


def pooled(
    op: Writer,
    op_type: str,
    x: Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    outputs: int = 1,
) -> list[Tensor]:
    rank = len(ksize)
    window, steps = spatial(ksize, data_format), spatial(strides, data_format)
    results = op.many(
        op_type,
        outputs,
        channels_first(op, x, data_format, rank),
        kernel_shape=window,
        strides=steps,
        **padding_attributes(padding, explicit, data_format, x, window, steps),
    )
    return [as_given(op, y, data_format, rank) for y in results]


@rule("MaxPoolWithArgmax")
def max_pool_with_argmax(
    op: Writer,
    x: Tensor,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: ir.DataType = ir.DataType.INT64,
    include_batch_in_index: bool = False,
) -> list[Tensor]:
    """ONNX counts places with the channels before the rows, TensorFlow with the channels last."""
    values, places = pooled(op, "MaxPool", x, ksize, strides, padding, (), "NHWC", outputs=2)
    shape = op.Shape(x)
    height, width, channels = (op.Gather(shape, op.index(i)) for i in (1, 2, 3))
    area = height * width
    image, within = op.Div(places, area), op.Mod(places, area)
    channel, batch = op.Mod(image, channels), op.Div(image, channels)
    index = within * channels + channel
    if include_batch_in_index:
        index = index + batch * area * channels
    return [values, index.cast(Targmax)]


@rule("LRN")
def lrn(
    op: Writer, x: Tensor, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> Tensor:
    size = 2 * depth_radius + 1
    y = op.LRN(channels_first(op, x, "NHWC", 4), size=size, bias=bias, alpha=alpha * size, beta=beta)
    return as_given(op, y, "NHWC", 4)


@rule("SpaceToDepth")
def space_to_depth(op: Writer, x: Tensor, *, block_size: int, data_format: str = "NHWC") -> Tensor:
    y = op.SpaceToDepth(channels_first(op, x, data_format, 4), blocksize=block_size)
    return as_given(op, y, data_format, 4)


@rule("DepthToSpace")
def depth_to_space(op: Writer, x: Tensor, *, block_size: int, data_format: str = "NHWC") -> Tensor:
    y = op.DepthToSpace(channels_first(op, x, data_format, 4), blocksize=block_size, mode="DCR")
    return as_given(op, y, data_format, 4)


def taps(
    op: Writer,
    x: Tensor,
    window: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    fill: float = 0.0,
) -> list[Tensor]:
    """For each place in a window over the rows and columns of NHWC images, what lies under it."""
    spread = [(k - 1) * r + 1 for k, r in zip(window, rates, strict=True)]
    placed = padding_attributes(padding, (), "NHWC", x, window, strides, rates)
    if "auto_pad" in placed:
        shape = op.Shape(x)
        size = op.Slice(shape, op.ints([1]), op.ints([3]))
        step = op.ints(strides)
        count = op.Div(size + op.Sub(step, op.index(1)), step)
        total = op.Max((count - op.index(1)) * step + op.ints(spread) - size, op.index(0))
        before = op.Div(total, op.index(2))
        zero = op.ints([0])
        x = op.Pad(x, op.Concat(zero, before, zero, zero, total - before, zero, axis=0), op.like(fill, x))
    elif "pads" in placed:
        top, left, bottom, right = placed["pads"]
        x = op.Pad(x, op.ints([0, top, left, 0, 0, bottom, right, 0]), op.like(fill, x))
    shape = op.Shape(x)
    found = []
    for i in range(window[0]):
        for j in range(window[1]):
            offset = op.ints([i * rates[0], j * rates[1]])
            last = op.Slice(shape, op.ints([1]), op.ints([3])) - op.ints(spread) + offset + op.index(1)
            found.append(op.Slice(x, offset, last, op.ints([1, 2]), op.ints(strides)))
    return found


@rule("ExtractImagePatches")
def extract_patches(
    op: Writer, x: Tensor, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> Tensor:
    return op.Concat(*taps(op, x, ksizes[1:3], strides[1:3], rates[1:3], padding), axis=3)


@rule("Dilation2D")
def dilation(
    op: Writer, x: Tensor, filters: Tensor, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> Tensor:
    window = (filters.sizes or [])[:2]
    lowest = -3.4e38
    under = taps(op, x, window, strides[1:3], rates[1:3], padding, lowest)
    added = []
    for number, part in enumerate(under):
        row, column = divmod(number, window[1])
        added.append(part + op.GatherND(filters, op.ints([row, column])))
    return op.Max(*added)


@rule("ExtractVolumePatches")
def volume_patches(op: Writer, x: Tensor, *, ksizes: Sequence[int], strides: Sequence[int], padding: str) -> Tensor:
    """A convolution by filters of a single one each."""
    channels = x.dims[4] if x.dims is not None else None
    if not isinstance(channels, int):
        raise UnsupportedError("the number of channels is not known")
    taps = [*ksizes[1:4], channels]
    count = int(np.prod(taps))
    filters = op.constant(np.eye(count, dtype=x.dtype.numpy()).reshape(*taps, count))
    return conv(op, x, filters, strides=strides, padding=padding, data_format="NDHWC")
