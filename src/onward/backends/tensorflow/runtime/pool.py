"""Pools with dilations, uneven padding, or sizes known only when they run. Images are channels last."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import choose, packed, size
from onward.backends.tensorflow.runtime.reduce import norm_of_sum
from onward.backends.tensorflow.runtime.window import pad_or_crop


def pool_same_pads(n: Any, kernel: int, stride: int, lower: bool = False) -> tuple[Any, Any]:
    """The padding with which a pool makes ceil(n / stride) steps; negative if its windows leave gaps."""
    total = (-(-n // stride) - 1) * stride + kernel - n
    twice = total + 1 if lower else total
    begin = choose(twice >= 0, twice // 2, -(-twice // 2))
    return begin, total - begin


def pool_pads(
    x: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int] | str | None = None,
    ceil_mode: bool = False,
) -> list[tuple[Any, Any]]:
    """The padding of each axis that its windows cover exactly; it is negative where they leave out the end.

    `pads` lists the amounts before each axis, then those after each, or is "same_upper" or "same_lower". With
    `ceil_mode` a last window may overhang the end, unless it would start in the padding there.
    """
    amounts = []
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        n = size(x, i + 1)
        if isinstance(pads, str):
            begin, end = pool_same_pads(n, k, s, pads == "same_lower")
        else:
            begin, end = (pads[i], pads[i + len(kernel)]) if pads else (0, 0)
        extent = (k - 1) * d + 1
        span = n + begin + end - extent
        steps = span // s + 1
        if ceil_mode:
            steps = choose(span % s > 0, choose(steps * s < n + begin, steps + 1, steps), steps)
        amounts.append((begin, (steps - 1) * s + extent - n - begin))
    return amounts


def lowest(dtype: tf.DType) -> Any:
    """The value that no maximum prefers."""
    return tf.constant(-float("inf"), dtype) if dtype.is_floating else tf.constant(dtype.min, dtype)


def taps(x: tf.Tensor, axis: int, k: int, s: int, d: int) -> list[tf.Tensor]:
    """For each of `k` places in a window along an axis, the elements that stand there in all windows."""
    steps = (size(x, axis) - (k - 1) * d - 1) // s + 1
    before = (slice(None),) * axis
    return [x[(*before, slice(i * d, i * d + (steps - 1) * s + 1, s))] for i in range(k)]


def surrounded(x: tf.Tensor, amounts: Sequence[tuple[Any, Any]], fill: Any = 0) -> tf.Tensor:
    """An image with padding around its spatial axes."""
    return pad_or_crop(x, [[0, 0], *(list(pair) for pair in amounts), [0, 0]], fill)


def max_pool_nd(
    x: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> tf.Tensor:
    """The maximum of each window; `stride` is 1 where not given. See `pool_pads` for `pads`."""
    stride, dilation = stride or [1] * len(kernel), dilation or [1] * len(kernel)
    amounts = pool_pads(x, kernel, stride, dilation, pads, ceil_mode)
    y = surrounded(x, amounts, lowest(x.dtype))
    for axis, window in enumerate(zip(kernel, stride, dilation, strict=True), 1):
        y = functools.reduce(tf.maximum, taps(y, axis, *window))
    return y


def max_pool_indices(
    x: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    column_major: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The maximum of each window and where it stands in the flattened image, were it channels first.

    With `column_major`, the spatial axes are counted from the first instead of from the last.
    """
    rank = len(kernel)
    stride, dilation = stride or [1] * rank, dilation or [1] * rank
    amounts = pool_pads(x, kernel, stride, dilation, pads, ceil_mode)
    y = surrounded(x, amounts, lowest(x.dtype))
    strides: list[Any] = [1] * rank
    for i in range(1, rank) if column_major else reversed(range(rank - 1)):
        strides[i] = strides[i - 1] * size(x, i) if column_major else strides[i + 1] * size(x, i + 2)
    plane = strides[-1] * size(x, rank) if column_major else strides[0] * size(x, 1)
    batch, channels = size(x, 0), size(x, rank + 1)
    planes = tf.reshape(tf.range(batch * channels, dtype=tf.int64), [batch, *[1] * rank, channels])
    index = planes * tf.cast(plane, tf.int64)
    for i in range(rank):
        places = tf.range(size(x, i + 1), dtype=tf.int64) * tf.cast(strides[i], tf.int64)
        index = index + tf.reshape(places, [1] * (i + 1) + [-1] + [1] * (rank - i))
    index = surrounded(index, amounts, tf.constant(-1, tf.int64))
    for i in reversed(range(rank)):  # so that of equal elements the first one is found
        window = kernel[i], stride[i], dilation[i]
        parts, found = taps(y, i + 1, *window), taps(index, i + 1, *window)
        y, index = parts[0], found[0]
        for part, place in zip(parts[1:], found[1:], strict=True):
            better = (part > y) | (index < 0) | ((part != part) & (y == y))  # than less, than padding; NaN than all
            y, index = tf.where(better, part, y), tf.where(better, place, index)
    return y, index


def sum_pool(x: tf.Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tf.Tensor:
    """The sum of each window."""
    for axis, window in enumerate(zip(kernel, stride, dilation, strict=True), 1):
        x = tf.add_n(taps(x, axis, *window))
    return x


def avg_pool_nd(
    x: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> tf.Tensor:
    """The mean of each window: of its elements in `x`, or with `count_include_pad` also of the padding's zeros.

    What overhangs the padding never counts.
    """
    rank = len(kernel)
    stride, dilation = stride or [1] * rank, dilation or [1] * rank
    amounts = pool_pads(x, kernel, stride, dilation, pads, ceil_mode)
    total = sum_pool(surrounded(x, amounts), kernel, stride, dilation)
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        begin, n = amounts[i][0], size(x, i + 1)
        low, high = 0, n
        if count_include_pad and isinstance(pads, str):
            low, high = -begin, n + pool_same_pads(n, k, s, pads == "same_lower")[1]
        elif count_include_pad:
            low, high = -begin, n + (pads[i + rank] if pads else 0)
        starts = tf.range(size(total, i + 1), dtype=tf.int64) * s - tf.cast(begin, tf.int64)
        places = starts[:, None] + tf.range(k, dtype=tf.int64) * d
        inside = (places >= tf.cast(low, tf.int64)) & (places < tf.cast(high, tf.int64))
        count = tf.reduce_sum(tf.cast(inside, x.dtype), -1)
        total = total / tf.reshape(count, [-1] + [1] * (rank - i))
    return total


def lp_pool_nd(
    x: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    p: int = 2,
) -> tf.Tensor:
    """The p-norm of each window."""
    stride, dilation = stride or [1] * len(kernel), dilation or [1] * len(kernel)
    amounts = pool_pads(x, kernel, stride, dilation, pads, ceil_mode)
    return norm_of_sum(sum_pool(surrounded(tf.abs(x) ** p, amounts), kernel, stride, dilation), p)


def lp_norm(x: tf.Tensor, axes: Sequence[int], p: int) -> tf.Tensor:
    """The p-norm over some axes, which stay with size 1."""
    return norm_of_sum(tf.reduce_sum(tf.abs(x) ** p, axes, keepdims=True), p)


def max_unpool_nd(
    x: tf.Tensor,
    indices: tf.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_shape: Any = None,
) -> tf.Tensor:
    """Zeros, with each element of `x` at its place in the flattened input, channels first, of the pool that made it.

    Places are counted in the smallest input that such a pool can have had; `output_shape` may ask for a larger one.
    """
    rank = len(kernel)
    stride = stride or [1] * rank
    begin, end = (pads[:rank], pads[rank:]) if pads else ([0] * rank, [0] * rank)
    sizes = [(size(x, i + 1) - 1) * stride[i] - begin[i] - end[i] + kernel[i] for i in range(rank)]
    first = packed([size(x, 0), size(x, rank + 1), *sizes], tf.int64)
    order = [0, rank + 1, *range(1, rank + 1)]  # of two elements with one place, the last one stays
    places = tf.reshape(tf.transpose(indices, order), [-1, 1])
    empty = tf.zeros([tf.reduce_prod(first)], x.dtype)
    flat = tf.tensor_scatter_nd_update(empty, places, tf.reshape(tf.transpose(x, order), [-1]))
    y = tf.transpose(tf.reshape(flat, first), [0, *range(2, rank + 2), 1])
    if output_shape is None:
        return y
    return surrounded(y, [(0, output_shape[i + 2] - sizes[i]) for i in range(rank)])
