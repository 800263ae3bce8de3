"""Reading an image between its elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.host import known
from onward.backends.jax.runtime.resize import cubic_filter


def sample_linear(x: Array, coordinates: Sequence[Array]) -> Array:
    """The values of `x` (batch, channels, axes …) at fractional places, by linear interpolation; zero outside.

    `coordinates` has a tensor (batch, places) for each axis; the result is (batch, channels, places).
    """
    lows = [jnp.floor(c) for c in coordinates]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        places = [low.astype(jnp.int32) + up for low, up in zip(lows, corner, strict=True)]
        weight = jnp.ones_like(coordinates[0])
        for c, low, up in zip(coordinates, lows, corner, strict=True):
            weight = weight * (c - low if up else 1 - (c - low))
        part = gather_or_zero(x, places) * weight.astype(x.dtype)[:, None]
        total = part if total is None else total + part
    result: Array = total
    return result


def gather_or_zero(x: Array, places: Sequence[Array]) -> Array:
    """The elements of `x` (batch, channels, axes …) at whole places, zero outside; see `sample_linear`."""
    inside, index = jnp.ones_like(places[0], bool), jnp.zeros_like(places[0])
    for place, size in zip(places, x.shape[2:], strict=True):
        inside = inside & (place >= 0) & (place < size)
        index = index * size + jnp.clip(place, 0, size - 1)
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    return jnp.where(inside[:, None], jnp.take_along_axis(flat, index[:, None], 2), jnp.zeros((), x.dtype))


def grid_sample(
    x: Array, grid: Array, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Array:
    """The values of an image over any number of axes at the places of a grid, which span -1 to 1 along each axis.

    `mode` is nearest, linear or cubic; `padding` is zeros, border or reflection.
    """
    sizes, shape = x.shape[2:], grid.shape[1:-1]
    kind = jnp.promote_types(grid.dtype, jnp.float32)
    kind = jnp.promote_types(x.dtype, kind) if jnp.issubdtype(x.dtype, jnp.floating) else kind
    values = x.astype(kind) if mode != "nearest" and not jnp.iscomplexobj(x) else x
    coordinates = []
    for axis, size in enumerate(sizes):
        c = grid[..., len(sizes) - 1 - axis].astype(kind).reshape(grid.shape[0], math.prod(shape))
        coordinates.append((c + 1) / 2 * (size - 1) if align_corners else ((c + 1) * size - 1) / 2)
    if mode == "nearest":  # what is in the middle between two elements is rounded before it is reflected
        coordinates = [jnp.round(c) for c in coordinates]
    if mode != "cubic":
        moved = [into_range(c, size, padding, align_corners) for c, size in zip(coordinates, sizes, strict=True)]
        if mode == "nearest":
            y = gather_or_zero(values, [jnp.round(c).astype(jnp.int32) for c in moved])
        else:
            y = sample_linear(values, moved)
    else:
        y = sample_cubic(values, coordinates, padding, align_corners)
    return y.reshape(*x.shape[:2], *shape).astype(x.dtype)


def into_range(c: Array, size: int, padding: str, align_corners: bool) -> Array:
    """Coordinates outside an axis, moved to its border or reflected there; for zeros, no further than these begin."""
    if padding == "zeros":
        return jnp.clip(c, -2.0, size + 1.0)
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return jnp.zeros_like(c)
        c = jnp.remainder(c - low, 2 * span)
        c = jnp.where(c > span, 2 * span - c, c) + low
    return jnp.clip(c, 0, size - 1)


def sample_cubic(x: Array, coordinates: Sequence[Array], padding: str, align_corners: bool) -> Array:
    """As `sample_linear`, but by cubic interpolation between four elements along each axis."""
    lows = [jnp.floor(c) for c in coordinates]
    weights = [
        cubic_filter((c - low)[..., None] - jnp.arange(-1, 3, dtype=c.dtype), -0.75)
        for c, low in zip(coordinates, lows, strict=True)
    ]
    total: Any = None
    for picks in itertools.product(range(4), repeat=len(lows)):
        places = [
            jnp.round(into_range(low + (pick - 1), size, padding, align_corners)).astype(jnp.int32)
            for low, pick, size in zip(lows, picks, x.shape[2:], strict=True)
        ]
        weight = jnp.ones_like(lows[0])
        for each, pick in zip(weights, picks, strict=True):
            weight = weight * each[..., pick]
        part = gather_or_zero(x, places) * weight.astype(x.dtype)[:, None]
        total = part if total is None else total + part
    result: Array = total
    return result


def affine_grid(theta: Array, shape: Sequence[int], align_corners: bool = False) -> Array:
    """The grid at which `grid_sample` reads an image of the given shape (N, C, spatial axes) transformed by `theta`."""
    spatial = tuple(shape[2:])
    steps = np.indices(spatial).reshape(len(spatial), -1)[::-1]
    sizes = np.array(spatial[::-1])[:, None]
    if align_corners:
        places = np.where(sizes > 1, 2 * steps / np.maximum(sizes - 1, 1) - 1, 0)
    else:
        places = (2 * steps + 1) / sizes - 1
    points = np.concatenate([places, np.ones((1, places.shape[1]))]).astype(theta.dtype)
    return (theta @ points).swapaxes(1, 2).reshape(theta.shape[0], *spatial, len(spatial))


def roi_align(
    x: Array,
    rois: Array,
    batch: Array,
    cells: Sequence[int],
    scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    half_pixel: bool = True,
) -> Array:
    """Pool regions (x1, y1, x2, y2), each of the image numbered in `batch`, from samples between the elements.

    Each cell of the result has `sampling_ratio` samples along both axes, or about one per element if that is 0.
    With mode "max" a cell is the largest of its weighted elements.
    """
    kind = jnp.promote_types(x.dtype, jnp.float32)
    rois = rois.astype(kind) * scale - (0.5 if half_pixel else 0.0)
    spans = rois[:, 2:] - rois[:, :2]
    spans = spans if half_pixel else jnp.maximum(spans, 1)
    steps = [spans[:, 1] / cells[0], spans[:, 0] / cells[1]]
    counts = [jnp.full_like(s, sampling_ratio) if sampling_ratio > 0 else jnp.ceil(s) for s in steps]
    rows, columns = (sampling_ratio,) * 2 if sampling_ratio > 0 else (most_samples(c) for c in counts)
    images = batch.astype(jnp.int32)[:, None, None]
    wide = jnp.moveaxis(x, 1, -1).astype(kind)

    def sample(i: Any, total: Array) -> Array:
        down = roi_sample(rois[:, 1], steps[0], counts[0], cells[0], x.shape[2], i // columns)
        across = roi_sample(rois[:, 0], steps[1], counts[1], cells[1], x.shape[3], i % columns)
        used = (down[2][:, None, None] & across[2][:, None, None])[..., None]
        value: Any = None
        for a, b in itertools.product(range(2), repeat=2):
            weight = down[1][a][:, :, None] * across[1][b][:, None, :]
            part = wide[images, down[0][a][:, :, None], across[0][b][:, None, :]] * weight[..., None]
            value = part if value is None else jnp.maximum(value, part) if mode == "max" else value + part
        if mode == "max":
            return jnp.where(used, jnp.maximum(total, value), total)
        return jnp.where(used, total + value, total)

    first = -jnp.inf if mode == "max" else 0.0
    start = jnp.full((rois.shape[0], *cells, x.shape[1]), first, kind)
    y = lax.fori_loop(0, rows * columns, sample, start)
    if mode == "max":
        y = jnp.where(y == -jnp.inf, 0, y)
    else:
        y = y / jnp.maximum(counts[0] * counts[1], 1)[:, None, None, None]
    return jnp.moveaxis(y, -1, 1).astype(x.dtype)


def most_samples(counts: Array) -> Any:
    """The largest of some counts, one at least; as Python's number where it is known, so that gradients pass a loop."""
    most = jnp.max(counts, initial=1).astype(jnp.int32)
    return most if isinstance(most, jax.core.Tracer) else int(most)


def roi_sample(
    start: Array, step: Array, count: Array, cells: int, length: int, number: Any
) -> tuple[list[Array], list[Array], Array]:
    """One sample of each cell of regions along an axis: the two elements around it, their weights, and if it counts."""
    inside = (number + 0.5) / jnp.maximum(count, 1)
    at = start[:, None] + (np.arange(cells, dtype=start.dtype) + inside[:, None]) * step[:, None]
    beside = (at < -1) | (at > length)
    at = jnp.clip(at, 0, length - 1)
    low = jnp.floor(at)
    weights = [jnp.where(beside, 0, 1 - (at - low)), jnp.where(beside, 0, at - low)]
    first = low.astype(jnp.int32)
    return [first, jnp.minimum(first + 1, length - 1)], weights, number < count


def max_roi_pool(x: Array, rois: Array, cells: Sequence[int], scale: float = 1.0) -> Array:
    """The maxima of the cells of regions (image, x1, y1, x2, y2), whose corners are rounded to elements."""
    corners = rois[:, 1:].astype(jnp.promote_types(rois.dtype, jnp.float32)) * scale
    corners = (jnp.floor(jnp.abs(corners) + 0.5) * jnp.sign(corners)).astype(jnp.int32)
    rows = roi_cells(corners[:, 1], corners[:, 3], cells[0], x.shape[2])
    columns = roi_cells(corners[:, 0], corners[:, 2], cells[1], x.shape[3])

    def pooled(region: tuple[Array, Array, Array]) -> Array:
        image, down, across = region
        y = jnp.where(down[:, :, None], x[image][:, None], -jnp.inf).max(2)
        y = jnp.where(across, y[:, :, None], -jnp.inf).max(3)
        return jnp.where(down.any(1)[:, None] & across.any(1), y, 0).astype(x.dtype)

    return lax.map(pooled, (rois[:, 0].astype(jnp.int32), rows, columns))


def roi_cells(first: Array, last: Array, cells: int, length: int) -> Array:
    """Which elements of an axis each cell of each region covers: (regions, cells, length). In whole numbers."""
    span = jnp.maximum(last - first + 1, 1)[:, None]
    cell = np.arange(cells, dtype=np.int32)
    begin = first[:, None] + cell * span // cells
    end = first[:, None] - (-(cell + 1) * span // cells)
    place = np.arange(length)
    return (place >= begin[..., None]) & (place < end[..., None])


def non_max_suppression(
    boxes: Array,
    scores: Array,
    node: str,
    max_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    center_point_box: bool = False,
) -> Array:
    """The boxes (batch, class, box) that overlap no better one of their class, best first.

    `boxes` is (batch, boxes, 4): two opposite corners (y, x), or the centre (x, y), width and height. `scores` is
    (batch, classes, boxes). At most `max_boxes` of each class are selected.
    """
    if scores.size == 0:
        return jnp.zeros((0, 3), int)
    kept = kept_boxes(boxes, scores, max_boxes, iou_threshold, score_threshold, center_point_box)
    return rows_of_boxes(kept, jnp.stack(np.nonzero(known(kept, node) >= 0), 1))


def first_boxes(
    boxes: Array,
    scores: Array,
    size: int,
    max_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    center_point_box: bool = False,
) -> tuple[Array, Array]:
    """`non_max_suppression` under `jax.jit`: the first `size`, rows of -1 where there are fewer; and how many."""
    if scores.size == 0:
        return jnp.full((size, 3), -1), jnp.asarray(0)
    kept = kept_boxes(boxes, scores, max_boxes, iou_threshold, score_threshold, center_point_box)
    places = jnp.stack(jnp.nonzero(kept >= 0, size=size, fill_value=-1), 1)
    return rows_of_boxes(kept, places), jnp.count_nonzero(kept >= 0)


def rows_of_boxes(kept: Array, places: Array) -> Array:
    """Batch, class and box at each of the `places` (batch, class, rank); -1 stays -1."""
    box = jnp.where(places[:, :1] < 0, -1, kept[tuple(places.T)][:, None])
    return jnp.concatenate([places[:, :2], box], 1)


def kept_boxes(
    boxes: Array,
    scores: Array,
    max_boxes: Any,
    iou_threshold: Any,
    score_threshold: Any,
    center_point_box: bool,
) -> Array:
    """For each sample and class the boxes that `non_max_suppression` selects, best first, and -1 after them."""
    if center_point_box:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = jnp.minimum(boxes[..., :2], boxes[..., 2:]), jnp.maximum(boxes[..., :2], boxes[..., 2:])
    most = jnp.clip(jnp.reshape(max_boxes, ()), 0, boxes.shape[1])
    iou_threshold = jnp.reshape(iou_threshold, ())
    usable = jnp.ones_like(scores, bool) if score_threshold is None else scores > score_threshold

    def best(low: Array, high: Array, scores: Array, usable: Array) -> Array:
        def step(state: Any) -> Any:
            count, free, kept = state
            found = jnp.argmax(jnp.where(free, scores, -jnp.inf))
            found = jnp.where(free[found], found, jnp.argmax(free))
            free = free & ~overlaps(low, high, found, iou_threshold) & (np.arange(free.size) != found)
            return count + 1, free, kept.at[count].set(found)

        start = 0, usable, jnp.full(usable.size, -1)
        return lax.while_loop(lambda state: (state[0] < most) & state[1].any(), step, start)[2]

    by_class = jax.vmap(best, (None, None, 0, 0))
    kept: Array = jax.vmap(by_class)(low, high, scores, usable)
    return kept


def overlaps(low: Array, high: Array, one: Array, threshold: float) -> Array:
    """For each box: whether its intersection with one of them, over their union, exceeds the threshold."""
    sides = jnp.maximum(jnp.minimum(high, high[one]) - jnp.maximum(low, low[one]), 0)
    shared = sides[:, 0] * sides[:, 1]
    whole = jnp.prod(high - low, -1) + jnp.prod(high[one] - low[one]) - shared
    return (shared > 0) & (whole > 0) & (shared / whole > threshold)
