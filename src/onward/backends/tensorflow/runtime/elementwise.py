"""Elementwise functions whose edge cases differ from TensorFlow's."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def float_remainder(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The remainder of dividing floats, with the sign of the dividend."""
    if a.dtype in (tf.float16, tf.bfloat16):
        return tf.cast(float_remainder(tf.cast(a, tf.float32), tf.cast(b, tf.float32)), a.dtype)
    shape = tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b))
    return tf.custom_gradient(truncated_remainder)(tf.broadcast_to(a, shape), tf.broadcast_to(b, shape))


def truncated_remainder(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
    """`tf.truncatemod` of two tensors of one shape, and the gradient that it lacks."""

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        quotient = a / b
        return upstream, -upstream * tf.where(quotient < 0, tf.math.ceil(quotient), tf.floor(quotient))

    return tf.truncatemod(a, b), gradient


def float_modulo(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The remainder of dividing floats, with the sign of the divisor, of zeros too, and right by infinities."""
    rest = float_remainder(a, b)
    rest = tf.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return tf.where(rest == 0, tf.where(is_negative(b), -tf.zeros_like(rest), tf.zeros_like(rest)), rest)


def is_negative(x: tf.Tensor) -> tf.Tensor:
    """Whether the sign of a float is minus, as that of -0.0 is."""
    return (x < 0) | ((x == 0) & (1 / x < 0))


def root(x: tf.Tensor) -> tf.Tensor:
    """x ** 0.5 for every x, where TensorFlow's optimizer would take `tf.sqrt`: it differs at -0.0 and at -infinity."""
    return tf.where(x == -float("inf"), -x, tf.abs(tf.sqrt(x)))


def integer_power(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """x ** y of integers; of a negative power the fraction is cut off."""
    inverse = tf.where(tf.abs(x) == 1, x ** (y & 1), tf.zeros_like(x))
    return tf.where(y < 0, inverse, x ** tf.maximum(y, 0))


def shift_left(x: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """x << amount; 0 where that is negative, or the width of the dtype and more."""
    return tf.where(is_shift(x, amount), tf.bitwise.left_shift(x, amount), tf.zeros_like(x))


def shift_right(x: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """x >> amount; 0, or -1 of negative numbers, where that is negative, or the width of the dtype and more."""
    if x.dtype.min == 0:
        return tf.where(is_shift(x, amount), tf.bitwise.right_shift(x, amount), tf.zeros_like(x))
    most = tf.constant(bit_width(x) - 1, x.dtype)
    return tf.bitwise.right_shift(x, tf.where(is_shift(x, amount), amount, most))


def is_shift(x: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """Where a number can be shifted by an amount."""
    return (amount >= 0) & (amount < bit_width(x))


def bit_width(x: tf.Tensor) -> int:
    """How many bits an integer of this dtype has."""
    return 8 * int(x.dtype.size)
