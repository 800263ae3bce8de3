"""Padding: before, behind and between the numbers of each axis; less than none takes some away."""

from __future__ import annotations

from collections.abc import Sequence

from onward.errors import UnsupportedError
from onward.frontends.lax.sizes import Size, minus, product, reshaped, sizes, vector
from onward.frontends.writer import FAR, Writer
from onward.graph.build import Tensor


def spread(op: Writer, x: Tensor, between: Sequence[int], filler: Tensor) -> Tensor:
    """With so many numbers between those of each axis."""
    for axis, more in enumerate(between):
        lengths = sizes(op, x)
        if not more or lengths[axis] in (0, 1):
            continue
        rank = len(lengths)
        apart = op.unsqueeze(x, [axis + 1])
        pads = op.ints([0] * (rank + 1) + [more if i == axis + 1 else 0 for i in range(rank + 1)])
        merged: list[Size] = [product(op, [n, more + 1]) if i == axis else n for i, n in enumerate(lengths)]
        long = reshaped(op, op.Pad(apart, pads, op.Reshape(filler, op.ints([]))), merged)
        x = op.Slice(long, op.ints([0]), vector(op, [minus(op, merged[axis], more)]), op.ints([axis]))
    return x


def padded(op: Writer, x: Tensor, before: Sequence[Size], after: Sequence[Size], filler: Tensor) -> Tensor:
    """With so many numbers before and behind; less than none takes some away. Open ones are not negative."""
    outside: list[Size] = [max(n, 0) if isinstance(n, int) else n for n in (*before, *after)]
    if any(n != 0 for n in outside):
        x = op.Pad(x, vector(op, outside), op.Reshape(filler, op.ints([])))
    cut = [axis for axis in range(len(before)) if _is_less(before[axis]) or _is_less(after[axis])]
    if cut:
        starts = [-before[axis] if _is_less(before[axis]) else 0 for axis in cut]
        ends = [after[axis] if _is_less(after[axis]) else FAR for axis in cut]
        x = op.Slice(x, vector(op, starts), vector(op, ends), op.ints(cut))
    return x


def _is_less(number: Size) -> bool:
    return isinstance(number, int) and number < 0


def pad(
    op: Writer, x: Tensor, filler: Tensor, before: Sequence[Size], after: Sequence[Size], between: Sequence[int]
) -> Tensor:
    """Numbers are put between first, so that what is taken away may be one of these."""
    if any(n < 0 for n in between):
        raise UnsupportedError("less than none between numbers is not supported")
    return padded(op, spread(op, x, between, filler), before, after, filler)
