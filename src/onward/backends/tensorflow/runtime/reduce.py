"""Reductions with the edge cases of ONNX: axes that are computed, means of integers, the last of equal elements."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of


def axes_or_all(axes: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """The axes of a reduction; no axes stand for all of them."""
    every = tf.range(tf.rank(x))
    return tf.concat([tf.cast(axes, tf.int32), every[: tf.where(tf.size(axes) > 0, 0, tf.size(every))]], 0)


def euclidean_norm(x: tf.Tensor, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
    """The root of the sum of squares."""
    return norm_of_sum(tf.reduce_sum(tf.square(x), axis, keepdims), 2)


def norm_of_sum(total: tf.Tensor, p: int) -> tf.Tensor:
    """The root of a sum of powers. Its gradient for zeros, where the root itself is infinitely steep, is zero."""
    is_zero = tf.equal(total, 0)
    inside = tf.where(is_zero, tf.ones_like(total), total)
    return tf.where(is_zero, total, tf.sqrt(inside) if p == 2 else inside ** (1 / p))


def integer_mean(x: tf.Tensor, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
    """The mean of integers, rounded towards zero; narrow ones are added up in 64 bits."""
    wide = x if x.dtype in (tf.int64, tf.uint64) else tf.cast(x, tf.int64)
    total = tf.reduce_sum(wide, axis, keepdims)
    count = tf.size(wide, tf.int64) // tf.maximum(tf.size(total, tf.int64), 1)
    return tf.cast(tf.truncatediv(total, tf.cast(count, wide.dtype)), x.dtype)


def last_index(function: Callable[..., tf.Tensor], x: tf.Tensor, axis: int) -> tf.Tensor:
    """The index that `tf.argmax` or `tf.argmin` finds, the last where several are equal."""
    return dims_of(x)[axis] - 1 - function(tf.reverse(x, [axis]), axis)
