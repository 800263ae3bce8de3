"""Resizing in all of ONNX's modes, with sizes known only when it runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import (
    DOUBLE,
    choose,
    float32,
    float_divide,
    greatest,
    is_number,
    least,
    size,
)

ROUNDED_UP = {"floor": 1.0, "ceil": 0.0, "round_prefer_ceil": 0.499998987, "round_prefer_floor": 0.500000954}
"""Beyond which part of the way to the next element that is the nearest."""


def resize(
    x: tf.Tensor,
    size: Any = None,
    scales: Any = None,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    policy: str = "stretch",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Any = None,
    outside: float = 0.0,
) -> tf.Tensor:
    """Resize the given axes (all, if None) to `size`, or by `scales`: lists of numbers, or tensors.

    `mode` is nearest, linear or cubic; `coordinates` says where the elements of the result lie in `x`; `rounding`
    which element is the nearest; `policy` whether the sizes may stretch the image or are bounds ("not_larger",
    "not_smaller"). `roi` lists the beginning of each axis, then the end of each, as parts of its length; what
    lies outside of `x` is `outside` then.
    """
    axes = [axis % x.shape.rank for axis in (range(x.shape.rank) if axes is None else axes)]
    count = len(axes)
    crops = coordinates == "tf_crop_and_resize"
    regions = [(0.0, 1.0)] * count
    if roi is not None:
        regions = [(_number(roi, i, float), _number(roi, count + i, float)) for i in range(count)]
    targets = resize_targets(x, axes, size, scales, policy)
    kind = x.dtype
    if mode != "nearest" and kind not in (tf.float32, tf.float64):
        x = tf.cast(x, tf.int64 if antialias and kind in (tf.uint8, tf.int8) else tf.float32)
    whole = mode == "linear" and not antialias and not kind.is_floating
    blank = None
    corners: list[tuple[int, tf.Tensor, tf.Tensor]] = []
    for axis, (target, scale), region in reversed(list(zip(axes, targets, regions, strict=True))):
        length = _size(x, axis)
        fixed = is_number(target, length, scale) and target == length and scale == 1
        if fixed and not (crops and not (is_number(*region) and region == (0.0, 1.0))) and not whole:
            continue
        places = resize_places(target, length, scale, coordinates, region)
        limit = tf.cast(length, tf.int64) - 1
        if crops:
            beyond = _along((places < 0) | (places > tf.cast(limit, tf.float32)), axis, x.shape.rank)
            blank = beyond if blank is None else blank | beyond
        if mode == "nearest":
            index = tf.clip_by_value(nearest_index(places, rounding), 0, limit)
            x = tf.gather(x, index, axis=axis)
        elif antialias:
            taps, weights = antialias_taps(places, limit, scale, mode, cubic, exclude_outside)
            if x.dtype == tf.int64:
                x = weigh_bytes(x, axis, taps, weights, kind)
            else:
                x = weigh(x, axis, taps, weights)
                x = x if kind.is_floating else tf.floor(tf.abs(x) + 0.5) * tf.sign(x)
        elif whole:
            corners.append((axis, *linear_taps(places, limit)))
        elif mode == "linear":
            x = weigh(x, axis, *linear_taps(places, limit))
        else:
            x = weigh(x, axis, *cubic_taps(places, limit, cubic, exclude_outside))
    if corners:
        x = weigh_corners(x, corners)
    if blank is not None:
        x = tf.where(blank, tf.cast(outside, x.dtype), x)
    return tf.cast(x, kind)


def _size(x: tf.Tensor, axis: int) -> Any:
    return size(x, axis)


def _number(items: Any, i: int, convert: Any) -> Any:
    """One of a list of numbers, or of the elements of a tensor."""
    item = items[i]
    if is_number(item):
        return convert(item)
    return tf.cast(item, DOUBLE if convert is float else tf.int64)


def resize_targets(x: tf.Tensor, axes: Sequence[int], size: Any, scales: Any, policy: str) -> list[tuple[Any, Any]]:
    """The new length of each axis and the scale that leads to it."""
    lengths = [_size(x, axis) for axis in axes]
    if scales is not None:
        found = []
        for i, n in enumerate(lengths):
            scale = _number(scales, i, float)
            if is_number(scale) and scale == int(scale):
                found.append((n * int(scale), scale))
                continue
            scale = float32(scale)
            product = float32(_double(n) * scale)
            found.append((int(product // 1) if is_number(product) else tf.cast(tf.floor(product), tf.int64), scale))
        return found
    wanted = [_number(size, i, int) for i in range(len(lengths))]
    if any(is_number(t, n) and t and not n for t, n in zip(wanted, lengths, strict=True)):
        raise ValueError(f"axes of the lengths {lengths} cannot be resized to {wanted}")
    ratios = [choose(t == n, 1.0, float32(float_divide(t, n))) for t, n in zip(wanted, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(wanted, ratios, strict=True))
    scale = least(*ratios) if policy == "not_larger" else greatest(*ratios)
    rounded = [scale * _double(n) + 0.5 for n in lengths]
    return [(int(r // 1) if is_number(r) else tf.cast(tf.floor(r), tf.int64), scale) for r in rounded]


def _double(number: Any) -> Any:
    return float(number) if is_number(number) else tf.cast(number, DOUBLE)


def resize_places(target: Any, length: Any, scale: Any, coordinates: str, region: tuple[Any, Any]) -> tf.Tensor:
    """Where each element of a resized axis lies in the axis before, rounded as in single precision."""
    steps = tf.cast(tf.range(tf.cast(target, tf.int64)), DOUBLE)
    new, old, scale = (tf.cast(n, DOUBLE) for n in (target, length, scale))
    if coordinates == "asymmetric":
        found = steps / scale
    elif coordinates == "align_corners":
        resized = tf.where(tf.abs(old * scale - new) < 1e-6 * new, new, old * scale)
        found = tf.where(
            tf.equal(resized, 1), steps * 0, steps * (old - 1) / tf.where(tf.equal(resized, 1), old, resized - 1)
        )
    elif coordinates == "tf_crop_and_resize":
        begin, end = (tf.cast(n, DOUBLE) for n in region)
        apart = steps * (end - begin) * (old - 1) / tf.maximum(new - 1, 1)
        found = tf.where(new <= 1, steps * 0 + 0.5 * (begin + end) * (old - 1), begin * (old - 1) + apart)
    elif coordinates == "half_pixel_symmetric":
        adjustment = tf.cast(tf.cast(new / tf.cast(tf.cast(old * scale, tf.float32), DOUBLE), tf.float32), DOUBLE)
        found = old / 2 * (1 - adjustment) + (steps + 0.5) / scale - 0.5
    else:
        found = tf.cast(tf.cast((steps + 0.5) / scale, tf.float32) - 0.5, DOUBLE)
        if coordinates == "pytorch_half_pixel":
            found = tf.where(new <= 1, steps * 0, found)
    return tf.cast(found, tf.float32)


def nearest_index(places: tf.Tensor, rounding: str) -> tf.Tensor:
    """The whole numbers nearest to `places`; what is a millionth from the middle counts as the middle."""
    low = tf.floor(places)
    return tf.cast(low, tf.int64) + tf.cast(places - low > ROUNDED_UP[rounding], tf.int64)


def linear_taps(places: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The two elements between which each place lies, up to the last one, and their weights."""
    end = tf.cast(limit, tf.float32)
    places = tf.clip_by_value(places, 0.0, end)
    low = tf.floor(places)
    part = tf.where(tf.equal(low, end), 0.5, places - low)
    taps = tf.minimum(tf.cast(tf.stack([low, low + 1], 1), tf.int64), limit)
    return taps, tf.stack([1 - part, part], 1)


def cubic_taps(places: tf.Tensor, limit: tf.Tensor, a: float, exclude_outside: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """The four elements around each place, and their weights."""
    low = tf.floor(places)
    steps = tf.range(-1, 3, dtype=tf.int64)
    taps = tf.cast(low, tf.int64)[:, None] + steps
    weights = cubic_filter((places - low)[:, None] - tf.cast(steps, tf.float32), a)
    return within(taps, weights, limit, exclude_outside)


def cubic_filter(distance: tf.Tensor, a: float) -> tf.Tensor:
    """The weight of an element at some distance, in Keys' family of cubic splines."""
    d = tf.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return tf.where(d <= 1, near, tf.where(d < 2, far, tf.zeros_like(d)))


def within(taps: tf.Tensor, weights: tf.Tensor, limit: tf.Tensor, exclude_outside: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Elements outside an axis are those at its ends, or have no weight."""
    if exclude_outside:
        weights = tf.where((taps >= 0) & (taps <= limit), weights, tf.zeros_like(weights))
        weights = weights / tf.reduce_sum(weights, 1, keepdims=True)
    return tf.clip_by_value(taps, 0, limit), weights


def antialias_taps(
    places: tf.Tensor, limit: tf.Tensor, scale: Any, mode: str, a: float, exclude_outside: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """The elements that shrink into each place, and their weights."""
    reach = (1.0 if mode == "linear" else 2.0) * greatest(choose(scale > 0, float_divide(1, scale), 1.0), 1.0)
    count = tf.cast(2 * tf.math.ceil(tf.cast(reach, DOUBLE)) + 2, tf.int64)
    centre = places + 0.5
    wide = tf.cast(reach, tf.float32)
    first = tf.floor(centre - wide + 0.5)
    last = tf.floor(centre + wide + 0.5)
    taps = first[:, None] + tf.cast(tf.range(count), tf.float32)
    distance = (taps - centre[:, None] + 0.5) * tf.cast(least(scale, 1.0), tf.float32)
    weights = tf.maximum(1 - tf.abs(distance), 0) if mode == "linear" else cubic_filter(distance, a)
    weights = tf.where(taps < last[:, None], weights, tf.zeros_like(weights))
    taps, weights = within(tf.cast(taps, tf.int64), weights, limit, exclude_outside)
    return taps, weights / tf.reduce_sum(weights, 1, keepdims=True)


def _along(row: tf.Tensor, axis: int, rank: int) -> tf.Tensor:
    """A row of numbers laid along an axis."""
    return tf.reshape(row, [-1, *[1] * (rank - 1 - axis)])


def weigh(x: tf.Tensor, axis: int, taps: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """The weighted sums of the elements numbered in each row of `taps`."""
    rank = x.shape.rank
    parts = tf.gather(x, taps, axis=axis)
    shape = [-1, _size(weights, 1), *[1] * (rank - 1 - axis)]
    return tf.reduce_sum(parts * tf.reshape(tf.cast(weights, x.dtype), shape), axis + 1)


def weigh_corners(x: tf.Tensor, corners: Sequence[tuple[int, tf.Tensor, tf.Tensor]]) -> tf.Tensor:
    """`weigh` along several axes in one sum, so that whole numbers are rounded once."""
    total = None
    for picks in itertools.product(range(2), repeat=len(corners)):
        part, weight = x, tf.ones([], tf.float32)
        for pick, (axis, taps, weights) in zip(reversed(picks), corners, strict=True):
            part = tf.gather(part, taps[:, pick], axis=axis)
            weight = weight * _along(weights[:, pick], axis, x.shape.rank)
        part = weight * part
        total = part if total is None else total + part
    return total


def weigh_bytes(x: tf.Tensor, axis: int, taps: tf.Tensor, weights: tf.Tensor, kind: tf.DType) -> tf.Tensor:
    """`weigh` in whole numbers, rounded to the range of `kind`."""
    fixed = tf.cast(tf.round(tf.cast(weights, DOUBLE) * 2**22), tf.int64)
    total = tf.bitwise.right_shift(weigh(x, axis, taps, fixed) + 2**21, tf.constant(22, tf.int64))
    return tf.clip_by_value(total, kind.min, kind.max)
