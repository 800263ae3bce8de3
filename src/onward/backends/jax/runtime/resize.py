"""Resizing in all of ONNX's modes: where the elements of the result lie is computed by numpy, beforehand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array


def resize(
    x: Array,
    size: Sequence[int] | None = None,
    scales: Sequence[float] | None = None,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    policy: str = "stretch",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] | None = None,
    outside: float = 0.0,
) -> Array:
    """Resize the given axes (all, if None) to `size`, or by `scales`.

    `mode` is nearest, linear or cubic; `coordinates` says where the elements of the result lie in `x`; `rounding`
    which element is the nearest; `policy` whether the sizes may stretch the image or are bounds ("not_larger",
    "not_smaller"). `roi` lists the beginning of each axis, then the end of each, as parts of its length; what
    lies outside of `x` is `outside` then.
    """
    axes = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    regions = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True)) if roi else [(0.0, 1.0)] * len(axes)
    crops = coordinates == "tf_crop_and_resize"
    targets = resize_targets([x.shape[a] for a in axes], size, scales, policy)
    kind = x.dtype
    if any(target == 0 for target, _ in targets):
        lengths = dict(zip(axes, (target for target, _ in targets), strict=True))
        return jnp.zeros([lengths.get(a, n) for a, n in enumerate(x.shape)], kind)
    if mode != "nearest" and kind not in (jnp.float32, jnp.float64):
        x = x.astype(jnp.float32)
    real = jnp.issubdtype(kind, jnp.floating)
    whole = mode == "linear" and not antialias and not real
    blank: Any = None
    corners: list[tuple[int, np.ndarray, np.ndarray]] = []
    for axis, (target, scale), region in reversed(list(zip(axes, targets, regions, strict=True))):
        length = x.shape[axis]
        plain = target == length and scale == 1 and not (crops and region != (0.0, 1.0))
        if plain and not (whole and axis >= x.ndim - 2):
            continue
        places = resize_places(target, length, scale, coordinates, region)
        if crops:
            beyond = ((places < 0) | (places > length - 1)).reshape(-1, *[1] * (x.ndim - 1 - axis))
            blank = beyond if blank is None else blank | beyond
        if mode == "nearest":
            x = jnp.take(x, np.clip(nearest_index(places, rounding), 0, length - 1), axis)
        elif antialias:
            numbers, weights = antialias_taps(places, length, scale, mode, cubic, exclude_outside)
            if kind in (jnp.uint8, jnp.int8):
                x = weigh_bytes(x, axis, numbers, weights, kind)
            else:
                x = weigh(x, axis, numbers, weights)
                x = x if real else jnp.floor(jnp.abs(x) + 0.5) * jnp.sign(x)
        elif whole:
            corners.append((axis, *linear_taps(places, length)))
        elif mode == "linear":
            x = weigh(x, axis, *linear_taps(places, length))
        else:
            x = weigh(x, axis, *cubic_taps(places, length, cubic, exclude_outside))
    if corners:
        x = weigh_corners(x, corners)
    if blank is not None:
        x = jnp.where(blank, jnp.asarray(outside, x.dtype), x)
    return x.astype(kind)


def resize_targets(
    lengths: Sequence[int], size: Sequence[int] | None, scales: Sequence[float] | None, policy: str
) -> list[tuple[int, float]]:
    """The new length of each axis and the scale that leads to it."""
    if scales is not None:
        return [
            (n * int(s), s) if s == int(s) else (math.floor(np.float32(n * np.float64(np.float32(s)))), single_float(s))
            for n, s in zip(lengths, scales, strict=True)
        ]
    assert size is not None
    if any(target and not n for target, n in zip(size, lengths, strict=True)):
        raise ValueError(f"axes of the lengths {list(lengths)} cannot be resized to {list(size)}")
    found = [single_float(target / n) if target != n else 1.0 for target, n in zip(size, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(size, found, strict=True))
    scale = min(found) if policy == "not_larger" else max(found)
    return [(math.floor(scale * n + 0.5), scale) for n in lengths]


def single_float(number: float) -> float:
    """A number rounded to single precision."""
    return float(np.float32(number))


def resize_places(
    target: int, length: int, scale: float, coordinates: str, region: tuple[float, float] = (0.0, 1.0)
) -> np.ndarray:
    """Where each element of a resized axis lies in the axis before, rounded as in single precision."""
    steps: np.ndarray = np.arange(target, dtype=np.float64)
    found: np.ndarray
    if coordinates == "asymmetric":
        found = steps / scale
    elif coordinates == "align_corners":
        resized = target if abs(length * scale - target) < 1e-6 * target else length * scale
        found = steps * (length - 1) / (resized - 1) if resized != 1 else steps * 0
    elif coordinates == "tf_crop_and_resize":
        begin, end = region
        if target <= 1:
            found = steps * 0 + 0.5 * (begin + end) * (length - 1)
        else:
            found = begin * (length - 1) + steps * (end - begin) * (length - 1) / (target - 1)
    elif coordinates == "pytorch_half_pixel" and target <= 1:
        found = steps * 0
    elif coordinates == "half_pixel_symmetric":
        adjustment = single_float(target / single_float(length * scale))
        found = length / 2 * (1 - adjustment) + (steps + 0.5) / scale - 0.5
    else:
        found = ((steps + 0.5) / scale).astype(np.float32) - np.float32(0.5)
    return found.astype(np.float32)


def nearest_index(places: np.ndarray, rounding: str) -> np.ndarray:
    """The whole numbers nearest to `places`; what is a millionth from the middle counts as the middle."""
    exact = places.astype(np.float64)
    if rounding == "floor":
        found = np.floor(exact)
    elif rounding == "ceil":
        found = np.ceil(exact)
    elif rounding == "round_prefer_ceil":
        found = np.floor(exact + 0.500001)
    else:
        found = np.ceil(exact - 0.500001)
    return found.astype(np.int64)


def linear_taps(places: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """The two elements between which each place lies, and their weights."""
    places = np.clip(places, 0, length - 1)
    low = np.floor(places)
    part = np.where(low == length - 1, np.float32(0.5), places - low)
    return np.minimum(np.stack([low, low + 1], 1).astype(np.int64), length - 1), np.stack([1 - part, part], 1)


def cubic_taps(places: np.ndarray, length: int, a: float, exclude_outside: bool) -> tuple[np.ndarray, np.ndarray]:
    """The four elements around each place, and their weights."""
    low = np.floor(places)
    steps = np.arange(-1, 3)
    weights = cubic_filter((places - low)[:, None] - steps.astype(np.float32), a)
    return within(low.astype(np.int64)[:, None] + steps, np.asarray(weights), length, exclude_outside)


def cubic_filter(distance: Any, a: float) -> Any:
    """The weight of an element at some distance, in Keys' family of cubic splines."""
    where = np.where if isinstance(distance, np.ndarray) else jnp.where
    d = abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return where(d <= 1, near, where(d < 2, far, 0 * d))


def within(
    numbers: np.ndarray, weights: np.ndarray, length: int, exclude_outside: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Elements outside an axis are those at its ends, or have no weight."""
    if exclude_outside:
        weights = np.where((numbers >= 0) & (numbers < length), weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(numbers, 0, length - 1), weights


def antialias_taps(
    places: np.ndarray, length: int, scale: float, mode: str, a: float, exclude_outside: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The elements that shrink into each place, and their weights."""
    one = np.float32
    reach = (1.0 if mode == "linear" else 2.0) * max(1 / scale, 1.0)
    centre = places + one(0.5)
    first = np.floor(centre - one(reach) + one(0.5))
    last = np.floor(centre + one(reach) + one(0.5))
    numbers = first[:, None] + np.arange(2 * math.ceil(reach) + 2, dtype=one)
    distance = (numbers - centre[:, None] + one(0.5)) * one(min(scale, 1.0))
    weights = np.maximum(1 - np.abs(distance), 0) if mode == "linear" else cubic_filter(distance, a)
    weights = np.where(numbers < last[:, None], weights, 0)
    found, weights = within(numbers.astype(np.int64), weights, length, exclude_outside)
    return found, weights / weights.sum(1, keepdims=True)


def weigh(x: Array, axis: int, numbers: np.ndarray, weights: np.ndarray) -> Array:
    """The weighted sums of the elements numbered in each row of `numbers`."""
    shape = [-1, *[1] * (x.ndim - 1 - axis)]
    total: Any = None
    for index, weight in zip(numbers.T, weights.astype(x.dtype).T, strict=True):
        part = jnp.take(x, index, axis) * weight.reshape(shape)
        total = part if total is None else total + part
    result: Array = total
    return result


def weigh_corners(x: Array, corners: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> Array:
    """`weigh` along several axes in one sum, so that whole numbers are rounded once."""
    total: Any = None
    for picks in itertools.product(range(2), repeat=len(corners)):
        part, weight = x, np.ones((), np.float32)
        for pick, (axis, numbers, weights) in zip(reversed(picks), corners, strict=True):
            part = jnp.take(part, numbers[:, pick], axis)
            weight = weight * weights[:, pick].reshape(-1, *[1] * (x.ndim - 1 - axis)).astype(np.float32)
        part = weight * part
        total = part if total is None else total + part
    result: Array = total
    return result


def weigh_bytes(x: Array, axis: int, numbers: np.ndarray, weights: np.ndarray, kind: Any) -> Array:
    """`weigh` in whole numbers, rounded to the range of `kind`."""
    fixed = np.round(weights.astype(np.float64) * 2**22).astype(np.int32)
    total = weigh(x.astype(jnp.int32), axis, numbers, fixed)
    limits = jnp.iinfo(kind)
    return jnp.clip((total + 2**21) >> 22, limits.min, limits.max).astype(jnp.float32)
