"""Gradients of pools."""

from __future__ import annotations

import math
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.build import Tensor
from onward.spec.pool import AveragePool, GlobalLpPool, LpPool, MaxPool, MaxRoiPool, MaxUnpool
from onward.spec.window import Window, window
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.norm import count_of, rank_of
from onward.training.autodiff.vjp.sample import by_definition
from onward.training.autodiff.windows import Ints, beginning, moved, spatial

MANY_PARTS = 4
"""Into how many parts the windows of a pool are split, at most, so that those of a part do not overlap."""


@vjp("MaxPool")
def max_pool(c: Context, g: Tensor, x: Tensor, p: MaxPool) -> Gradients:
    """Each window's gradient goes to the first of its largest elements."""
    op = c.op
    if p.storage_order:
        attributes: dict[str, Any] = {k: v for k, v in c.node.attributes.items() if k != "storage_order"}
        places = op.many("MaxPool", 2, x, **attributes)[1]
    else:
        places = c.optional_output(1)
    win = p.window
    parts = [-(-extent // stride) for extent, stride in zip(win.extents, win.strides, strict=True)]
    known = None if x.dims is None or g.dims is None else (*x.dims[1:], *g.dims[1:])
    if known is None or math.prod(parts) > MANY_PARTS or not all(isinstance(d, int) for d in known):
        return scattered(g, places, x)
    found = []
    for part in np.ndindex(*parts):
        some, where = g, places
        if math.prod(parts) > 1:
            cut = [op.ints(part), op.ints([np.iinfo(np.int64).max] * len(part)), op.ints(range(2, 2 + len(part)))]
            some, where = (op.Slice(t, *cut, op.ints(parts)) for t in (g, places))
        found.append(_unpooled(some, where, x))
    return op.total([f for f in found if f is not None])


def _unpooled(g: Tensor, places: Tensor, x: Tensor) -> Tensor | None:
    """The gradients of windows without an element in common put back; None if there are no windows.

    A sample as one long row, so that any size can be reached without padding.
    """
    op = g.op
    assert g.dims is not None and x.dims is not None
    few, many = (math.prod(d for d in t.dims[1:] if isinstance(d, int)) for t in (g, x) if t.dims is not None)
    if few == 0:
        return None
    rows = [op.Reshape(t, op.ints([-1, 1, few])) for t in (g, places)]
    return op.reshape_like(op.MaxUnpool(*rows, kernel_shape=[many - few + 1]), x)


def scattered(g: Tensor, places: Tensor, x: Tensor) -> Tensor:
    """The elements of `g` added up at places of the flattened `x`."""
    op = g.op
    flat, where = (op.Reshape(t, op.ints([-1])) for t in (g, places))
    zeros = op.Expand(op.like(0, g), op.Reshape(op.Size(x), op.ints([1])))
    return op.reshape_like(op.ScatterElements(zeros, where, flat, axis=0, reduction="add"), x)


@vjp("AveragePool")
def average_pool(c: Context, g: Tensor, x: Tensor, p: AveragePool) -> Gradients:
    """Each window's gradient spread over the elements that it counts."""
    begin = _begin(x, g, p.window)
    counts = _counts(x, g, p.window, begin, bool(p.count_include_pad))
    return spread(g / counts, x, p.window, begin)


def _counts(x: Tensor, y: Tensor, win: Window, begin: Ints, with_pads: bool) -> Tensor:
    """How many elements each window counts, to be combined with `y`: the product of the counts along each axis."""
    op, rank = x.op, len(win.kernel)
    sizes, steps = spatial(x, rank), spatial(y, rank)
    low = -begin if with_pads else Ints(op, [0] * rank)
    high = sizes
    if with_pads:
        high = sizes + (Ints(op, win.end) if win.end is not None else _same_end(win, begin, sizes, steps))
    parts = []
    for axis in range(rank):
        tail = [1] * (rank - 1 - axis)
        taps = np.arange(win.kernel[axis]) * win.dilations[axis]
        if steps.known is not None and low.known is not None and high.known is not None and begin.known is not None:
            starts = np.arange(steps.known[axis]) * win.strides[axis] - begin.known[axis]
            places = starts[:, None] + taps
            count = ((places >= low.known[axis]) & (places < high.known[axis])).sum(1)
            parts.append(op.constant(count.reshape(-1, *tail)).cast(y.dtype))
            continue
        first, bottom, top, many = (op.Gather(t.tensor, op.index(axis)) for t in (begin, low, high, steps))
        starts_then = op.Range(op.index(0), many, op.index(1)) * win.strides[axis] - first
        at = op.Unsqueeze(starts_then, op.ints([1])) + op.constant(taps)
        inside = op.And(at >= bottom, at < top).cast(y.dtype)
        parts.append(op.Reshape(op.sum(inside, [1]), op.ints([-1, *tail])))
    return reduce(mul, parts)


def _same_end(win: Window, begin: Ints, sizes: Ints, steps: Ints) -> Ints:
    """The automatic padding after each axis."""
    return (steps - 1) * Ints(sizes.op, win.strides) + Ints(sizes.op, win.kernel) - sizes - begin


def spread(g: Tensor, x: Tensor, win: Window, begin: Ints) -> Tensor:
    """The gradients of all windows that an element of `x` is in, added up."""
    op, rank = g.op, len(win.kernel)
    sizes = spatial(x, rank)
    if win.kernel == win.strides and begin.is_(0) and _tiles(g, sizes, win):
        return _repeated(g, x, win)
    ones = op.constant(np.ones((1, 1, *win.kernel))).cast(g.dtype)
    planes = op.Reshape(g, op.Concat(op.ints([-1, 1]), spatial(g, rank).tensor, axis=0))
    full = op.ConvTranspose(planes, ones, strides=list(win.strides), dilations=list(win.dilations))
    return op.reshape_like(moved(full, -begin, sizes, rank), x)


def _tiles(g: Tensor, sizes: Ints, win: Window) -> bool:
    """Whether windows side by side surely cover the input exactly."""
    steps = spatial(g, len(win.kernel))
    if set(win.dilations) != {1} or steps.known is None or sizes.known is None:
        return False
    return all(n * s == size for n, s, size in zip(steps.known, win.strides, sizes.known, strict=True))


def _repeated(g: Tensor, x: Tensor, win: Window) -> Tensor:
    """Each element of `g` as often as there are elements in a window."""
    op, rank = g.op, len(win.kernel)
    steps = spatial(g, rank).known
    assert steps is not None
    apart = op.Reshape(g, op.ints([-1, *(n for step in steps for n in (step, 1))]))
    sizes = [n for step, k in zip(steps, win.kernel, strict=True) for n in (step, k)]
    return op.reshape_like(op.Expand(apart, op.ints([1, *sizes])), x)


@vjp("LpPool")
def lp_pool(c: Context, g: Tensor, x: Tensor, p: LpPool) -> Gradients:
    share = spread(_over_power(g, c.y, p.p), x, p.window, _begin(x, g, p.window))
    return share * _power_slope(x, p.p)


@vjp("GlobalLpPool")
def global_lp_pool(c: Context, g: Tensor, x: Tensor, p: GlobalLpPool) -> Gradients:
    return _power_slope(x, p.p) * _over_power(g, c.y, p.p)


def _over_power(g: Tensor, y: Tensor, p: int) -> Tensor:
    """g / y ** (p - 1); 0 where all elements are 0 and there is no slope."""
    op = g.op
    if p == 1:
        return g
    none = op.Equal(y, op.like(0, y))
    divisor = op.where(none, 1, y)
    return op.where(none, 0, g / (divisor if p == 2 else divisor ** (p - 1)))


def _power_slope(x: Tensor, p: int) -> Tensor:
    """The slope of |x| ** p / p."""
    if p == 2:
        return x
    sign = x.op.Sign(x)
    return sign if p == 1 else sign * x.op.Abs(x) ** (p - 1)


@vjp("GlobalAveragePool")
def global_average_pool(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return c.op.Expand(g / count_of(x, range(2, rank_of(x))), x.shape)


@vjp("GlobalMaxPool")
def global_max_pool(c: Context, g: Tensor, x: Tensor) -> Gradients:
    """To the first of the largest elements."""
    op = c.op
    rows, slopes = (op.Reshape(t, op.ints([0, 0, -1])) for t in (x, g))
    place = op.ArgMax(rows, axis=2, keepdims=1)
    return op.reshape_like(op.ScatterElements(op.zeros_like(rows), place, slopes, axis=2), x)


@vjp("MaxUnpool")
def max_unpool(
    c: Context, g: Tensor, x: Tensor, places: Tensor, output_shape: Tensor | None = None, *, p: MaxUnpool
) -> Gradients:
    """Places are counted in the smallest input that the pool can have had, which an output shape only extends."""
    op, rank = c.op, len(p.kernel_shape)
    if output_shape is not None:
        win = window(p.kernel_shape, None, strides=p.strides, dilations=None, pads=p.pads, auto_pad="NOTSET")
        span = (spatial(x, rank) - 1) * Ints(op, win.strides) + Ints(op, p.kernel_shape)
        sizes = span - Ints(op, win.begin or ()) - Ints(op, win.end or ())
        g = op.Slice(g, op.ints([0] * rank), sizes.tensor, op.ints(range(2, rank + 2)))
    flat, where = (op.Reshape(t, op.ints([-1])) for t in (g, places))
    return op.reshape_like(op.Gather(flat, where, axis=0), x)


def _begin(x: Tensor, y: Tensor, win: Window) -> Ints:
    rank = len(win.kernel)
    return beginning(win, Ints(x.op, win.kernel), spatial(x, rank), spatial(y, rank), pool=True)


@vjp("MaxRoiPool")
def max_roi_pool(c: Context, g: Tensor, x: Tensor, rois: Tensor, p: MaxRoiPool) -> Gradients:
    """To the largest elements of each cell, which are looked for row by row and then column by column."""
    op = c.op
    lowest = float(np.finfo(np.float32).min)
    batch, *corners = (op.Gather(rois, op.index(i), axis=1) for i in range(5))
    scaled = [corner * p.spatial_scale for corner in corners]
    left, top, right, bottom = (op.Floor(op.Abs(t) + 0.5) * op.Sign(t) for t in scaled)

    def definition(image: Tensor) -> Tensor:
        regions = op.Gather(image, batch.cast(ir.DataType.INT64), axis=0)
        rows = _cells(top, bottom, p.pooled_shape[0], image, 2)
        columns = _cells(left, right, p.pooled_shape[1], image, 3)
        lines = [op.ReduceMax(op.where(op.Unsqueeze(r, op.ints([1, 3])), regions, lowest), op.ints([2])) for r in rows]
        band = op.Concat(*lines, axis=2)
        cells = [op.ReduceMax(op.where(op.Unsqueeze(r, op.ints([1, 2])), band, lowest), op.ints([3])) for r in columns]
        found = op.Concat(*cells, axis=3)
        return op.where(found > lowest, found, 0)

    return by_definition(g, [x], definition)


def _cells(first: Tensor, last: Tensor, count: int, image: Tensor, axis: int) -> list[Tensor]:
    """[regions, elements of the axis] for each cell along it: which elements it covers."""
    op = first.op
    step = op.Max(last - first + 1, op.like(1, first)) * (1 / count)
    size = op.Gather(op.Shape(image), op.index(axis))
    elements = op.Range(op.index(0), size, op.index(1)).cast(first.dtype)
    starts = [first + op.Floor(step * i) for i in range(count)]
    ends = [first + op.Ceil(step * (i + 1)) for i in range(count)]
    column = op.ints([1])
    return [
        op.And(elements >= op.Unsqueeze(start, column), elements < op.Unsqueeze(end, column))
        for start, end in zip(starts, ends, strict=True)
    ]
