"""Convolutions of any rank, and those whose padding is known only when they run."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from onward.backends.torch.runtime.sample import sample_linear
from onward.backends.torch.runtime.window import pad_same


def conv_nd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] | None = None,
    padding: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
) -> Tensor:
    """A convolution over any number of axes.

    `padding` lists the amounts before each axis, then those after each, or is "same_upper" or "same_lower".
    """
    rank = weight.ndim - 2
    stride, dilation = stride or [1] * rank, dilation or [1] * rank
    if isinstance(padding, str):
        x = pad_same(x, weight.shape[2:], stride, dilation, lower=padding == "same_lower")
    elif padding:
        x = F.pad(x, [padding[i + side] for i in reversed(range(rank)) for side in (0, rank)])
    if rank <= 3:
        return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, weight, bias, stride, 0, dilation, groups)
    return _conv_by_slices(x, weight, bias, stride, dilation, groups)


def _conv_by_slices(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The sum over the kernel's first axis of convolutions over the others."""
    steps = (x.shape[2] - (weight.shape[2] - 1) * dilation[0] - 1) // stride[0] + 1
    total: Tensor | None = None
    for k in range(weight.shape[2]):
        rows = x[:, :, k * dilation[0] :: stride[0]][:, :, :steps].movedim(2, 1).flatten(0, 1)
        part = conv_nd(rows, weight[:, :, k], None, stride[1:], None, dilation[1:], groups)
        total = part if total is None else total + part
    assert total is not None
    y = total.reshape(x.shape[0], steps, *total.shape[1:]).movedim(1, 2)
    return y if bias is None else y + bias.reshape(-1, *[1] * (y.ndim - 2))


def conv_transpose_nd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    auto_pad: str | None = None,
) -> Tensor:
    """A transposed convolution over any number of axes, cut or extended to the size that is asked for.

    `pads` lists what is cut off the beginning of each axis, then what is cut off each end. `output_shape` or
    `auto_pad` ask for a size instead; "SAME_UPPER" cuts the larger half off the end, else off the start.
    """
    rank = weight.ndim - 2
    stride, dilation, output_padding = (
        stride or [1] * rank,
        dilation or [1] * rank,
        output_padding or [0] * rank,
    )
    y = _conv_transpose_whole(x, weight, stride, dilation, groups)
    ends: list[int] = []
    for i in range(rank):
        size = y.shape[2 + i] + output_padding[i]
        if output_shape or (auto_pad or "").startswith("SAME"):
            wanted = output_shape[i - rank] if output_shape else x.shape[2 + i] * stride[i]
            cut = max(size - wanted, 0)
            begin = cut // 2 if auto_pad == "SAME_UPPER" else cut - cut // 2
            size = wanted if output_shape else size - cut
        else:
            begin, end = (pads[i], pads[i + rank]) if pads and auto_pad is None else (0, 0)
            size -= begin + end
        ends = [-begin, begin + size - y.shape[2 + i], *ends]
    y = F.pad(y, ends)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def _conv_transpose_whole(
    x: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Tensor:
    """All that a transposed convolution reaches, without bias."""
    rank = weight.ndim - 2
    if rank <= 3:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        return function(x, weight, None, stride, 0, 0, groups, dilation)
    rows = x.movedim(2, 1).flatten(0, 1)
    size = (x.shape[2] - 1) * stride[0] + (weight.shape[2] - 1) * dilation[0] + 1
    places = torch.arange(x.shape[2], device=x.device) * stride[0]
    y: Tensor | None = None
    for k in range(weight.shape[2]):
        part = _conv_transpose_whole(rows, weight[:, :, k], stride[1:], dilation[1:], groups)
        part = part.reshape(x.shape[0], x.shape[2], *part.shape[1:]).movedim(1, 2)
        if y is None:
            y = part.new_zeros((*part.shape[:2], size, *part.shape[3:]))
        y = y.index_add(2, places + k * dilation[0], part)
    assert y is not None
    return y


def col2im(
    x: Tensor,
    image: Sequence[int],
    block: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> Tensor:
    """Add the columns of `x`, one per position of a block, back into an image over any number of axes.

    `pads` lists the amounts before each axis, then those after each.
    """
    rank = len(image)
    stride, dilation, pads = stride or [1] * rank, dilation or [1] * rank, pads or [0] * 2 * rank
    padded = [n + pads[i] + pads[i + rank] for i, n in enumerate(image)]
    places = torch.zeros((), dtype=torch.int64, device=x.device)
    for i, (size, k, s, d) in enumerate(zip(padded, block, stride, dilation, strict=True)):
        taps = torch.arange(k, device=x.device) * d
        steps = torch.arange((size - (k - 1) * d - 1) // s + 1, device=x.device) * s
        axes = [n for j in range(rank) for n in ((-1,) if j == i else (1,))]
        taps, steps = taps.reshape(*axes, *[1] * rank), steps.reshape(*[1] * rank, *axes)
        places = places * size + taps + steps
    channels = x.shape[1] // math.prod(block)
    flat = x.new_zeros(x.shape[0], channels, math.prod(padded))
    y = flat.index_add(2, places.reshape(-1), x.reshape(x.shape[0], channels, places.numel()))
    y = y.reshape(*y.shape[:2], *padded)
    return F.pad(y, [-pads[i + side] for i in reversed(range(rank)) for side in (0, rank)])


def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """A convolution whose taps are moved by `offset` and weighted by `mask`, with linear interpolation.

    `offset` has, for each group of channels and each tap, the distance along every axis.
    """
    rank, kernel, steps = weight.ndim - 2, weight.shape[2:], offset.shape[2:]
    stride, dilation, pads = stride or [1] * rank, dilation or [1] * rank, pads or [0] * 2 * rank
    taps, batch, count = math.prod(kernel), x.shape[0] * offset_groups, math.prod(steps)
    moved = offset.reshape(batch, taps, rank, count)
    coordinates = []
    for i in range(rank):
        starts = torch.arange(steps[i], device=x.device) * stride[i] - pads[i]
        starts = starts.reshape(-1, *[1] * (rank - 1 - i)).expand(steps).reshape(-1)
        places = torch.arange(kernel[i], device=x.device) * dilation[i]
        places = places.reshape(-1, *[1] * (rank - 1 - i)).expand(kernel).reshape(-1, 1)
        coordinates.append((moved[:, :, i] + places + starts).reshape(batch, taps * count))
    values = sample_linear(x.reshape(batch, x.shape[1] // offset_groups, *x.shape[2:]), coordinates)
    values = values.reshape(*values.shape[:2], taps, count)
    if mask is not None:
        values = values * mask.reshape(batch, 1, taps, count)
    columns = values.reshape(x.shape[0], groups, x.shape[1] // groups * taps, count)
    y = weight.reshape(groups, weight.shape[0] // groups, -1) @ columns
    y = y.reshape(x.shape[0], weight.shape[0], *steps)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)
