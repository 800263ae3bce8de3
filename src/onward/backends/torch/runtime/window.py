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


def window_pads(
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
        extent = (k - 1) * d + 1
        if isinstance(pads, str):
            steps = -(-size // s)
            total = max((steps - 1) * s + extent - size, 0)
            begin = (total + 1) // 2 if pads == "same_lower" else total // 2
        else:
            begin, end = (pads[i], pads[i + len(kernel)]) if pads else (0, 0)
            span = size + begin + end - extent
            steps = span // s + 1
            if ceil_mode and span % s and steps * s < size + begin:
                steps += 1
        amounts.append((begin, (steps - 1) * s + extent - size - begin))
    return amounts


def pad_axes(x: Tensor, amounts: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Pad the last axes, each by its amounts before and after it."""
    flat = [n for pair in reversed(amounts) for n in pair]
    return F.pad(x, flat, value=value) if any(flat) else x
