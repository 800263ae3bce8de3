"""Padding for sliding windows."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor


def pad_axes(x: Tensor, amounts: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Pad the last axes, each by its amounts before and after it."""
    flat = [n for pair in reversed(amounts) for n in pair]
    return F.pad(x, flat, value=value) if any(flat) else x


def pad_same(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int] | None = None,
    lower: bool = False,
) -> Tensor:
    """Pad the spatial axes so that a convolution makes ceil(size / stride) steps along each.

    Of an odd amount, the larger half goes to the end, or to the beginning if `lower`.
    """
    amounts = []
    for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation or [1] * len(kernel), strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        begin = (total + 1) // 2 if lower else total // 2
        amounts.append((begin, total - begin))
    return pad_axes(x, amounts)


def pool_same_pads(size: int, kernel: int, stride: int, lower: bool = False) -> tuple[int, int]:
    """The padding with which a pool makes ceil(size / stride) steps; negative if its windows leave gaps."""
    total = (-(-size // stride) - 1) * stride + kernel - size
    twice = total + 1 if lower else total
    begin = twice // 2 if twice >= 0 else -(-twice // 2)
    return begin, total - begin


def pool_pad_same(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], lower: bool = False, value: float = 0.0
) -> Tensor:
    """Pad the spatial axes so that a pool makes ceil(size / stride) steps along each."""
    steps = zip(x.shape[2:], kernel, stride, strict=True)
    return pad_axes(x, [pool_same_pads(size, k, s, lower) for size, k, s in steps], value)


def pool_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int] | str | None = None,
    ceil_mode: bool = False,
) -> list[tuple[int, int]]:
    """The padding of each axis that its windows cover exactly; it is negative where they leave out the end.

    `pads` lists the amounts before each axis, then those after each, or is "same_upper" or "same_lower". With
    `ceil_mode` a last window may overhang the end, unless it would start in the padding there.
    """
    amounts = []
    for i, (size, k, s, d) in enumerate(zip(sizes, kernel, stride, dilation, strict=True)):
        if isinstance(pads, str):
            begin, end = pool_same_pads(size, k, s, pads == "same_lower")
        else:
            begin, end = (pads[i], pads[i + len(kernel)]) if pads else (0, 0)
        extent = (k - 1) * d + 1
        span = size + begin + end - extent
        steps = span // s + 1
        if ceil_mode and span % s and steps * s < size + begin:
            steps += 1
        amounts.append((begin, (steps - 1) * s + extent - size - begin))
    return amounts
