"""From scores to probabilities, as classical models of ONNX define it."""

import math

import tensorflow as tf


def softmax_zero(x: tf.Tensor) -> tf.Tensor:
    """Softmax over the last axis in which scores of zero stay zero."""
    top = tf.reduce_max(x, -1, keepdims=True)
    is_zero = tf.abs(x) <= 1e-7
    powers = tf.where(is_zero, tf.zeros_like(x), tf.exp(x - top))
    return tf.where(is_zero, x * tf.exp(-top), powers) / tf.reduce_sum(powers, -1, keepdims=True)


def probit(x: tf.Tensor) -> tf.Tensor:
    """The quantile of the normal distribution, in the approximation that ONNX Runtime computes."""
    y = 2 * x - 1
    log = tf.math.log((1 - y) * (1 + y))
    v = 2 / (math.pi * 0.147) + 0.5 * log
    root = tf.sqrt(tf.sqrt(v * v - log / 0.147) - v)
    return math.sqrt(2) * tf.where(y < 0, -root, root)
