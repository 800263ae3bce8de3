"""Reading an image between its elements. Images are channels last."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.control_flow import loop
from onward.backends.tensorflow.runtime.host import dims_of, greatest, least, packed, size
from onward.backends.tensorflow.runtime.resize import cubic_filter


def sample_linear(x: tf.Tensor, coordinates: Sequence[tf.Tensor]) -> tf.Tensor:
    """The values of `x` (batch, axes …, channels) at fractional places, by linear interpolation; zero outside.

    `coordinates` has a tensor (batch, places) for each axis; the result is (batch, places, channels).
    """
    lows = [tf.floor(c) for c in coordinates]
    total = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        places = [tf.cast(low, tf.int64) + up for low, up in zip(lows, corner, strict=True)]
        weight = tf.ones_like(coordinates[0])
        for c, low, up in zip(coordinates, lows, corner, strict=True):
            weight = weight * (c - low if up else 1 - (c - low))
        part = gather_or_zero(x, places) * tf.cast(weight, x.dtype)[..., None]
        total = part if total is None else total + part
    return total


def gather_or_zero(x: tf.Tensor, places: Sequence[tf.Tensor]) -> tf.Tensor:
    """The elements of `x` (batch, axes …, channels) at whole places, zero outside; see `sample_linear`."""
    inside, index = tf.ones_like(places[0], tf.bool), tf.zeros_like(places[0])
    for axis, place in enumerate(places, 1):
        length = tf.cast(size(x, axis), tf.int64)
        inside = inside & (place >= 0) & (place < length)
        index = index * length + tf.clip_by_value(place, 0, length - 1)
    channels = size(x, -1)
    flat = tf.reshape(x, [size(x, 0), tf.reduce_prod(dims_of(x)[1:-1]), channels])
    values = tf.gather(flat, index, axis=1, batch_dims=1)
    return tf.where(inside[..., None], values, tf.zeros([], x.dtype))


def grid_sample(
    x: tf.Tensor, grid: tf.Tensor, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> tf.Tensor:
    """The values of an image over any number of axes at the places of a grid, which span -1 to 1 along each axis.

    `mode` is nearest, linear or cubic; `padding` is zeros, border or reflection.
    """
    rank = x.shape.rank - 2
    kind = tf.float64 if tf.float64 in (x.dtype, grid.dtype) else tf.float32
    sizes = [tf.cast(size(x, axis), kind) for axis in range(1, rank + 1)]
    coordinates = []
    for axis, n in enumerate(sizes):
        c = tf.cast(tf.reshape(grid[..., rank - 1 - axis], [size(grid, 0), -1]), kind)
        coordinates.append((c + 1) / 2 * (n - 1) if align_corners else ((c + 1) * n - 1) / 2)
    values = x if mode == "nearest" or x.dtype.is_complex else tf.cast(x, kind)
    if mode == "cubic":
        y = sample_cubic(values, coordinates, padding, align_corners)
    else:
        moved = [into_range(c, n, padding, align_corners) for c, n in zip(coordinates, sizes, strict=True)]
        if mode == "nearest":
            y = gather_or_zero(values, [tf.cast(tf.round(c), tf.int64) for c in moved])
        else:
            y = sample_linear(values, moved)
    shape = tf.concat([dims_of(grid)[:-1], packed([size(x, -1)], tf.int64)], 0)
    return tf.cast(tf.reshape(y, shape), x.dtype)


def into_range(c: tf.Tensor, length: tf.Tensor, padding: str, align_corners: bool) -> tf.Tensor:
    """Coordinates outside an axis, moved to its border or reflected there; for zeros, no further than these begin."""
    if padding == "zeros":
        return tf.clip_by_value(c, tf.constant(-2.0, c.dtype), length + 1)
    if padding == "reflection":
        low = tf.constant(0.0 if align_corners else -0.5, c.dtype)
        span = tf.maximum(length - 1, 1) if align_corners else length
        c = tf.math.floormod(c - low, 2 * span)
        c = tf.where(c > span, 2 * span - c, c) + low
    return tf.clip_by_value(c, 0, length - 1)


def sample_cubic(x: tf.Tensor, coordinates: Sequence[tf.Tensor], padding: str, align_corners: bool) -> tf.Tensor:
    """As `sample_linear`, but by cubic interpolation between four elements along each axis."""
    lows = [tf.floor(c) for c in coordinates]
    weights = [
        cubic_filter((c - low)[..., None] - tf.cast(tf.range(-1, 3), c.dtype), -0.75)
        for c, low in zip(coordinates, lows, strict=True)
    ]
    sizes = [tf.cast(size(x, axis), lows[0].dtype) for axis in range(1, len(lows) + 1)]
    total = None
    for taps in itertools.product(range(4), repeat=len(lows)):
        places = [
            tf.cast(tf.round(into_range(low + (tap - 1), n, padding, align_corners)), tf.int64)
            for low, tap, n in zip(lows, taps, sizes, strict=True)
        ]
        weight = tf.ones_like(lows[0])
        for each, tap in zip(weights, taps, strict=True):
            weight = weight * each[..., tap]
        part = gather_or_zero(x, places) * tf.cast(weight, x.dtype)[..., None]
        total = part if total is None else total + part
    return total


def affine_grid(theta: tf.Tensor, shape: Any, align_corners: bool = False) -> tf.Tensor:
    """The grid at which `grid_sample` reads an image of the given shape (N, C, spatial axes) transformed by `theta`."""
    spatial = packed(shape, tf.int64)[2:]
    lengths = tf.cast(tf.reverse(spatial, [0])[:, None], theta.dtype)
    steps = tf.unravel_index(tf.range(tf.reduce_prod(spatial)), spatial)
    steps = tf.cast(tf.reverse(steps, [0]), theta.dtype)
    if align_corners:
        places = tf.where(lengths > 1, 2 * steps / tf.maximum(lengths - 1, 1) - 1, tf.zeros_like(steps))
    else:
        places = (2 * steps + 1) / lengths - 1
    grid = tf.matmul(theta, tf.concat([places, tf.ones_like(places[:1])], 0))
    ends = dims_of(theta)[:2]
    return tf.reshape(tf.transpose(grid, [0, 2, 1]), tf.concat([ends[:1], spatial, ends[1:]], 0))


def roi_align(
    x: tf.Tensor,
    rois: tf.Tensor,
    batch: tf.Tensor,
    cells: Sequence[int],
    scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    half_pixel: bool = True,
) -> tf.Tensor:
    """Pool regions (x1, y1, x2, y2), each of the image numbered in `batch`, from samples between the elements.

    Each cell of the result has `sampling_ratio` samples along both axes, or about one per element if that is 0.
    With mode "max" a cell is the largest of its weighted elements.
    """
    kind = tf.float64 if x.dtype == tf.float64 else tf.float32
    rois = tf.cast(rois, kind) * scale - (0.5 if half_pixel else 0.0)
    spans = rois[:, 2:] - rois[:, :2]
    spans = spans if half_pixel else tf.maximum(spans, 1)
    lines, counts = [], []
    for axis, number in ((1, cells[0]), (0, cells[1])):
        step = spans[:, axis] / number
        count = tf.ones_like(step) * sampling_ratio if sampling_ratio > 0 else tf.math.ceil(step)
        lines.append(roi_samples(rois[:, axis], step, count, number, tf.cast(size(x, 2 - axis), tf.int64)))
        counts.append(count)
    (rows, row_weights, row_used), (columns, column_weights, column_used) = lines
    used = (row_used[:, :, None] & column_used[:, None, :])[..., None]
    height, width, channels = (size(x, axis) for axis in (1, 2, 3))
    flat = tf.cast(tf.reshape(x, [-1, channels]), kind)
    first = (tf.cast(batch, tf.int64) * height)[:, None]
    total = None
    for i, j in itertools.product(range(2), repeat=2):
        weight = row_weights[i][:, :, None] * column_weights[j][:, None, :]
        places = ((first + rows[i]) * width)[:, :, None] + columns[j][:, None, :]
        part = tf.gather(flat, places) * weight[..., None]
        total = part if total is None else tf.maximum(total, part) if mode == "max" else total + part
    samples = [size(rows[0], 1) // cells[0], size(columns[0], 1) // cells[1]]
    shape = [size(rois, 0), cells[0], samples[0], cells[1], samples[1], channels]
    if mode == "max":
        lowest = tf.constant(-float("inf"), kind)
        y = tf.reduce_max(tf.reshape(tf.where(used, total, lowest), shape), [2, 4])
        return tf.cast(tf.where(tf.equal(y, lowest), tf.zeros_like(y), y), x.dtype)
    y = tf.reduce_sum(tf.reshape(tf.where(used, total, tf.zeros_like(total)), shape), [2, 4])
    return tf.cast(y / tf.maximum(counts[0] * counts[1], 1)[:, None, None, None], x.dtype)


def roi_samples(
    start: tf.Tensor, step: tf.Tensor, count: tf.Tensor, cells: int, length: tf.Tensor
) -> tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
    """Samples of regions along one axis: the two elements around each, their weights, and which samples count.

    Each of the `cells` of a region, which are `step` long, has `count` samples; all have room for the largest count.
    """
    most = tf.maximum(tf.reduce_max(count), 1)
    sample = tf.range(most, dtype=start.dtype)
    inside = ((sample + 0.5) / tf.maximum(count, 1)[:, None])[:, None]
    at = (tf.range(cells, dtype=start.dtype)[:, None] + inside) * step[:, None, None]
    at = tf.reshape(start[:, None, None] + at, [size(start, 0), cells * tf.cast(most, tf.int64)])
    end = tf.cast(length, start.dtype)
    beside = (at < -1) | (at > end)
    at = tf.clip_by_value(at, 0, end - 1)
    low = tf.floor(at)
    weights = [tf.where(beside, tf.zeros_like(at), w) for w in (1 - (at - low), at - low)]
    first = tf.cast(low, tf.int64)
    return [first, tf.minimum(first + 1, length - 1)], weights, tf.tile(sample < count[:, None], [1, cells])


def max_roi_pool(x: tf.Tensor, rois: tf.Tensor, cells: Sequence[int], scale: float = 1.0) -> tf.Tensor:
    """The maxima of the cells of regions (image, x1, y1, x2, y2), whose corners are rounded to elements."""
    corners = tf.cast(rois[:, 1:], tf.float64) * scale
    corners = tf.floor(tf.abs(corners) + 0.5) * tf.sign(corners)
    rows = roi_cells(corners[:, 1], corners[:, 3], cells[0], size(x, 1))
    columns = roi_cells(corners[:, 0], corners[:, 2], cells[1], size(x, 2))
    lowest = tf.constant(x.dtype.min, x.dtype)

    def pooled(region: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        image, down, across = region
        y = tf.reduce_max(tf.where(down[:, :, None, None], x[image], lowest), 1)
        y = tf.reduce_max(tf.where(across[:, :, None], y[:, None], lowest), 2)
        filled = tf.reduce_any(down, 1)[:, None] & tf.reduce_any(across, 1)
        return tf.where(filled[..., None], y, tf.zeros_like(y))

    signature = tf.TensorSpec([*cells, x.shape[-1]], x.dtype)
    return tf.map_fn(pooled, (tf.cast(rois[:, 0], tf.int64), rows, columns), fn_output_signature=signature)


def roi_cells(first: tf.Tensor, last: tf.Tensor, cells: int, length: Any) -> tf.Tensor:
    """Which elements of an axis each cell of each region covers: (regions, cells, length)."""
    step = tf.maximum(last - first + 1, 1)[:, None] / cells
    cell = tf.range(cells, dtype=first.dtype)
    begin, end = first[:, None] + tf.floor(cell * step), first[:, None] + tf.math.ceil((cell + 1) * step)
    place = tf.cast(tf.range(length), first.dtype)
    return (place >= begin[..., None]) & (place < end[..., None])


def non_max_suppression(
    boxes: tf.Tensor,
    scores: tf.Tensor,
    max_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = -float("inf"),
    center_point_box: bool = False,
) -> tf.Tensor:
    """The boxes (batch, class, box) that overlap no better one of their class, best first.

    `boxes` is (batch, boxes, 4): two opposite corners (y, x), or the centre (x, y), width and height. `scores` is
    (batch, classes, boxes). At most `max_boxes` of each class are selected.
    """
    if center_point_box:
        half = boxes[..., 2:] / 2
        boxes = tf.concat([boxes[..., :2] - half, boxes[..., :2] + half], -1)
    classes, count = size(scores, 1), size(boxes, 1)
    most = tf.cast(greatest(least(max_boxes, count), 0), tf.int32)
    thresholds = [tf.cast(n, tf.float32) for n in (iou_threshold, score_threshold)]

    def best(row: tf.Tensor) -> tuple[bool, tf.Tensor]:
        image, label = row // classes, row % classes
        kept, count = tf.raw_ops.NonMaxSuppressionV4(
            boxes=tf.reshape(boxes[image], [-1, 4]),
            scores=tf.reshape(scores[image, label], [-1]),
            max_output_size=most,
            iou_threshold=thresholds[0],
            score_threshold=thresholds[1],
            pad_to_max_output_size=True,
        )
        return True, tf.where(tf.range(most) < count, kept, -1)

    blank = tf.fill([most], -1)
    (kept,) = loop(best, [], count=size(scores, 0) * size(scores, 1), rows=[blank])
    found = tf.cast(tf.where(kept >= 0), tf.int32)
    row, classes = found[:, 0], tf.cast(classes, tf.int32)
    return tf.cast(tf.stack([row // classes, row % classes, tf.gather_nd(kept, found)], 1), tf.int64)
