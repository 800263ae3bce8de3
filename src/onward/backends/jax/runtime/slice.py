"""Parts of tensors and borders around them, in the cases that JAX's own indexing and `jnp.pad` do not know."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.shared.runtime.slice import clamped_sides


def slice_tensor(
    x: Any,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Any:
    """x[start:end:step] along each of the axes; steps may be negative."""
    index = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[axis] = slice_bounds(x.shape[axis], start, end, step)
    return x[tuple(index)]


def slice_bounds(size: int, start: int, end: int, step: int) -> slice:
    """Where a slice of an axis begins and ends: within the axis, and before the first element if backwards."""
    last = size - 1 if step < 0 else size
    first = min(max(start + size if start < 0 else start, 0), last)
    stop = min(max(end + size if end < 0 else end, -1 if step < 0 else 0), last)
    return slice(first, None if stop < 0 else stop, step) if size else slice(0, 0)


def pad(x: Any, widths: Sequence[int], mode: str = "constant", value: Any = None, axes: Any = None) -> Any:
    """Add to the begin and the end of each axis, or cut from it where negative. `widths`: all begins, then all ends."""
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    sides = {axis: clamped_sides(x.shape[axis], widths[i], widths[i + len(axes)]) for i, axis in enumerate(axes)}
    if mode == "constant":
        return pad_constant(x, [sides.get(axis, (0, 0)) for axis in range(x.ndim)], value)
    for axis, (before, after) in sides.items():
        if before or after:
            x = x.take(border_index(x.shape[axis], before, after, mode), axis)
    return x


def pad_constant(x: Any, sides: Sequence[tuple[int, int]], value: Any = None) -> Any:
    """Add a value to the begin and the end of each axis, or cut from it where negative."""
    if isinstance(x, np.ndarray):
        kept = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, sides, strict=True))]
        return np.pad(kept, [(max(a, 0), max(b, 0)) for a, b in sides], constant_values="" if value is None else value)
    value = 0 if value is None else value
    inner, last = sides, (0, 0)
    if x.ndim > 2:
        inner, last = [*sides[:-1], (min(sides[-1][0], 0), min(sides[-1][1], 0))], sides[-1]
    x = lax.pad(x, jnp.asarray(value, x.dtype), [(a, b, 0) for a, b in inner])
    return pad_last(x, [*[(0, 0)] * (x.ndim - 1), (max(last[0], 0), max(last[1], 0))], value) if max(last) > 0 else x


def pad_last(x: Array, sides: Sequence[tuple[int, int]], constant_values: Any = 0) -> Array:
    """`jnp.pad` that extends the last axis, by a concatenation.

    The CPU compiler of jaxlib 0.10 computes a sum, mean or maximum wrongly, or crashes, where it fuses it with such a
    padding and with a convolution of the same tensor. It must not see that what is added is one number.
    """
    x = jnp.pad(x, [*sides[:-1], (0, 0)], constant_values=constant_values)
    added = [jnp.full((*x.shape[:-1], n), constant_values, x.dtype) for n in sides[-1]]
    before, after = ([lax.optimization_barrier(part)] if part.size else [] for part in added)
    return jnp.concatenate((*before, x, *after), -1)


def border_index(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """Which element of an axis each element of the padded axis is."""
    first = max(-before, 0)
    size = size - max(-after, 0) - first
    place = np.arange(-max(before, 0), size + max(after, 0))
    if size == 0 and len(place):
        raise ValueError(f"an axis without elements cannot be padded in mode {mode!r}")
    if mode == "edge":
        place = place.clip(0, size - 1)
    elif mode == "wrap":
        place = place % size
    else:
        place = size - 1 - abs(place % max(2 * size - 2, 1) - (size - 1))
    return place + first


def center_crop_pad(x: Array, shape: Sequence[int], axes: Sequence[int] | None = None) -> Array:
    """Cut or pad with zeros on both sides, so that the axes get the given sizes."""
    sides = [(0, 0)] * x.ndim
    for axis, size in zip(range(len(shape)) if axes is None else axes, shape, strict=True):
        missing = size - x.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        sides[axis] = before, missing - before
    padded: Array = pad_constant(x, sides)
    return padded
