"""Padding of sliding windows, in plain numbers."""

from collections.abc import Sequence


def pool_same_pads(size: int, kernel: int, stride: int, lower: bool = False) -> tuple[int, int]:
    """The padding with which a pool makes ceil(size / stride) steps; negative if its windows leave gaps."""
    total = (-(-size // stride) - 1) * stride + kernel - size
    twice = total + 1 if lower else total
    begin = twice // 2 if twice >= 0 else -(-twice // 2)
    return begin, total - begin


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
