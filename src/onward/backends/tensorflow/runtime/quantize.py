"""Quantization with scales along axes, and exact products of quantized tensors."""

import math
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.conv import conv_of_unknown_kernel
from onward.backends.tensorflow.runtime.host import is_number, size
from onward.backends.tensorflow.runtime.linear import matmul


def per_axis(parameter: tf.Tensor, x: tf.Tensor, axis: int, block_size: int = 0) -> tf.Tensor:
    """Scales or zero points so that they broadcast: one for the tensor, one per slice along `axis`, or per block."""
    if parameter.shape.rank == 0 or parameter.shape == [1]:
        return tf.reshape(parameter, [])
    if parameter.shape.rank == 1 and x.shape.rank > 1:
        parameter = tf.reshape(parameter, [-1, *[1] * (x.shape.rank - 1 - axis % x.shape.rank)])
    return per_block(parameter, x, axis, block_size) if block_size else parameter


def per_block(parameter: tf.Tensor, x: tf.Tensor, axis: int, block_size: int) -> tf.Tensor:
    """Scales or zero points, one for each `block_size` elements along `axis`, repeated for every element."""
    axis = axis % x.shape.rank
    return tf.repeat(parameter, block_size, axis)[(*[slice(None)] * axis, slice(size(x, axis)))]


def per_row(parameter: tf.Tensor) -> tf.Tensor:
    """Zero points of the rows of a matrix so that they broadcast with it."""
    return tf.reshape(parameter, [-1, 1]) if parameter.shape.rank == 1 else parameter


def rounded_by_channel(weight: tf.Tensor, limits: tf.Tensor) -> tf.Tensor:
    """A weight rounded to 255 numbers within the limit of each channel; the channels are the last axis, or two."""
    flat = tf.reshape(weight, [*weight.shape[:-2], 1, -1]) if weight.shape[-1] != limits.shape[0] else weight
    rounded = tf.quantization.fake_quant_with_min_max_vars_per_channel(flat, -limits, limits, narrow_range=True)
    return tf.reshape(rounded, weight.shape)


def dynamic_quantize(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """`x` as uint8 over the range of its values, with the scale and the zero point."""
    low, high = tf.minimum(tf.reduce_min(x), 0), tf.maximum(tf.reduce_max(x), 0)
    scale = tf.where(high == low, 1.0, (high - low) / 255)
    zero_point = tf.round(tf.clip_by_value(-low / scale, 0, 255))
    y = tf.clip_by_value(tf.round(x / scale) + zero_point, 0, 255)
    return tf.cast(y, tf.uint8), scale, tf.cast(zero_point, tf.uint8)


def without(x: tf.Tensor, zero_point: Any, dtype: tf.DType) -> tf.Tensor:
    """The distance of integers from their zero point, in a float type."""
    return tf.cast(x, dtype) - (zero_point if is_number(zero_point) else tf.cast(zero_point, dtype))


def quantized_matmul(
    a: tf.Tensor, b: tf.Tensor, a_zero_point: Any = 0, b_zero_point: Any = 0, dtype: tf.DType = tf.float64
) -> tf.Tensor:
    """The int32 product of 8-bit matrices; `dtype` is a float type in which all its sums are exact."""
    return tf.cast(matmul(without(a, a_zero_point, dtype), without(b, b_zero_point, dtype)), tf.int32)


def quantized_conv(
    x: tf.Tensor,
    weight: tf.Tensor,
    x_zero_point: Any = 0,
    w_zero_point: Any = 0,
    dtype: tf.DType = tf.float64,
    **window: Any,
) -> tf.Tensor:
    """The int32 convolution of 8-bit images, channels last; `dtype` is a float type in which all its sums are exact.

    Where that is double precision, upper and lower bits are convolved apart in single precision if the sizes are known,
    so many channels at a time that their sums are exact in it: that is faster.
    """
    if not is_number(w_zero_point) and w_zero_point.shape.rank == 1:
        w_zero_point = tf.reshape(w_zero_point, [-1, *[1] * (weight.shape.rank - 1)])

    def convolved(image: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        return tf.cast(conv_of_unknown_kernel(image, kernel, **window), tf.int32)

    channels = weight.shape[1] if weight.shape.is_fully_defined() else 0
    most = 2**24 // (16 * 255 * math.prod(weight.shape[2:])) if channels else 0
    if dtype != tf.float64 or not most or (window.get("group", 1) > 1 and channels > most):
        return convolved(without(x, x_zero_point, dtype), without(weight, w_zero_point, dtype))
    image, kernel = without(x, x_zero_point, tf.float32), without(weight, w_zero_point, tf.float32)
    upper = tf.floor(image / 16)
    result = None
    for start in range(0, channels, most):
        part = slice(start, start + most) if channels > most else slice(None)
        factors = kernel[:, part]
        sums = 16 * convolved(upper[..., part], factors) + convolved((image - 16 * upper)[..., part], factors)
        result = sums if result is None else result + sums
    return result


def channels_last(x: tf.Tensor) -> tf.Tensor:
    """Images whose channels stand before their spatial axes, with the channels behind."""
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1])


def channels_first(x: tf.Tensor) -> tf.Tensor:
    """The inverse of `channels_last`."""
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)])
