"""Slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


@rule("Slice")
def slice_of(op: Writer, x: Tensor, begin: Tensor, size: Tensor) -> Tensor:
    starts, sizes = op.int64(begin), op.int64(size)
    known_starts, known_sizes = op.known(starts), op.known(sizes)
    if known_starts is not None and known_sizes is not None:
        ends = [FAR if s < 0 else int(b) + int(s) for b, s in zip(known_starts, known_sizes, strict=True)]
        return op.Slice(x, starts, op.ints(ends))
    open_ended = sizes < op.index(0)
    return op.Slice(x, starts, op.Where(open_ended, op.index(FAR), starts + sizes))


@rule("StridedSlice")
def strided_slice(
    op: Writer,
    x: Tensor,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """`x[1:3, ..., tf.newaxis, 4]`: bits of the masks say what stands at a place of the brackets."""
    steps = op.numbers(strides, "the strides")
    count = len(steps)
    rank = x.rank
    starts_known, ends_known = op.known(begin), op.known(end)
    if rank == count == 1 and steps == [1] and not ellipsis_mask | new_axis_mask:
        certain = (begin_mask or starts_known is not None) and (end_mask or ends_known is not None)
        start, stop = None if begin_mask else starts_known, None if end_mask else ends_known
        if certain and (sizes := _sizes_between(op, x, start, stop, bool(shrink_axis_mask))) is not None:
            return sizes
    places: list[tuple[int, int]] = []
    new_axes: list[int] = []
    gone: list[int] = []
    axis = result = 0
    for i in range(count):
        bit = 1 << i
        if ellipsis_mask & bit:
            if rank is None:
                raise UnsupportedError("an ellipsis where the rank is not known is not supported")
            later = sum(1 for j in range(i + 1, count) if not new_axis_mask & (1 << j))
            skipped = rank - axis - later
            axis += skipped
            result += skipped
        elif new_axis_mask & bit:
            new_axes.append(result)
            result += 1
        else:
            places.append((i, axis))
            if shrink_axis_mask & bit:
                gone.append(axis)
            else:
                result += 1
            axis += 1
    y = x
    sliced = [
        (i, a)
        for i, a in places
        if not (begin_mask & end_mask & (1 << i) and steps[i] == 1) or shrink_axis_mask & (1 << i)
    ]
    if starts_known is not None and x.dims is not None:
        alone = {a for i, a in sliced if shrink_axis_mask & (1 << i) and x.dims[a] == 1 and starts_known[i] in (0, -1)}
        sliced = [(i, a) for i, a in sliced if a not in alone]
    if sliced:
        starts, ends, taken = [], [], []
        for i, _ in sliced:
            bit, step = 1 << i, steps[i]
            shrinks = bool(shrink_axis_mask & bit)
            first = None if begin_mask & bit and not shrinks else i
            starts.append(_bound(op, begin, starts_known, first, 0 if step > 0 else FAR))
            if shrinks:
                ends.append(_after(op, begin, starts_known, i))
                taken.append(1)
            else:
                ends.append(_bound(op, end, ends_known, None if end_mask & bit else i, FAR if step > 0 else -FAR - 1))
                taken.append(step)
        y = op.Slice(y, _joined(op, starts), _joined(op, ends), op.ints([a for _, a in sliced]), op.ints(taken))
    y = op.squeeze(y, gone)
    return op.unsqueeze(y, new_axes)


def _sizes_between(op: Writer, x: Tensor, start: Any, end: Any, single: bool) -> Tensor | None:
    """Where a shape is sliced, and the sizes are known although others are not: the sizes."""
    sizes = op.sizes_in(x)
    if sizes is None or op.known(x) is not None:
        return None
    first = None if start is None else int(start[0])
    picked = [sizes[first or 0]] if single else sizes[first : None if end is None else int(end[0])]
    if any(size is None for size in picked):
        return None
    return op.constant(np.asarray(picked[0] if single else picked, x.dtype.numpy()))


def _bound(op: Writer, bounds: Tensor, known: Any, i: int | None, otherwise: int) -> int | Tensor:
    if i is None:
        return otherwise
    if known is not None:
        return int(known[i])
    return op.Slice(op.int64(bounds), op.ints([i]), op.ints([i + 1]))


def _after(op: Writer, begin: Tensor, known: Any, i: int) -> int | Tensor:
    """The end of a slice of one: after -1 comes the very end."""
    start = _bound(op, begin, known, i, 0)
    if isinstance(start, int):
        return start + 1 if start != -1 else FAR
    return op.Where(op.Equal(start, op.index(-1)), op.index(FAR), start + op.index(1))


def _joined(op: Writer, bounds: list[int | Tensor]) -> Tensor:
    if all(isinstance(b, int) for b in bounds):
        return op.ints([b for b in bounds if isinstance(b, int)])
    return op.Concat(*(op.ints([b]) if isinstance(b, int) else b for b in bounds), axis=0)
