"""Pools whose windows follow from the size of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor


def _windows(size: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The places in each window, [count, widest]; narrower ones repeat their last place."""
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    widest = max(end - start for start, end in zip(starts, ends, strict=True))
    return np.array([[min(s + k, e - 1) for k in range(widest)] for s, e in zip(starts, ends, strict=True)], np.int64)


@rule("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(op: Builder, x: Tensor, output_size: Sequence[int]) -> Sequence[Tensor]:
    """The largest of each window, and where in the image it is."""
    axes = len(output_size)
    leading = op.rank(x, "the images") - axes
    sizes = (x.dims or [])[leading:]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) != axes or not all(isinstance(count, int) for count in output_size):
        raise UnsupportedError("the size of the images is not known")
    windows = [_windows(size, count) for size, count in zip(known, output_size, strict=True)]
    parts = x
    for i, window in enumerate(windows):
        parts = op.Gather(parts, op.constant(window), axis=leading + 2 * i)
    outer, inner = [leading + 2 * i for i in range(axes)], [leading + 2 * i + 1 for i in range(axes)]
    parts = op.transpose(parts, [*range(leading), *outer, *inner])
    head = op.Slice(op.Shape(x), op.ints([0]), op.ints([leading]))
    parts = op.Reshape(parts, op.Concat(head, op.ints([*output_size, -1]), axis=0))
    best = op.ArgMax(parts, axis=-1, keepdims=1)
    table = np.arange(int(np.prod(known))).reshape(known)
    for i, window in enumerate(windows):
        table = np.take(table, window, axis=2 * i)
    table = table.transpose([*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]).reshape(*output_size, -1)
    places = op.Expand(op.constant(table), op.Shape(parts))
    return [op.squeeze(op.GatherElements(t, best, axis=-1), [-1]) for t in (parts, places)]
