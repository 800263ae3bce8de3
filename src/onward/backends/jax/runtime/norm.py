"""Normalisations. Channels are the axis `axis`; half precision is computed in single precision."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax


def single(x: Array) -> Array:
    """In single precision, unless it is more precise."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def per_channel(statistic: Array, x: Array, axis: int) -> Array:
    """One value per channel, shaped to be combined with `x`."""
    after = -1 - axis if axis < 0 else x.ndim - 1 - axis
    return statistic.reshape(-1, *[1] * after) if after else statistic


def inner_axes(x: Array, axis: int) -> tuple[int, ...]:
    """The axes that are neither the batch's nor the channels'."""
    return tuple(i for i in range(1, x.ndim) if i != axis % x.ndim)


def standardized(x: Array, axes: Any, eps: float) -> tuple[Array, Array, Array]:
    """x without its mean, divided by its standard deviation; the mean, and the inverse of the standard deviation."""
    mean = x.mean(axes, keepdims=True)
    centered = x - mean
    inverse = lax.rsqrt(jnp.square(centered).mean(axes, keepdims=True) + eps)
    return centered * inverse, mean, inverse


def batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float = 1e-5, axis: int = -1
) -> Array:
    """Batch normalisation by given statistics."""
    scale = per_channel(single(weight) * lax.rsqrt(single(var) + eps), x, axis)
    return ((x - per_channel(single(mean), x, axis)) * scale + per_channel(single(bias), x, axis)).astype(x.dtype)


def batch_norm_train(
    x: Array,
    weight: Array,
    bias: Array,
    mean: Array,
    var: Array,
    momentum: float = 0.9,
    eps: float = 1e-5,
    axis: int = -1,
    unbiased: bool = False,
) -> tuple[Array, Array, Array]:
    """Batch normalisation by the statistics of the batch, and the running statistics with these mixed in.

    `momentum` is the share of the old statistics that is kept; with `unbiased` the running variance takes in the
    unbiased one.
    """
    wide = x.astype(jnp.promote_types(mean.dtype, single(x).dtype))
    axes = (0, *inner_axes(x, axis))
    batch_mean, batch_var = wide.mean(axes), wide.var(axes)
    y = batch_norm(x, weight, bias, batch_mean, batch_var, eps, axis)
    if unbiased:
        count = x.size // batch_var.size
        batch_var = batch_var * (count / max(count - 1, 1))
    running_mean = (mean * momentum + batch_mean * (1 - momentum)).astype(mean.dtype)
    return y, running_mean, (var * momentum + batch_var * (1 - momentum)).astype(var.dtype)


def instance_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5, axis: int = -1) -> Array:
    """Each channel of each sample normalised by itself."""
    y, _, _ = standardized(single(x), inner_axes(x, axis), eps)
    return (y * per_channel(single(weight), x, axis) + per_channel(single(bias), x, axis)).astype(x.dtype)


def group_norm(x: Array, groups: int, weight: Array, bias: Array, eps: float = 1e-5, axis: int = -1) -> Array:
    """Each group of channels of each sample normalised by itself."""
    at = axis % x.ndim
    parts = single(x).reshape(*x.shape[:at], groups, x.shape[at] // groups, *x.shape[at + 1 :])
    y = standardized(parts, inner_axes(parts, at), eps)[0].reshape(x.shape)
    return (y * per_channel(single(weight), x, axis) + per_channel(single(bias), x, axis)).astype(x.dtype)


def axes_from(x: Array, axis: int) -> tuple[int, ...]:
    """All axes from one on."""
    return tuple(range(axis % x.ndim, x.ndim))


def layer_norm(x: Array, weight: Array, bias: Array | None = None, axis: int = -1, eps: float = 1e-5) -> Array:
    """Layer normalisation over the axes from `axis` on."""
    y = standardized(single(x), axes_from(x, axis), eps)[0].astype(x.dtype) * weight
    return y if bias is None else y + bias


def layer_norm_statistics(
    x: Array, weight: Array, bias: Array | None = None, axis: int = -1, eps: float = 1e-5, dtype: Any = jnp.float32
) -> tuple[Array, Array, Array]:
    """Layer normalisation, the means, and the inverse standard deviations; these in `dtype`."""
    y, mean, inverse = standardized(single(x), axes_from(x, axis), eps)
    y = y.astype(x.dtype) * weight
    return (y if bias is None else y + bias), mean.astype(dtype), inverse.astype(dtype)


def rms_norm(x: Array, weight: Array, axis: int = -1, eps: float = 1e-5) -> Array:
    """Divided by the root of the mean square over the axes from `axis` on."""
    wide = single(x)
    inverse = lax.rsqrt(jnp.square(wide).mean(axes_from(x, axis), keepdims=True) + eps)
    return (wide * inverse).astype(x.dtype) * weight


def local_response_norm(
    x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, axis: int = -1
) -> Array:
    """Each element divided by the energy of `size` neighbouring channels; an even size reaches further up."""
    wide, below = single(x), (size - 1) // 2
    window, padding = [1] * x.ndim, [(0, 0)] * x.ndim
    window[axis], padding[axis] = size, (below, size - 1 - below)
    energy: Array = lax.reduce_window(jnp.square(wide), 0.0, lax.add, window, [1] * x.ndim, padding)
    return (wide / (bias + alpha / size * energy) ** beta).astype(x.dtype)


def lp_normalize(x: Array, p: int = 2, axis: int = -1) -> Array:
    """Divided by the p-norm along an axis; zeros stay zeros."""
    if p == 1:
        norm = jnp.abs(x).sum(axis, keepdims=True)
        return x / jnp.where(norm == 0, 1, norm)
    total = jnp.square(single(x)).sum(axis, keepdims=True)
    return x / jnp.sqrt(jnp.where(total == 0, 1, total)).astype(x.dtype)


def mean_variance_norm(x: Array, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """Without its mean over `axes`, divided by its standard deviation."""
    centered = x - x.mean(axes, keepdims=True)
    variance = jnp.square(centered).mean(axes, keepdims=True)
    deviation = jnp.where(variance == 0, 0, jnp.sqrt(jnp.where(variance == 0, 1, variance)))
    return centered / (deviation + 1e-9)
