"""Quantization with scales along axes, and exact products of quantized tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from onward.backends.jax.runtime.conv import conv_nd


def quotient(x: Array, scale: Any) -> Array:
    """x / scale, rounded correctly.

    XLA multiplies by the inverse of a scale that it knows to be the same for many numbers. That can be off by the last
    bit, and then a number in the middle between two integers is rounded to the other one.
    """
    return x / jnp.where(x == x, jnp.asarray(scale, x.dtype), 1)


def per_axis(parameter: Array, shape: Sequence[int], axis: int, block_size: int = 0) -> Array:
    """Scales or zero points so that they broadcast: one for the tensor, one per slice along `axis`, or per block."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim == 1 and len(shape) > 1:
        parameter = parameter.reshape(-1, *[1] * (len(shape) - 1 - axis % len(shape)))
    return per_block(parameter, shape, axis, block_size) if block_size else parameter


def per_block(parameter: Array, shape: Sequence[int], axis: int, block_size: int) -> Array:
    """Scales or zero points, one for each `block_size` elements along `axis`, repeated for every element."""
    axis = axis - len(shape) if axis >= 0 else axis  # counted from the end, where the two are alike
    return lax.slice_in_dim(parameter.repeat(block_size, axis), 0, shape[axis], axis=axis % parameter.ndim)


def per_row(parameter: Array) -> Array:
    """Zero points of the rows of a matrix so that they broadcast with it."""
    return parameter.reshape(-1, 1) if parameter.ndim == 1 else parameter


def dynamic_quantize(x: Array) -> tuple[Array, Array, Array]:
    """`x` as uint8 over the range of its values, with the scale and the zero point."""
    low, high = jnp.min(x, initial=0), jnp.max(x, initial=0)
    scale = jnp.where(high == low, 1, quotient(high - low, 255))
    zero_point = jnp.round(jnp.clip(-low / scale, 0, 255))
    y = jnp.clip(jnp.round(quotient(x, scale)) + zero_point, 0, 255)
    return y.astype(jnp.uint8), scale, zero_point.astype(jnp.uint8)


def distance(x: Array, zero_point: Any, dtype: Any) -> Array:
    """How far integers are from their zero point."""
    return x.astype(dtype) - jnp.asarray(zero_point, dtype)


def quantized_matmul(a: Array, b: Array, a_zero_point: Any = 0, b_zero_point: Any = 0, dtype: Any = jnp.int32) -> Array:
    """The int32 product of 8-bit matrices; `dtype` is a type in which all its sums are exact."""
    left, right = distance(a, a_zero_point, dtype), distance(b, b_zero_point, dtype)
    return jnp.matmul(left, right, precision="highest").astype(jnp.int32)


def quantized_conv(
    x: Array,
    weight: Array,
    x_zero_point: Any = 0,
    w_zero_point: Any = 0,
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    dtype: Any = jnp.int32,
) -> Array:
    """The int32 convolution of 8-bit images; `dtype` is a type in which all its sums are exact.

    XLA has no fast kernels for integers. So their upper and lower bits are convolved apart, in floats.
    """
    points = jnp.asarray(w_zero_point)
    points = points.reshape(-1, *[1] * (weight.ndim - 1)) if points.ndim == 1 else points
    images, kernel = distance(x, x_zero_point, dtype), distance(weight, points, dtype)

    def convolved(images: Array, kernel: Array) -> Array:
        return conv_nd(images, kernel, strides, padding, dilations, groups, precision="highest").astype(jnp.int32)

    def in_halves(images: Array, kernel: Array) -> Array:
        upper, lower, factors = (part.astype(jnp.float32) for part in (images >> 4, images & 15, kernel))
        return 16 * convolved(upper, factors) + convolved(lower, factors)

    channels, most = weight.shape[1], 2**24 // (16 * 255 * math.prod(weight.shape[2:]))  # whose sums floats hold
    if dtype != jnp.int32 or not most or (groups > 1 and channels > most):
        return convolved(images, kernel)
    cuts = list(range(most, channels, most))
    first, *others = map(in_halves, jnp.split(images, cuts, 1), jnp.split(kernel, cuts, 1))
    return sum(others, first)
