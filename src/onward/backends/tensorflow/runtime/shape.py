"""Tensors of another shape, and tensors made of nothing but a shape."""

import math
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, greatest, is_number, least, packed, size


def reshape(x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Reshape where a 0 keeps the dimension of `x` at that place, and one -1 is inferred."""
    known = tf.shape(x, shape.dtype)
    missing = tf.maximum(tf.size(shape) - tf.size(known), 0)
    kept = tf.concat([known, tf.zeros([missing], shape.dtype)], 0)[: tf.size(shape)]
    return tf.reshape(x, tf.where(shape == 0, kept, shape))


def flatten_to_matrix(x: tf.Tensor, axis: int) -> tf.Tensor:
    """A matrix whose rows run over the axes before `axis`, its columns over the others."""
    shape = dims_of(x)
    return tf.reshape(x, [tf.reduce_prod(shape[:axis]), tf.reduce_prod(shape[axis:])])


def squeeze(x: tf.Tensor, axes: tf.Tensor) -> tf.Tensor:
    """Without the given axes, all of size 1."""
    shape = dims_of(x)
    rank = tf.size(shape, tf.int64)
    gone = tf.reduce_any(tf.range(rank)[:, None] == tf.cast(axes, tf.int64) % rank, 1)
    return tf.reshape(x, tf.boolean_mask(shape, ~gone))


def declared(x: tf.Tensor, rank: int) -> tf.Tensor:
    """`x` in a graph that wants to know how many dimensions it has; for some sizes of the inputs it may have others."""
    if x.shape.rank is None:
        x.set_shape([None] * rank)
    return x


def unsqueeze(x: tf.Tensor, axes: Any) -> tf.Tensor:
    """With dimensions of size 1 at the given axes of the result."""
    shape, axes = dims_of(x), tf.reshape(tf.cast(axes, tf.int64), [-1])
    rank = tf.size(shape, tf.int64) + tf.size(axes, tf.int64)
    new = tf.reduce_any(tf.range(rank)[:, None] == axes % rank, 1)
    old = tf.cumsum(tf.cast(~new, tf.int64), exclusive=True)
    return tf.reshape(x, tf.where(new, tf.ones_like(old), tf.gather(tf.concat([shape, [1]], 0), old)))


def expand(x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Broadcast with a shape, in both directions."""
    return tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x, shape.dtype), shape))


def split_evenly(x: tf.Tensor, count: int, axis: int) -> list[tf.Tensor]:
    """Parts of equal sizes along an axis, but for the last, which may be smaller."""
    total = size(x, axis)
    part = (total + count - 1) // count
    sizes = [greatest(least(part, total - i * part), 0) for i in range(count)]
    parts: list[tf.Tensor] = tf.split(x, sizes, axis)
    return parts


def integer_range(start: Any, limit: Any, delta: Any) -> tf.Tensor:
    """start, start + delta, … before `limit`, as int64; empty where `limit` lies the other way."""
    start, limit, delta = (packed(v, tf.int64) for v in (start, limit, delta))
    count = tf.maximum((limit - start + delta - tf.sign(delta)) // delta, 0)
    return start + tf.range(count) * delta


def float_range(start: Any, limit: Any, delta: Any, dtype: tf.DType) -> tf.Tensor:
    """start, start + delta, … before `limit`; in half precision each is rounded once."""
    is_exact = is_number(start, delta) and start == 0 and abs(math.frexp(delta)[0]) == 0.5
    wide = dtype if dtype == tf.float32 and is_exact else tf.float64
    start, limit, delta = (tf.cast(packed(v, dtype), wide) for v in (start, limit, delta))
    count = tf.maximum(tf.math.ceil((limit - start) / delta), 0)
    precision = tf.float64 if dtype == tf.float64 else tf.float32
    steps = tf.cast(tf.range(tf.cast(count, tf.int64)), precision)
    return tf.cast(tf.cast(start, precision) + steps * tf.cast(delta, precision), dtype)


def shifted_eye(rows: Any, columns: Any, k: int, dtype: tf.DType) -> tf.Tensor:
    """Ones on the k-th diagonal."""
    row = tf.range(tf.cast(rows, tf.int64))[:, None]
    return tf.cast(tf.range(tf.cast(columns, tf.int64)) - row == k, dtype)


def triangle(x: tf.Tensor, k: Any, upper: bool = True) -> tf.Tensor:
    """What is above the k-th diagonal of matrices, or below it, with the diagonal; zeros elsewhere."""
    shape = dims_of(x)
    place = tf.range(shape[-1]) - tf.range(shape[-2])[:, None]
    return tf.where(place >= k if upper else place <= k, x, tf.zeros_like(x))


def pixel_shuffle(x: tf.Tensor, block: int) -> tf.Tensor:
    """Channels (last) to blocks of pixels; the position in a block is the inner part of the channel number."""
    n, h, w, c = (size(x, i) for i in range(4))
    x = tf.reshape(x, [n, h, w, c // block**2, block, block])
    return tf.reshape(tf.transpose(x, [0, 1, 4, 2, 5, 3]), [n, h * block, w * block, c // block**2])


def pixel_unshuffle(x: tf.Tensor, block: int) -> tf.Tensor:
    """Blocks of pixels to channels (last): the inverse of `pixel_shuffle`."""
    n, h, w, c = (size(x, i) for i in range(4))
    x = tf.reshape(x, [n, h // block, block, w // block, block, c])
    return tf.reshape(tf.transpose(x, [0, 1, 3, 5, 2, 4]), [n, h // block, w // block, c * block**2])


def depth_to_space_first(x: tf.Tensor, block: int, mode: str) -> tf.Tensor:
    """Channels (the second axis) to blocks of pixels; the position in a block is the outer ("DCR") or inner part."""
    n, c, h, w = (size(x, i) for i in range(4))
    if mode == "CRD":
        x = tf.transpose(tf.reshape(x, [n, c // block**2, block, block, h, w]), [0, 1, 4, 2, 5, 3])
    else:
        x = tf.transpose(tf.reshape(x, [n, block, block, c // block**2, h, w]), [0, 3, 4, 1, 5, 2])
    return tf.reshape(x, [n, c // block**2, h * block, w * block])


def space_to_depth_first(x: tf.Tensor, block: int, mode: str) -> tf.Tensor:
    """Blocks of pixels to channels, the second axis: the inverse of `depth_to_space_first`."""
    n, c, h, w = (size(x, i) for i in range(4))
    x = tf.reshape(x, [n, c, h // block, block, w // block, block])
    x = tf.transpose(x, [0, 1, 3, 5, 2, 4] if mode == "CRD" else [0, 3, 5, 1, 2, 4])
    return tf.reshape(x, [n, c * block**2, h // block, w // block])
