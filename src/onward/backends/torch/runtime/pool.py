"""Pools with dilations, uneven padding, or sizes known only when they run."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from onward.backends.shared.runtime.window import pool_pads, pool_same_pads
from onward.backends.torch.runtime.window import pad_axes


def lowest(dtype: torch.dtype) -> float:
    """The value that no maximum prefers."""
    return -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def max_pool_nd(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window, axis by axis; `stride` is 1 where not given. See `pool_pads` for `pads`."""
    stride, dilation = stride or [1] * len(kernel), dilation or [1] * len(kernel)
    amounts = pool_pads(x.shape[2:], kernel, stride, dilation, pads, ceil_mode)
    x = pad_axes(x, amounts, lowest(x.dtype))
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True), 2):
        x = x.unfold(axis, (k - 1) * d + 1, s)[..., ::d].amax(-1)
    return x


def max_pool_indices(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    column_major: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window and where it stands in the flattened `x`.

    With `column_major`, the spatial axes are counted from the first instead of from the last.
    """
    rank = len(kernel)
    stride, dilation = stride or [1] * rank, dilation or [1] * rank
    amounts = pool_pads(x.shape[2:], kernel, stride, dilation, pads, ceil_mode)
    sizes = x.shape[2:]
    places = torch.arange(math.prod(sizes), device=x.device).reshape(sizes[::-1] if column_major else sizes)
    places = places.permute(*reversed(range(rank))) if column_major else places
    windows, places = pad_axes(x, amounts, lowest(x.dtype)), pad_axes(places[None, None], amounts, -1)
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True), 2):
        windows = windows.unfold(axis, (k - 1) * d + 1, s)[..., ::d]
        places = places.unfold(axis, (k - 1) * d + 1, s)[..., ::d]
    places = places.flatten(-rank)
    y, tap = windows.flatten(-rank).max(-1)
    index = places.expand(*tap.shape, -1).gather(-1, tap[..., None])[..., 0]
    first = places.gather(-1, (places >= 0).long().argmax(-1, keepdim=True))[..., 0]
    return y, index_over_planes(torch.where(index < 0, first, index), x)  # padding is never where the maximum stands


def index_over_planes(index: Tensor, x: Tensor) -> Tensor:
    """Places in the plane of each channel as places in the whole of the flattened `x`."""
    planes = torch.arange(x.shape[0] * x.shape[1], device=x.device)
    return index + planes.reshape(*x.shape[:2], *[1] * (x.ndim - 2)) * math.prod(x.shape[2:])


def sum_pool(x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """The sum of each window, axis by axis."""
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True), 2):
        x = x.unfold(axis, (k - 1) * d + 1, s)[..., ::d].sum(-1)
    return x


def avg_pool_nd(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of each window: of its elements in `x`, or with `count_include_pad` also of the padding's zeros.

    What overhangs the padding never counts.
    """
    rank = len(kernel)
    stride, dilation = stride or [1] * rank, dilation or [1] * rank
    amounts = pool_pads(x.shape[2:], kernel, stride, dilation, pads, ceil_mode)
    total = sum_pool(pad_axes(x, amounts), kernel, stride, dilation)
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        begin, size = amounts[i][0], x.shape[2 + i]
        low, high = 0, size
        if count_include_pad and isinstance(pads, str):
            low, high = -begin, size + pool_same_pads(size, k, s, pads == "same_lower")[1]
        elif count_include_pad:
            low, high = -begin, size + (int(pads[i + rank]) if pads else 0)
        starts = torch.arange(total.shape[2 + i], device=x.device) * s - begin
        places = starts[:, None] + torch.arange(k, device=x.device) * d
        count = ((places >= low) & (places < high)).sum(-1)
        total = total / count.to(x.dtype).reshape(-1, *[1] * (rank - 1 - i))
    return total


def lp_pool_nd(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    p: int = 2,
) -> Tensor:
    """The p-norm of each window. That of zeros, at which the root itself is infinitely steep, has gradients of zero."""
    stride, dilation = stride or [1] * len(kernel), dilation or [1] * len(kernel)
    amounts = pool_pads(x.shape[2:], kernel, stride, dilation, pads, ceil_mode)
    total = sum_pool(pad_axes(x.abs() ** p, amounts), kernel, stride, dilation)
    is_zero = total == 0
    return torch.where(is_zero, total, torch.where(is_zero, 1, total) ** (1 / p))


def max_unpool_nd(
    x: Tensor,
    indices: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with each element of `x` at its place in the flattened input of the pool that made it.

    Places are counted in the smallest input that such a pool can have had; `output_shape` may ask for a larger one.
    """
    rank = len(kernel)
    stride = stride or [1] * rank
    begin, end = (pads[:rank], pads[rank:]) if pads else ([0] * rank, [0] * rank)
    sizes = [(n - 1) * s - b - e + k for n, s, b, e, k in zip(x.shape[2:], stride, begin, end, kernel, strict=True)]
    shape = [*x.shape[:2], *sizes]
    flat = x.new_zeros(math.prod(shape))
    y = flat.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(shape)
    if output_shape is None:
        return y
    return pad_axes(y, [(0, wanted - size) for wanted, size in zip(output_shape[2:], sizes, strict=True)])
