"""Activation functions that TensorFlow does not have, and Dropout with its mask."""

from typing import Any

import numpy as np
import tensorflow as tf

from onward.backends.tensorflow.runtime.host import packed
from onward.backends.tensorflow.runtime.norm import single


def scaled_elu(x: tf.Tensor, alpha: float, width: float = 1.0) -> tf.Tensor:
    """x above zero, alpha · (exp(x / width) - 1) below."""
    return tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0) / width))


def shrink(x: tf.Tensor, limit: float, bias: float) -> tf.Tensor:
    """Zero within `limit` of zero; beyond, moved by `bias` towards zero."""
    return tf.where(x < -limit, x + bias, tf.where(x > limit, x - bias, 0))


def softmax_by_steps(x: tf.Tensor, axis: int) -> tf.Tensor:
    """Softmax of any rank that rounds at each step of its definition, as ONNX's does in half precision.

    TensorFlow's own sum of halves rounds within a step, too.
    """
    powers = tf.exp(x - tf.reduce_max(x, axis, keepdims=True))
    return powers / tf.cast(tf.reduce_sum(single(powers), axis, keepdims=True), x.dtype)


def hardmax(x: tf.Tensor, axis: int) -> tf.Tensor:
    """1 at the first of the largest elements along an axis, which may be empty, and 0 elsewhere; NaN is the largest."""
    largest = tf.cast((x == tf.reduce_max(x, axis, keepdims=True)) | (x != x), tf.int32)
    return tf.cast((largest == 1) & (tf.cumsum(largest, axis) == 1), x.dtype)


def dropout_with_mask(x: tf.Tensor, rate: Any, training: Any, seed: int | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Dropout, and which elements it kept.

    With a seed, those that ONNX's reference implementation keeps, as far as the shape is known when this is traced.
    """
    if seed is None:
        drawn = tf.random.uniform(tf.shape(x), dtype=tf.float64)
    elif x.shape.is_fully_defined():
        drawn = tf.constant(np.random.RandomState(seed).uniform(size=x.shape))
    else:
        drawn = tf.random.stateless_uniform(tf.shape(x), [seed, 0], dtype=tf.float64)
    rate = packed(rate, tf.float64)
    kept = (drawn >= rate) | tf.logical_not(tf.cast(training, tf.bool))
    scale = tf.cast(tf.where(tf.cast(training, tf.bool), 1 / (1 - rate), 1), x.dtype)
    return tf.where(kept, x * scale, tf.zeros_like(x)), kept
