"""Padding for sliding windows."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor


def pad_same(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    lower: bool = False,
    value: float = 0.0,
) -> Tensor:
    """Pad the spatial axes so that a window makes ceil(size / stride) steps along each.

    Of an odd amount, the larger half goes to the end, or to the beginning if `lower`.
    """
    amounts: list[int] = []
    for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        half = (total + 1) // 2 if lower else total // 2
        amounts = [half, total - half, *amounts]
    return F.pad(x, amounts, value=value)
