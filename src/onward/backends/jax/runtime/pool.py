"""Pools with dilations, uneven padding, or sizes known only when they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.norm import single
from onward.backends.jax.runtime.reduce import norm_of_sum
from onward.backends.shared.runtime.window import pool_pads, pool_same_pads


def lowest(dtype: Any) -> Any:
    """The value that no maximum prefers."""
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def slide(
    x: Array,
    initial: Any,
    function: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    amounts: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    channels_last: bool = False,
) -> Array:
    """`lax.reduce_window` over the spatial axes."""

    def full(inner: Sequence[Any], other: Any = 1) -> tuple[Any, ...]:
        return (other, *inner, other) if channels_last else (other, other, *inner)

    start, padding = np.asarray(initial, x.dtype), full(amounts, (0, 0))
    y: Array = lax.reduce_window(
        x, start, function, full(kernel), full(stride), padding, window_dilation=full(dilation)
    )
    return y


def image_sizes(x: Array, channels_last: bool) -> tuple[int, ...]:
    """The sizes of the spatial axes."""
    sizes: tuple[int, ...] = x.shape[1:-1] if channels_last else x.shape[2:]
    return sizes


def max_pool_nd(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    channels_last: bool = False,
) -> Array:
    """The maximum of each window; `stride` is 1 where not given. See `pool_pads` for `pads`."""
    stride, dilation = stride or (1,) * len(kernel), dilation or (1,) * len(kernel)
    amounts = pool_pads(image_sizes(x, channels_last), kernel, stride, dilation, pads, ceil_mode)
    return slide(x, lowest(x.dtype), lax.max, kernel, stride, amounts, dilation, channels_last)


def max_pool_indices(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    column_major: bool = False,
) -> tuple[Array, Array]:
    """The maximum of each window and where it stands in the flattened `x`.

    With `column_major`, the spatial axes are counted from the first instead of from the last.
    """
    rank, sizes = len(kernel), x.shape[2:]
    stride, dilation = stride or (1,) * rank, dilation or (1,) * rank
    amounts = pool_pads(sizes, kernel, stride, dilation, pads, ceil_mode)
    plane = math.prod(sizes)
    places = np.arange(plane).reshape(sizes[::-1] if column_major else sizes)
    places = (places.T if column_major else places)[None, None]
    values, fill = lax.pad(x, jnp.asarray(lowest(x.dtype), x.dtype), edges(amounts)), ((0, 0), (0, 0))
    inside: Any = np.pad(places, (*fill, *((max(b, 0), max(e, 0)) for b, e in amounts)), constant_values=-1)
    cut = (slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(inside.shape[2:], amounts, strict=True))
    found: Any = inside[(..., *cut)]
    for i in reversed(range(rank)):  # so that of equal elements the first one is found
        window = i + 2, kernel[i], stride[i], dilation[i]
        parts, numbers = taps(values, *window), taps(found, *window)
        values, found = parts[0], numbers[0]
        for part, number in zip(parts[1:], numbers[1:], strict=True):
            better = (part > values) | (found < 0) | ((part != part) & (values == values))
            values, found = jnp.where(better, part, values), jnp.where(better, number, found)
    images = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * rank) * plane
    return values, found + images


def edges(amounts: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What `lax.pad` takes for images whose spatial axes are padded."""
    return [(0, 0, 0), (0, 0, 0), *((begin, end, 0) for begin, end in amounts)]


def taps(x: Any, axis: int, k: int, s: int, d: int) -> list[Any]:
    """For each of `k` places in a window along an axis, the elements that stand there in all windows."""
    steps = (x.shape[axis] - (k - 1) * d - 1) // s + 1
    before = (slice(None),) * axis
    return [x[(*before, slice(i * d, i * d + (steps - 1) * s + 1, s))] for i in range(k)]


def avg_pool_nd(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    channels_last: bool = False,
) -> Array:
    """The mean of each window: of its elements in `x`, or with `count_include_pad` also of the padding's zeros.

    What overhangs the padding never counts. Half precision is summed in single precision.
    """
    rank = len(kernel)
    stride, dilation = stride or (1,) * rank, dilation or (1,) * rank
    sizes = image_sizes(x, channels_last)
    amounts = pool_pads(sizes, kernel, stride, dilation, pads, ceil_mode)
    wide = single(x)
    total = slide(wide, 0, lax.add, kernel, stride, amounts, dilation, channels_last)
    steps = image_sizes(total, channels_last)
    counts: Any = np.ones((), wide.dtype)
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        begin, size = amounts[i][0], sizes[i]
        low, high = 0, size
        if count_include_pad and isinstance(pads, str):
            low, high = -begin, size + pool_same_pads(size, k, s, pads == "same_lower")[1]
        elif count_include_pad:
            low, high = -begin, size + (int(pads[i + rank]) if pads else 0)
        places = (np.arange(steps[i]) * s - begin)[:, None] + np.arange(k) * d
        count = ((places >= low) & (places < high)).sum(-1).astype(wide.dtype)
        counts = counts * count.reshape(-1, *[1] * (rank - 1 - i + channels_last))
    return (total / counts).astype(x.dtype)


def lp_pool_nd(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    p: int = 2,
) -> Array:
    """The p-norm of each window. That of zeros, at which the root itself is infinitely steep, has gradients of zero."""
    stride, dilation = stride or (1,) * len(kernel), dilation or (1,) * len(kernel)
    amounts = pool_pads(x.shape[2:], kernel, stride, dilation, pads, ceil_mode)
    powers = jnp.abs(single(x)) ** p
    return norm_of_sum(slide(powers, 0, lax.add, kernel, stride, amounts, dilation), p).astype(x.dtype)


def global_lp_pool(x: Array, p: int = 2) -> Array:
    """The p-norm of each channel."""
    powers = jnp.abs(single(x)) ** p
    return norm_of_sum(powers.sum(tuple(range(2, x.ndim)), keepdims=True), p).astype(x.dtype)


def max_unpool_nd(
    x: Array,
    indices: Array,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Array:
    """Zeros, with each element of `x` at its place in the flattened input of the pool that made it.

    Places are counted in the smallest input that such a pool can have had; `output_shape` may ask for a larger one.
    """
    rank = len(kernel)
    stride = stride or (1,) * rank
    begin, end = (pads[:rank], pads[rank:]) if pads else ((0,) * rank, (0,) * rank)
    sizes = [(n - 1) * s - b - e + k for n, s, b, e, k in zip(x.shape[2:], stride, begin, end, kernel, strict=True)]
    shape = (*x.shape[:2], *sizes)
    flat = jnp.zeros(math.prod(shape), x.dtype).at[indices.reshape(-1)].set(x.reshape(-1))
    y = flat.reshape(shape)
    if output_shape is None:
        return y
    amounts = [(0, wanted - size) for wanted, size in zip(output_shape[2:], sizes, strict=True)]
    return lax.pad(y, jnp.zeros((), x.dtype), edges(amounts))
