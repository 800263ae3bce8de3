"""Reductions over windows that move along axes, and what is chosen in each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.lax.elementwise import DOUBLE, FLOAT, HALVES
from onward.frontends.lax.pad import pad
from onward.frontends.lax.reduce import Pair, halved
from onward.frontends.lax.scatter import COMBINED, neutral
from onward.frontends.lax.sizes import Size, product, reshaped, size, vector
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

POOLED = {FLOAT, *HALVES}
"""Dtypes that are pooled as they are; whole numbers of few bits are in float64."""


@dataclass(frozen=True)
class Moves:
    """A window and how it moves: a number for each axis."""

    window: Sequence[int]
    steps: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    base: Sequence[int]
    """The distance that the numbers themselves are moved apart to."""
    apart: Sequence[int]
    """The distance of the numbers of a window."""

    def on(self, axes: Sequence[int]) -> Moves:
        """Along some axes only."""
        return Moves(*([part[axis] for axis in axes] for part in self._parts()))

    def _parts(self) -> tuple[Sequence[int], ...]:
        return self.window, self.steps, self.before, self.after, self.base, self.apart

    @property
    def is_surrounded(self) -> bool:
        """Whether windows reach beyond the numbers, or between them."""
        return any(n > 0 for n in (*self.before, *self.after)) or any(n != 1 for n in self.base)

    @property
    def axes(self) -> list[int]:
        """Those along which anything happens."""
        still = zip(*self._parts(), strict=True)
        return [axis for axis, numbers in enumerate(still) if tuple(numbers[:5]) != (1, 1, 0, 0, 1)]

    def reach(self, i: int) -> int:
        return (self.window[i] - 1) * self.apart[i] + 1


def _apart(op: Writer, x: Tensor, axes: Sequence[int]) -> tuple[Tensor, list[int], list[Size]]:
    """The axes that a window moves along last, all others as one in front, and those with their sizes."""
    others = [axis for axis in range(op.rank(x, "what windows move over")) if axis not in axes]
    lengths = [size(op, x, axis) for axis in others]
    moved = op.transpose(x, [*others, *axes])
    return reshaped(op, moved, [product(op, lengths), *(size(op, x, axis) for axis in axes)]), others, lengths


def _known(x: Tensor, axis: int) -> int:
    length = x.dims[axis] if x.dims is not None else None
    if not isinstance(length, int):
        raise UnsupportedError("windows that move along an axis of open length are not supported; give a number for it")
    return length


def _back(op: Writer, y: Tensor, others: Sequence[int], lengths: Sequence[Size], axes: Sequence[int]) -> Tensor:
    """The axes where they were before `_apart`."""
    now = [*others, *axes]
    spatial = [size(op, y, axis + 1) for axis in range(len(axes))]
    return op.transpose(reshaped(op, y, [*lengths, *spatial]), [now.index(axis) for axis in range(len(now))])


def _places(lengths: Sequence[int], moves: Moves) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """For each window, by row, the number of each of its places among all that there are."""
    times = counts(lengths, moves)
    flat = np.zeros((1, 1), np.int64)
    for i, length in enumerate(lengths):
        along = np.arange(times[i])[:, None] * moves.steps[i] + np.arange(moves.window[i])[None] * moves.apart[i]
        flat = flat[:, None, :, None] * length + along[None, :, None, :]
        flat = flat.reshape(flat.shape[0] * flat.shape[1], -1)
    return flat


def counts(lengths: Sequence[int], moves: Moves) -> list[int]:
    return [max((n - moves.reach(i)) // moves.steps[i] + 1, 0) for i, n in enumerate(lengths)]


def windows(op: Writer, x: Tensor, moves: Moves, filler: Tensor) -> tuple[Tensor, list[int], list[int]]:
    """Of numbers with one axis before those that windows move along: the windows; how long those are; how many."""
    filled = pad(op, x, filler, [0, *moves.before], [0, *moves.after], [0, *(n - 1 for n in moves.base)])
    lengths = [_known(filled, axis) for axis in range(1, op.rank(filled, "windows"))]
    flat = reshaped(op, filled, [size(op, x, 0), math.prod(lengths)])
    return op.Gather(flat, op.constant(_places(lengths, moves)), axis=1), lengths, counts(lengths, moves)


def reduce_windows(
    op: Writer, tensors: Sequence[Tensor], starts: Sequence[Tensor], moves: Moves, pair: Pair
) -> list[Tensor]:
    """By a function of two, of several tensors at once. As XLA does it, `starts` count once, and not around numbers."""
    if not moves.is_surrounded:
        return _reduced(op, tensors, starts, starts, moves, pair)
    there, none = (op.constant(np.asarray(yes)) for yes in (True, False))

    def of_those_there(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
        (*a, here), (*b, other) = first, second
        both, joined = op.And(here, other), pair(a, b)
        chosen = [op.Where(both, x, op.Where(here, *two)) for x, *two in zip(joined, a, b, strict=True)]
        return [*chosen, op.Or(here, other)]

    each = [*tensors, op.Expand(there, tensors[0].shape)]
    return _reduced(op, each, [*starts, there], [*starts, none], moves, of_those_there)[:-1]


def _reduced(
    op: Writer, tensors: Sequence[Tensor], starts: Sequence[Tensor], around: Sequence[Tensor], moves: Moves, pair: Pair
) -> list[Tensor]:
    """What is `around` numbers is joined as they are."""
    axes = moves.axes
    if not axes:
        return list(pair([op.Expand(start, x.shape) for start, x in zip(starts, tensors, strict=True)], tensors))
    lying = [_apart(op, x, axes) for x in tensors]
    found = [windows(op, x, moves.on(axes), filler) for (x, _, _), filler in zip(lying, around, strict=True)]
    sizes = found[0][2]
    if not math.prod(sizes):
        raise UnsupportedError("windows that are larger than what they move over are not supported")
    joined = [op.squeeze(x, [2]) for x in halved(op, [x for x, _, _ in found], 2, pair)]
    joined = list(pair([op.Expand(start, x.shape) for start, x in zip(starts, joined, strict=True)], joined))
    others, lengths = lying[0][1:]
    each = [reshaped(op, x, [size(op, x, 0), *sizes]) for x in joined]
    return [_back(op, x, others, lengths, axes) for x in each]


def reduce_window(op: Writer, x: Tensor, moves: Moves, kind: str) -> Tensor:
    """The sum (`add`), product (`mul`), maximum (`max`) or minimum (`min`) of each window."""
    start = op.constant(np.asarray(neutral(kind, x.dtype)).astype(x.dtype.numpy()), x.dtype)
    axes = moves.axes
    if not axes:
        return x
    dtype = x.dtype
    if kind in ("max", "min") and (dtype in POOLED or dtype == DOUBLE or (dtype.is_integer() and dtype.itemsize <= 4)):
        wide = x.cast(DOUBLE) if dtype.is_integer() else x
        turned = op.Neg(wide) if kind == "min" else wide
        pooled = _pooled(op, "MaxPool", turned, moves)
        if pooled is not None:
            found = (op.Neg(pooled) if kind == "min" else pooled).cast(dtype)
            return found if dtype.is_integer() else _or_none(op, found, x, moves)
    if kind == "add" and dtype in POOLED:
        pooled = _pooled(op, "AveragePool", x.cast(FLOAT), moves)
        if pooled is not None:
            return (pooled * float(math.prod(moves.window))).cast(dtype)
    wide = x.cast(FLOAT) if dtype in HALVES else x
    start = start.cast(wide.dtype) if dtype in HALVES else start
    joined = _reduced(op, [wide], [start], [start], moves, lambda a, b: [COMBINED[kind](op, a[0], b[0])])
    return joined[0].cast(dtype)


def _or_none(op: Writer, found: Tensor, x: Tensor, moves: Moves) -> Tensor:
    """NaN where a window has one, which a MaxPool leaves out."""
    none = _pooled(op, "MaxPool", op.IsNaN(x).cast(FLOAT), moves)
    assert none is not None
    return op.where(none > 0.0, math.nan, found)


def _pooled(op: Writer, op_type: str, x: Tensor, moves: Moves) -> Tensor | None:
    """By an op of ONNX, where it can say it."""
    axes = moves.axes
    here = moves.on(axes)
    pads = [*here.before, *here.after]
    reaches = [here.window[i] for i in range(len(axes))] * 2
    dilated = any(n != 1 for n in here.apart)
    if len(axes) > 3 or any(n < 0 or n >= reach for n, reach in zip(pads, reaches, strict=True)):
        return None
    if any(n != 1 for n in here.base):
        return None
    others = [axis for axis in range(op.rank(x, "what windows move over")) if axis not in axes]
    options: dict[str, Any] = {
        "kernel_shape": list(here.window),
        "strides": list(here.steps),
        "pads": pads if any(pads) else None,
        "dilations": list(here.apart) if dilated else None,
        "count_include_pad": 1 if op_type == "AveragePool" and any(pads) else None,
    }
    if len(others) == 2:
        now = [*others, *axes]
        y = op.many(op_type, 1, op.transpose(x, now), **options)[0]
        return op.transpose(y, [now.index(axis) for axis in range(len(now))])
    lying, others, lengths = _apart(op, x, axes)
    y = op.squeeze(op.many(op_type, 1, op.unsqueeze(lying, [1]), **options)[0], [1])
    return _back(op, y, others, lengths, axes)


def _chosen(op: Writer, x: Tensor, moves: Moves, kind: str) -> tuple[Tensor, list[int], list[int]]:
    """Where in each window the largest (`max`) or smallest (`min`) is, the first of several, among all places."""
    around = op.constant(np.asarray(neutral(kind, x.dtype)).astype(x.dtype.numpy()), x.dtype)
    found, lengths, sizes = windows(op, x, moves, around)
    best = op.many("ArgMax" if kind == "max" else "ArgMin", 1, found, axis=2, keepdims=1)[0]
    places = op.constant(_places(lengths, moves))
    rows = op.Expand(op.unsqueeze(places, [0]), op.Shape(found))
    return op.squeeze(op.GatherElements(rows, best, axis=2), [2]), lengths, sizes


def select_and_gather(op: Writer, x: Tensor, others: Tensor, moves: Moves, kind: str) -> Tensor:
    """Of each window, what stands in another tensor where the largest or smallest is."""
    axes = moves.axes
    if not axes:
        return others
    lying, around, lengths = _apart(op, x, axes)
    here = moves.on(axes)
    places, inside, sizes = _chosen(op, lying, here, kind)
    beside = _apart(op, others, axes)[0]
    beside = pad(op, beside, op.like(0, beside), [0, *here.before], [0, *here.after], [0, *(n - 1 for n in here.base)])
    flat = reshaped(op, beside, [size(op, lying, 0), math.prod(inside)])
    found = reshaped(op, op.GatherElements(flat, places, axis=1), [size(op, lying, 0), *sizes])
    return _back(op, found, around, lengths, axes)


def select_and_scatter(op: Writer, x: Tensor, source: Tensor, moves: Moves, kind: str) -> Tensor:
    """To zeros, what stands for each window is added where its largest or smallest is."""
    axes = moves.axes
    if not axes:
        return source
    lying, around, lengths = _apart(op, x, axes)
    here = moves.on(axes)
    if any(n != 1 for n in here.base):
        raise UnsupportedError("what is chosen among numbers that are moved apart is not supported")
    dtype = source.dtype
    places, inside, sizes = _chosen(op, lying, here, kind)
    values = _apart(op, source.cast(FLOAT) if dtype in HALVES else source, axes)[0]
    values = reshaped(op, values, [size(op, values, 0), math.prod(sizes)])
    zeros = op.Expand(op.like(0, values), vector(op, [size(op, lying, 0), math.prod(inside)]))
    total = op.ScatterElements(zeros, places, values, axis=1, reduction="add").cast(dtype)
    whole = reshaped(op, total, [size(op, lying, 0), *inside])
    back = [-n for n in here.before], [-n for n in here.after]
    cut = pad(op, whole, op.like(0, whole), [0, *back[0]], [0, *back[1]], [0] * (len(axes) + 1))
    return _back(op, cut, around, lengths, axes)
