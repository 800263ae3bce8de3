"""Padding for sliding windows."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from onward.backends.shared.runtime.window import pool_same_pads


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


def pool_pad_same(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], lower: bool = False, value: float = 0.0
) -> Tensor:
    """Pad the spatial axes so that a pool makes ceil(size / stride) steps along each."""
    steps = zip(x.shape[2:], kernel, stride, strict=True)
    return pad_axes(x, [pool_same_pads(size, k, s, lower) for size, k, s in steps], value)
