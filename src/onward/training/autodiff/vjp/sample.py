"""Gradients of reading images between their elements.

Such an op is written once more as arithmetic on gathered elements, and that is differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onward.graph.build import Tensor
from onward.spec.sample import AffineGrid, GridSample, RoiAlign
from onward.training.autodiff.reverse import Context, several_gradients
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp
from onward.training.autodiff.vjp.norm import rank_of

INT64 = ir.DataType.INT64


def by_definition(g: Tensor, inputs: Sequence[Tensor], definition: Callable[..., Tensor]) -> list[Tensor | None]:
    """The gradients of what `definition` makes of the inputs, each by itself even if one is computed from another."""
    op = g.op
    scope = op.scope
    apart = [op.Identity(x) for x in inputs]
    y = definition(*apart)
    found = several_gradients(op, [(y.value, g)], [x.value for x in apart])
    op.scope = scope
    return found


@vjp("GridSample")
def grid_sample(c: Context, g: Tensor, x: Tensor, grid: Tensor, p: GridSample) -> Gradients:
    axes = rank_of(x) - 2

    def definition(image: Tensor, places: Tensor) -> Tensor:
        op = c.op
        sizes = [size_of(image, 2 + axis) for axis in range(axes)]
        flat = op.Reshape(places, op.ints([0, -1, axes]))
        coordinates = []
        for axis, size in enumerate(sizes):
            at = picked(flat, axes - 1 - axis, 2)
            at = (at + 1) * ((size - 1) * 0.5) if p.align_corners else ((at + 1) * size - 1) * 0.5
            coordinates.append(at)
        if p.mode == "cubic":
            found = _cubic(image, coordinates, sizes, p.padding_mode, p.align_corners)
        else:
            moved = [
                _into_range(at, n, p.padding_mode, p.align_corners) for at, n in zip(coordinates, sizes, strict=True)
            ]
            read = _nearest if p.mode == "nearest" else read_between
            found = read(image, moved, sizes)
        return op.reshape_like(found, c.y)

    return by_definition(g, [x, grid], definition)


def size_of(x: Tensor, axis: int) -> Tensor:
    """The length of an axis as a number of the dtype of `x`."""
    op = x.op
    size = None if x.dims is None else x.dims[axis]
    if isinstance(size, int):
        return op.like(size, x)
    return op.Squeeze(op.Shape(x, start=axis, end=axis + 1), op.ints([0])).cast(x.dtype)


def _into_range(at: Tensor, size: Tensor, padding: str, align_corners: bool) -> Tensor:
    """Places outside an axis moved to its border or reflected there."""
    op = at.op
    if padding == "zeros":
        return at
    if padding == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        span = op.Max(span, op.like(1e-9, at))
        turns = op.Floor((at - low) / (span * 2))
        at = at - low - turns * (span * 2)
        at = op.where(op.Greater(at, span), span * 2 - at, at) + low
    return op.Min(op.Max(at, op.like(0, at)), size - 1)


def read_between(image: Tensor, coordinates: Sequence[Tensor], sizes: Sequence[Tensor]) -> Tensor:
    """[batch, channels, places]: the elements around each place, weighted by how near they are; zero outside."""
    op = image.op
    lows = [op.Floor(at) for at in coordinates]
    parts = [at - low for at, low in zip(coordinates, lows, strict=True)]
    rows = _rows(image)
    found = []
    for corner in itertools.product((0, 1), repeat=len(lows)):
        weights = [part if up else 1 - part for part, up in zip(parts, corner, strict=True)]
        places = [low + up if up else low for low, up in zip(lows, corner, strict=True)]
        found.append(_read(image, rows, places, sizes, weights))
    return op.Transpose(op.total(found), perm=[0, 2, 1])


def _nearest(image: Tensor, coordinates: Sequence[Tensor], sizes: Sequence[Tensor]) -> Tensor:
    op = image.op
    found = _read(image, _rows(image), [op.Round(at) for at in coordinates], sizes, [])
    return op.Transpose(found, perm=[0, 2, 1])


def _cubic(
    image: Tensor, coordinates: Sequence[Tensor], sizes: Sequence[Tensor], padding: str, align_corners: bool
) -> Tensor:
    op = image.op
    lows = [op.Floor(at) for at in coordinates]
    parts = [at - low for at, low in zip(coordinates, lows, strict=True)]
    weights = [_cubic_weights(part) for part in parts]
    rows = _rows(image)
    found = []
    for taps in itertools.product(range(4), repeat=len(lows)):
        places = [
            op.Round(_into_range(low + (tap - 1.0), size, padding, align_corners))
            for low, tap, size in zip(lows, taps, sizes, strict=True)
        ]
        found.append(_read(image, rows, places, sizes, [each[tap] for each, tap in zip(weights, taps, strict=True)]))
    return op.Transpose(op.total(found), perm=[0, 2, 1])


def _cubic_weights(part: Tensor, a: float = -0.75) -> list[Tensor]:
    """The weights of the four elements around a place, by its distance from the second."""

    def near(d: Tensor) -> Tensor:
        return (d * (a + 2) - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


def _rows(image: Tensor) -> Tensor:
    """[batch * places, channels]."""
    op = image.op
    flat = op.Transpose(op.Reshape(image, op.ints([0, 0, -1])), perm=[0, 2, 1])
    return op.Reshape(flat, op.Concat(op.ints([-1]), op.Shape(image, start=1, end=2), axis=0))


def _read(
    image: Tensor, rows: Tensor, places: Sequence[Tensor], sizes: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """[batch, places, channels]: the elements at whole places [batch, places], weighted; zero outside."""
    op = image.op
    index = inside = None
    for place, size in zip(places, sizes, strict=True):
        within = op.And(place >= 0, place < size)
        inside = within if inside is None else op.And(inside, within)
        at = op.Min(op.Max(place, op.like(0, place)), size - 1).cast(INT64)
        index = at if index is None else index * size.cast(INT64) + at
    assert index is not None and inside is not None
    plane = op.ReduceProd(op.Shape(image, start=2), keepdims=0)
    first = numbers_to(op.Squeeze(op.Shape(image, end=1), op.ints([0]))) * plane
    elements = op.Gather(rows, index + op.Unsqueeze(first, op.ints([1])), axis=0)
    weight = inside.cast(image.dtype)
    for each in weights:
        weight = weight * each.cast(image.dtype)
    return elements * op.Unsqueeze(weight, op.ints([2]))


@vjp("AffineGrid")
def affine_grid(c: Context, g: Tensor, theta: Tensor, size: Tensor, p: AffineGrid) -> Gradients:
    """Linear in theta: the places of the identity, and ones, are what it is multiplied by."""
    op = c.op
    matrix, axes = op.Shape(theta, start=1), op.Shape(theta, start=1, end=2)
    identity = op.Unsqueeze(op.EyeLike(op.ConstantOfShape(matrix), dtype=int(theta.dtype)), op.ints([0]))
    single = op.Concat(op.ints([1]), op.Slice(size, op.ints([1]), op.ints([5])), axis=0)
    places = op.Reshape(op.AffineGrid(identity, single, align_corners=int(p.align_corners)), shape_list(-1, axes))
    padded = op.Pad(places, op.ints([0, 0, 0, 1]), op.like(1, places))
    rows = op.Reshape(g, shape_list(op.Shape(theta, end=1), -1, axes))
    return op.Transpose(rows, perm=[0, 2, 1]) @ padded


def shape_list(*parts: int | Tensor) -> Tensor:
    """A shape of numbers and lists of numbers."""
    op = next(part.op for part in parts if isinstance(part, Tensor))
    return op.Concat(*(op.ints([part]) if isinstance(part, int) else part for part in parts), axis=0)


def total_of(number: int, sizes: Tensor) -> Tensor:
    """The product of all, as a list of one."""
    return sizes.op.ReduceProd(sizes, keepdims=1) * number


def numbers_to(count: Tensor) -> Tensor:
    return count.op.Range(count.op.index(0), count, count.op.index(1))


def picked(x: Tensor, index: int, axis: int = 0) -> Tensor:
    return x.op.Gather(x, x.op.index(index), axis=axis)


@vjp("RoiAlign")
def roi_align(c: Context, g: Tensor, x: Tensor, rois: Tensor, images: Tensor, p: RoiAlign) -> Gradients:
    op = c.op

    def definition(image: Tensor, regions: Tensor) -> Tensor:
        scaled = regions * p.spatial_scale - (0.5 if p.half_pixel else 0.0)
        lines = []
        for axis, cells in ((1, p.output_height), (0, p.output_width)):
            start = picked(scaled, axis, 1)
            span = picked(scaled, axis + 2, 1) - start
            step = (span if p.half_pixel else op.Max(span, op.like(1, span))) * (1 / cells)
            count = op.filled(step, p.sampling_ratio) if p.sampling_ratio > 0 else op.Ceil(step)
            lines.append(RoiLine(start, step, count, cells, size_of(image, 3 - axis)))
        return (_largest_of_samples if p.mode == "max" else _mean_of_samples)(image, images.cast(INT64), *lines)

    return by_definition(g, [x, rois], definition)


class RoiLine:
    """The samples of regions along one axis: `count` in each of the `cells`, which are `step` long."""

    def __init__(self, start: Tensor, step: Tensor, count: Tensor, cells: int, size: Tensor) -> None:
        op = start.op
        self.size, self.cells = size, cells
        self.most = op.Max(op.ReduceMax(count, keepdims=0), op.like(1, count)).cast(INT64)
        self.least_one = op.Max(count, op.like(1, count))
        sample = numbers_to(self.most).cast(start.dtype)
        inside = (sample + 0.5) / op.Unsqueeze(self.least_one, op.ints([1, 2]))
        each = op.constant(np.arange(cells).reshape(-1, 1)).cast(start.dtype) + inside
        at = each * op.Unsqueeze(step, op.ints([1, 2])) + op.Unsqueeze(start, op.ints([1, 2]))
        self.used = op.Less(sample, op.Unsqueeze(count, op.ints([1, 2])))
        """[regions, 1, samples]: all regions have room for the largest count."""
        self.within = op.And(at >= -1, at <= size)
        self.at = op.Min(op.Max(at, op.like(0, at)), size - 1)
        """[regions, cells, samples]"""

    def weights(self) -> Tensor:
        """[regions, cells, elements of the axis]: how much of each element is in the mean of a cell's samples."""
        op = self.at.op
        elements = numbers_to(self.size.cast(INT64)).cast(self.at.dtype)
        near = op.Relu(1 - op.Abs(op.Unsqueeze(self.at, op.ints([3])) - elements))
        counts = op.Unsqueeze(op.And(self.used, self.within).cast(self.at.dtype), op.ints([3]))
        return op.sum(near * counts, [2], keepdims=False) / op.Unsqueeze(self.least_one, op.ints([1, 2]))


def _mean_of_samples(image: Tensor, images: Tensor, rows: RoiLine, columns: RoiLine) -> Tensor:
    """Two products: with the rows of all images, each region taking those of its own, then with its columns."""
    op, kind = image.op, image.dtype
    batch, channels, height, width = (op.Shape(image, start=i, end=i + 1) for i in range(4))
    own = op.Equal(op.Unsqueeze(images, op.ints([1])), numbers_to(op.Squeeze(batch, op.ints([0]))))
    chosen = op.Unsqueeze(rows.weights(), op.ints([2])) * op.Unsqueeze(own.cast(kind), op.ints([1, 3]))
    lines = op.Reshape(op.Transpose(image, perm=[0, 2, 1, 3]), shape_list(batch * height, channels * width))
    some = op.Reshape(chosen, shape_list(-1, batch * height)) @ lines
    some = op.Reshape(some, shape_list(-1, rows.cells, channels, width))
    across = op.Transpose(op.Unsqueeze(columns.weights(), op.ints([1])), perm=[0, 1, 3, 2])
    return op.Transpose(some @ across, perm=[0, 2, 1, 3])


def _largest_of_samples(image: Tensor, images: Tensor, rows: RoiLine, columns: RoiLine) -> Tensor:
    """The largest of the weighted elements around all samples of a cell."""
    op = image.op
    height, width = (line.size.cast(INT64) for line in (rows, columns))
    elements = _rows(image)
    first = op.Unsqueeze(images, op.ints([1, 2, 3, 4])) * (height * width)
    lows = [op.Floor(line.at) for line in (rows, columns)]
    parts = [line.at - low for line, low in zip((rows, columns), lows, strict=True)]
    ends = [op.Min(low + 1, line.size - 1) for line, low in zip((rows, columns), lows, strict=True)]
    largest = None
    for i, j in itertools.product((0, 1), repeat=2):
        row, column = (ends[k] if up else lows[k] for k, up in ((0, i), (1, j)))
        shares = [parts[k] if up else 1 - parts[k] for k, up in ((0, i), (1, j))]
        across, down = op.Unsqueeze(column.cast(INT64), op.ints([1, 2])), op.Unsqueeze(row.cast(INT64), op.ints([3, 4]))
        weight = op.Unsqueeze(shares[0], op.ints([3, 4])) * op.Unsqueeze(shares[1], op.ints([1, 2]))
        inside = _both(rows.within, columns.within).cast(image.dtype)
        part = op.Gather(elements, first + down * width + across, axis=0)
        part = part * op.Unsqueeze(weight * inside, op.ints([5]))
        largest = part if largest is None else op.Max(largest, part)
    assert largest is not None
    used = op.Unsqueeze(_both(rows.used, columns.used), op.ints([5]))
    lowest = float(np.finfo(np.float32).min)
    found = op.ReduceMax(op.where(used, largest, lowest), op.ints([2, 4]), keepdims=0)
    return op.Transpose(op.where(found > lowest, found, 0), perm=[0, 3, 1, 2])


def _both(down: Tensor, across: Tensor) -> Tensor:
    """[regions, cells, samples, cells, samples], of both axes."""
    op = down.op
    return op.And(op.Unsqueeze(down, op.ints([3, 4])), op.Unsqueeze(across, op.ints([1, 2])))


no_gradient("which boxes, not how much of them", "NonMaxSuppression")
