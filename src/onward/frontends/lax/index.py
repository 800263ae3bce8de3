"""Gathering, scattering and slicing at places that are computed, in and out of bounds.

An index vector names a place along some axes of a tensor, where a window of it begins. Modes say what becomes of a
window that does not lie inside altogether: `clip` moves it inside, `fill` reads a filler and writes nothing, `promise`
says that there is none; should there be one after all, it reads as `clip` does and writes as `fill` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.elementwise import INT32, INT64, maximum, minimum
from onward.frontends.lax.sizes import Size, is_at_least, minus, plus, scalar, size, vector
from onward.frontends.writer import Writer
from onward.graph.build import Number, Tensor


def filler(dtype: ir.DataType) -> Number:
    """What is read where there is nothing, unless something else is asked for."""
    if dtype == ir.DataType.BOOL:
        return True
    if not dtype.is_integer():
        return float("nan")
    limits = np.iinfo(dtype.numpy())
    return int(limits.min if dtype.is_signed() else limits.max)


def places(op: Writer, indices: Tensor) -> Tensor:
    """Indices as int32 or int64, which hold every one."""
    if indices.dtype in (INT32, INT64):
        return indices
    return op.converted(indices, INT64 if indices.dtype.itemsize >= 4 else INT32)


def bounded(op: Writer, indices: Tensor, limits: Sequence[Size], mode: str) -> tuple[Tensor, Tensor | None]:
    """Index vectors with all in bounds, and where each had been so before; None where all had, or it does not matter.

    The last axis has as many as there are limits; a single one is taken from its axis.
    """
    at = places(op, op.squeeze(indices, [op.rank(indices, "indices") - 1]) if len(limits) == 1 else indices)
    known = op.known(at)
    if known is not None and all(isinstance(limit, int) for limit in limits):
        fits = (known >= 0) & (known <= np.asarray(limits, np.int64))
        if fits.all():
            return at, None
    inside = None
    top = scalar(op, limits[0], at.dtype) if len(limits) == 1 else vector(op, limits).cast(at.dtype)
    if mode == "fill":
        inside = op.And(at >= 0, at <= top)
        if len(limits) > 1:
            inside = op.reduced("ReduceMin", inside.cast(INT32), [-1], keepdims=False) > 0
    zero = op.like(0, at)
    if at.dtype == INT32 and top.rank == 0:
        return op.Clip(at, zero, top), inside
    return minimum(op, maximum(op, at, zero), top), inside


def clipped(op: Writer, start: Tensor, limit: Size) -> Size:
    """One place with at most this number, at least 0."""
    known = op.known(start)
    if known is not None and isinstance(limit, int):
        return max(0, min(int(known.reshape(())), limit))
    at = places(op, op.Reshape(start, op.ints([])) if start.rank else start)
    top = scalar(op, limit, at.dtype)
    if at.dtype == INT32:
        return op.Clip(at, op.like(0, at), top).cast(INT64)
    return minimum(op, maximum(op, at, op.like(0, at)), top)


def dynamic_slice(op: Writer, x: Tensor, starts: Sequence[Tensor], window: Sequence[Size | None]) -> Tensor:
    """A window of these sizes, None for all of an axis; one that would reach beyond the end begins earlier."""
    begin: dict[int, Size] = {}
    for axis, (start, length) in enumerate(zip(starts, window, strict=True)):
        if length is not None and not is_full(x, axis, length):
            begin[axis] = clipped(op, start, minus(op, size(op, x, axis), length))
    return window_at(op, x, begin, window)


def is_full(x: Tensor, axis: int, length: Size | None) -> bool:
    return length is None or (isinstance(length, int) and x.dims is not None and x.dims[axis] == length)


def window_at(op: Writer, x: Tensor, begin: dict[int, Size], window: Sequence[Size | None]) -> Tensor:
    if not begin:
        return x
    lengths = [window[axis] for axis in begin]
    ends = [plus(op, start, length or 0) for start, length in zip(begin.values(), lengths, strict=True)]
    y = op.Slice(x, vector(op, list(begin.values())), vector(op, ends), op.ints(list(begin)))
    if x.dims is not None:  # what begins anywhere has a length all the same
        sized = [window[axis] if axis in begin else n for axis, n in enumerate(x.dims)]
        y.value.shape = ir.Shape([n if isinstance(n, int | str) else None for n in sized])
    return y


def dynamic_update_slice(op: Writer, x: Tensor, update: Tensor, starts: Sequence[Tensor]) -> Tensor:
    """With a window replaced; one that would reach beyond the end begins earlier."""
    begin: dict[int, Size] = {}
    for axis, start in enumerate(starts):
        length = size(op, update, axis)
        if not (
            is_full(x, axis, length) or (update.dims is not None and x.dims is not None and _alike(update, x, axis))
        ):
            begin[axis] = clipped(op, start, minus(op, size(op, x, axis), length))
    return replaced(op, x, update, begin)


def _alike(a: Tensor, b: Tensor, axis: int) -> bool:
    """Whether an open axis has one name in both."""
    assert a.dims is not None and b.dims is not None
    return isinstance(a.dims[axis], str) and a.dims[axis] == b.dims[axis]


def replaced(op: Writer, x: Tensor, update: Tensor, begin: dict[int, Size]) -> Tensor:
    """With a window replaced that begins at these places, and has all of every other axis: axis by axis."""
    if not begin:
        return update
    axis, start = next(iter(begin.items()))
    end = plus(op, start, size(op, update, axis))
    rest = {other: place for other, place in begin.items() if other != axis}
    axes = op.ints([axis])
    middle = op.Slice(x, vector(op, [start]), vector(op, [end]), axes) if rest else update
    pieces = [replaced(op, middle, update, rest)]
    if start != 0:
        pieces.insert(0, op.Slice(x, op.ints([0]), vector(op, [start]), axes))
    if not is_at_least(end, size(op, x, axis)):
        pieces.append(op.Slice(x, vector(op, [end]), vector(op, [size(op, x, axis)]), axes))
    if len(pieces) == 1:
        return pieces[0]
    y = op.Concat(*pieces, axis=axis)
    y.value.shape = x.value.shape
    return y


@dataclass(frozen=True)
class Windows:
    """Which axes are which. Index vectors are the last axis of the indices.

    Of the windows, axes that are `gone` have a size of one and are left out; `inner` says where the others stand in
    what is gathered, or in the updates. Index vectors name a place along the axes `named`. The axes `batch` of the
    tensor are walked along with the axes `index_batch` of the indices.
    """

    inner: Sequence[int]
    gone: Sequence[int]
    named: Sequence[int]
    batch: Sequence[int] = ()
    index_batch: Sequence[int] = ()


def vectors_last(op: Writer, indices: Tensor, axis: int) -> Tensor:
    """Indices whose vectors lie along another axis; beyond the last one, each index is a vector of its own."""
    if axis == indices.rank:
        return op.unsqueeze(indices, [axis])
    order = [i for i in range(op.rank(indices, "indices")) if i != axis]
    return op.transpose(indices, [*order, axis])


def gather(
    op: Writer,
    x: Tensor,
    indices: Tensor,
    windows: Windows,
    window: Sequence[Size | None],
    mode: str = "clip",
    fill: Number | None = None,
) -> Tensor:
    """The window that begins at each place; of a size None it has all of an axis."""
    rank = op.rank(x, "what is gathered from")
    lengths: list[Size | None] = [
        (size(op, x, axis) if length is None else length)
        if axis in windows.named
        else (None if is_full(x, axis, length) else length)
        for axis, length in enumerate(window)
    ]
    limits = [
        0 if is_full(x, d, window[d]) else minus(op, size(op, x, d), length_of(lengths[d])) for d in windows.named
    ]
    outer = op.rank(indices, "indices") - 1
    if not windows.named and outer:
        raise UnsupportedError("a gather whose indices name no axis is not supported")
    at, inside = bounded(op, indices, limits, mode) if windows.named else (indices, None)
    for axis, length in enumerate(lengths):
        if length is not None and axis not in windows.named and axis not in windows.batch:
            x = op.Slice(x, op.ints([0]), vector(op, [length]), op.ints([axis]))
    if outer == 0 and not (windows.named and all(lengths[d] == 1 for d in windows.named)):
        begin = {d: component(op, at, windows, d) for d in windows.named if not is_full(x, d, window[d])}
        y = op.squeeze(window_at(op, x, begin, lengths), sorted(windows.gone))
        return _filled(op, y, inside, windows, fill)
    found, labels = _gathered(op, x, at, windows, lengths)
    found = op.squeeze(found, [i for i, (of, d) in enumerate(labels) if of == "x" and d in windows.gone])
    labels = [(of, d) for of, d in labels if of == "i" or d not in windows.gone]
    kept = [d for d in range(rank) if d not in windows.gone and d not in windows.batch]
    by_place, by_axis = iter(range(outer)), iter(kept)
    target = [("x", next(by_axis)) if i in windows.inner else ("i", next(by_place)) for i in range(outer + len(kept))]
    y = op.transpose(found, [labels.index(label) for label in target if label in labels])
    y = op.unsqueeze(y, [i for i, label in enumerate(target) if label not in labels])
    return _filled(op, y, inside, windows, fill)


def component(op: Writer, at: Tensor, windows: Windows, axis: int) -> Size:
    """What one index vector says of an axis."""
    known, place = op.known(at), list(windows.named).index(axis)
    if known is not None:
        return int(known.reshape(-1)[place])
    return (at if len(windows.named) == 1 else op.Gather(at, op.index(place))).cast(INT64)


def _filled(op: Writer, y: Tensor, inside: Tensor | None, windows: Windows, fill: Number | None) -> Tensor:
    if inside is None:
        return y
    spread = op.unsqueeze(inside, sorted(windows.inner)) if inside.rank else inside
    return op.where(spread, y, filler(y.dtype) if fill is None else fill)


Labels = list[tuple[str, int]]
"""What each axis is: one of the tensor, or one of the indices."""


def _gathered(
    op: Writer, x: Tensor, at: Tensor, windows: Windows, lengths: Sequence[Size | None]
) -> tuple[Tensor, Labels]:
    """All windows in whatever order of axes; axes of a size of one are left out where they are named."""
    named, batch = list(windows.named), list(windows.batch)
    rank, outer = op.rank(x, "a tensor"), op.rank(at, "indices") - int(len(named) > 1)
    if len(named) == 1 and not batch and lengths[named[0]] == 1:
        axis = named[0]
        y = op.Gather(x, at, axis=axis)
        return y, [
            *(("x", d) for d in range(axis)),
            *(("i", i) for i in range(outer)),
            *(("x", d) for d in range(axis + 1, rank)),
        ]
    rest = [d for d in range(rank) if d not in named and d not in batch]
    wide = [d for d in named if lengths[d] != 1]
    order = [*windows.index_batch, *(i for i in range(outer) if i not in windows.index_batch)]
    if not rest and not wide and len(named) == 1 and outer == len(batch) + 1:
        return _along(op, x, at, windows, order)
    at = op.transpose(op.unsqueeze(at, [outer]) if len(named) == 1 else at, [*order, outer])
    if wide:
        at = op.unsqueeze(at, [outer + i for i in range(len(wide))]) + _grid(op, x, named, wide, lengths).cast(at.dtype)
    turned = op.transpose(x, [*batch, *named, *rest])
    y = op.GatherND(turned, op.int64(at), batch_dims=len(batch) or None)
    return y, [*(("i", i) for i in order), *(("x", d) for d in wide), *(("x", d) for d in rest)]


def _along(op: Writer, x: Tensor, at: Tensor, windows: Windows, order: Sequence[int]) -> tuple[Tensor, Labels]:
    """One number for each index, along one axis, where all others are walked along with it."""
    axis, batch = windows.named[0], list(windows.batch)
    by_axis = dict(zip(batch, windows.index_batch, strict=True)) | {axis: order[-1]}
    perm = [by_axis[d] for d in range(len(by_axis))]
    y = op.GatherElements(x, op.transpose(at, perm), axis=axis)
    return y, [("i", i) for i in perm]


def _grid(op: Writer, x: Tensor, named: Sequence[int], wide: Sequence[int], lengths: Sequence[Size | None]) -> Tensor:
    """How far each place of a window is from where it begins: an axis for each wide one, and the vectors."""
    counts = [_counted(length_of(lengths[d])) for d in wide]
    steps = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), -1).astype(np.int64)
    columns = [steps[..., wide.index(d)] if d in wide else np.zeros(steps.shape[:-1], np.int64) for d in named]
    return op.constant(np.stack(columns, -1))


def length_of(length: Size | None) -> Size:
    assert length is not None
    return length


def _counted(length: Size) -> int:
    if not isinstance(length, int):
        raise UnsupportedError("windows of a size that is not known, at several places, are not supported")
    return length
