"""Convolutions: channels last outside, channels first where ONNX computes; the layout pass takes out what it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def channels_first(op: Writer, x: Tensor, data_format: str, rank: int) -> Tensor:
    return op.transpose(x.ranked(rank), [0, rank - 1, *range(1, rank - 1)]) if is_last(data_format) else x


def as_given(op: Writer, x: Tensor, data_format: str, rank: int) -> Tensor:
    """Back from channels first."""
    return op.transpose(x, [0, *range(2, rank), 1]) if is_last(data_format) else x


def is_last(data_format: str) -> bool:
    return data_format in ("NHWC", "NDHWC", "NWC")


def spatial(numbers: Sequence[Any], data_format: str) -> list[Any]:
    """Of one number an axis, those of the spatial axes."""
    return list(numbers[1:-1] if is_last(data_format) else numbers[2:])


def same_pads(sizes: Sequence[Any], kernel: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """What `SAME` adds before and after each axis, the odd one behind; None where it depends on an unknown size."""
    before, after = [], []
    for size, taps, stride in zip(sizes, kernel, strides, strict=True):
        if not isinstance(size, int) and stride != 1:
            return None
        total = (
            max(taps - stride, 0)
            if not isinstance(size, int)
            else max((-(-size // stride) - 1) * stride + taps - size, 0)
        )
        before.append(total // 2)
        after.append(total - total // 2)
    return before + after


def padding_attributes(
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int] = (),
) -> dict[str, Any]:
    """How ONNX says where zeros are added; `kernel` and the rest are of the spatial axes."""
    if padding == "EXPLICIT":
        pairs = spatial(list(zip(explicit[::2], explicit[1::2], strict=True)), data_format)
        return {"pads": [a for a, _ in pairs] + [b for _, b in pairs]}
    if padding == "VALID":
        return {}
    spread = [(k - 1) * d + 1 for k, d in zip(kernel, dilations or [1] * len(kernel), strict=True)]
    sizes = spatial(x.dims, data_format) if x.dims is not None else [None] * len(kernel)
    pads = same_pads(sizes, spread, strides)
    if pads is not None:
        return {"pads": pads}
    if any(d != 1 for d in dilations):
        raise UnsupportedError("`SAME` with strides and dilations needs an image of known size")
    return {"auto_pad": "SAME_UPPER"}


def _channels(x: Tensor, data_format: str, rank: int) -> int:
    channels = x.dims[rank - 1 if is_last(data_format) else 1] if x.dims else None
    if not isinstance(channels, int):
        raise UnsupportedError("the number of channels is not known")
    return channels


def _taps(filters: Tensor, rank: int) -> list[int]:
    if filters.sizes is None:
        raise UnsupportedError("the size of the filters is not known")
    return filters.sizes[: rank - 2]


def convolved(
    op: Writer,
    x: Tensor,
    weight: Tensor,
    taps: Sequence[int],
    group: int,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> Tensor:
    """`weight` is as ONNX has it: channels out, channels in, taps."""
    rank = len(strides)
    steps = spatial(strides, data_format)
    spread = spatial(dilations, data_format) if dilations else [1] * len(steps)
    y = op.Conv(
        channels_first(op, x, data_format, rank),
        weight,
        strides=steps,
        dilations=spread,
        group=group,
        **padding_attributes(padding, explicit, data_format, x, taps, steps, spread),
    )
    return as_given(op, y, data_format, rank)


@rule("Conv2D", "Conv3D")
def conv(
    op: Writer,
    x: Tensor,
    filters: Tensor,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (),
) -> Tensor:
    rank = len(strides)
    taps = _taps(filters, rank)
    group = _channels(x, data_format, rank) // (filters.sizes or [])[-2]
    weight = op.arranged(filters, [rank - 1, rank - 2, *range(rank - 2)])
    return convolved(op, x, weight, taps, group, strides, padding, explicit_paddings, data_format, dilations)


def depthwise_weight(op: Writer, filters: Tensor) -> Tensor:
    """Taps, channels, multiplier: as many filters as channels times multiplier, of one channel each."""
    height, width, channels, multiplier = filters.sizes or []
    shape = [channels * multiplier, 1, height, width]
    known = op.known(filters)
    if known is None:
        return op.Reshape(op.transpose(filters, [2, 3, 0, 1]), op.ints(shape))
    return op.stored(filters, known.transpose(2, 3, 0, 1).reshape(shape))


@rule("DepthwiseConv2dNative")
def depthwise(
    op: Writer,
    x: Tensor,
    filters: Tensor,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (),
) -> Tensor:
    taps = _taps(filters, 4)
    weight = depthwise_weight(op, filters)
    group = (filters.sizes or [])[2]
    return convolved(op, x, weight, taps, group, strides, padding, explicit_paddings, data_format, dilations)


def took_bias(y: Tensor, bias: Tensor) -> bool:
    """Whether a convolution whose result nobody else reads could take a bias, and has it now."""
    made = y.value.producer()
    if made is not None and made.op_type == "Transpose" and made.inputs[0] is not None:
        made = made.inputs[0].producer()
    if made is None or made.op_type not in ("Conv", "ConvTranspose") or len(made.inputs) != 2:
        return False
    made.resize_inputs(3)
    made.replace_input_with(2, bias.value)
    return True


def transposed(
    op: Writer,
    sizes: Tensor,
    weight: Tensor,
    y: Tensor,
    taps: Sequence[int],
    group: int,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> Tensor:
    """The gradient of a convolution with respect to its input, which has `sizes`: all of it, cut to size."""
    rank = len(strides)
    steps = spatial(strides, data_format)
    spread = spatial(dilations, data_format) if dilations else [1] * len(steps)
    full = op.ConvTranspose(
        channels_first(op, y, data_format, rank), weight, strides=steps, dilations=spread, group=group
    )
    wanted = op.known(sizes)
    axes = list(range(2, rank))
    widths = [(k - 1) * d + 1 for k, d in zip(taps, spread, strict=True)]
    if wanted is not None:
        lengths = [int(n) for n in wanted]
        lengths = spatial(lengths, data_format) if len(lengths) == rank else lengths
        if padding == "EXPLICIT":
            before = [a for a, _ in spatial(list(zip(explicit[::2], explicit[1::2], strict=True)), data_format)]
        elif padding == "VALID":
            before = [0] * len(lengths)
        else:
            before = (same_pads(lengths, widths, steps) or [])[: len(lengths)]
        cut = op.Slice(
            full, op.ints(before), op.ints([b + n for b, n in zip(before, lengths, strict=True)]), op.ints(axes)
        )
        if cut.dims is None or list(cut.dims[2:]) != lengths:
            cut = _filled_up(op, cut, op.ints(lengths), rank)
        return as_given(op, cut, data_format, rank)
    if padding == "EXPLICIT":
        raise UnsupportedError(
            "explicit pads of a transposed convolution whose result's size is not known are not supported"
        )
    places = list(range(1, rank - 1)) if is_last(data_format) else axes
    length = op.Gather(op.int64(sizes), op.ints(places))
    if padding == "VALID":
        start = op.ints([0] * len(axes))
    else:
        step = op.ints(steps)
        count = op.Div(length + op.Sub(step, op.index(1)), step)
        total = op.Max((count - op.index(1)) * step + op.ints(widths) - length, op.index(0))
        start = op.Div(total, op.index(2))
    cut = op.Slice(full, start, start + length, op.ints(axes))
    return as_given(op, _filled_up(op, cut, length, rank), data_format, rank)


def _filled_up(op: Writer, x: Tensor, lengths: Tensor, rank: int) -> Tensor:
    """With zeros behind, where strides leave some places out."""
    missing = lengths - op.Slice(op.Shape(x), op.ints([2]), op.ints([rank]))
    return op.Pad(x, op.Concat(op.ints([0] * (rank + 2)), missing, axis=0))


@rule("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_input(
    op: Writer,
    sizes: Tensor,
    filters: Tensor,
    y: Tensor,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (),
) -> Tensor:
    rank = len(strides)
    weight = op.arranged(filters, [rank - 1, rank - 2, *range(rank - 2)])
    return transposed(
        op, sizes, weight, y, _taps(filters, rank), 1, strides, padding, explicit_paddings, data_format, dilations
    )


@rule("DepthwiseConv2dNativeBackpropInput")
def depthwise_input(
    op: Writer,
    sizes: Tensor,
    filters: Tensor,
    y: Tensor,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (),
) -> Tensor:
    weight, taps = depthwise_weight(op, filters), _taps(filters, 4)
    group = (filters.sizes or [])[2]
    return transposed(op, sizes, weight, y, taps, group, strides, padding, explicit_paddings, data_format, dilations)
