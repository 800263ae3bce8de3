"""Normalisations. `axis` is that of the channels, if an op has one; half precision is computed in single precision."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import size


def single(x: tf.Tensor) -> tf.Tensor:
    """In single precision, unless it is more precise."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else tf.convert_to_tensor(x)


def wider(*dtypes: tf.DType) -> tf.DType:
    """Single precision, or double where any of these is that."""
    return tf.float64 if tf.float64 in dtypes else tf.float32


def axes_from(x: tf.Tensor, axis: int) -> Any:
    """All axes from one on."""
    if axis < 0:
        return list(range(axis, 0))
    return tf.range(axis, tf.rank(x)) if x.shape.rank is None else list(range(axis, x.shape.rank))


def per_channel(statistic: tf.Tensor, x: tf.Tensor, axis: int) -> tf.Tensor:
    """One value per channel, shaped to be combined with `x`."""
    after = x.shape.rank - 1 - axis if axis >= 0 else -1 - axis
    return tf.reshape(statistic, [-1, *[1] * after]) if after > 0 else statistic


def standardized(x: tf.Tensor, axes: Any, epsilon: float) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """x without its mean, divided by its standard deviation; the mean, and the inverse of the standard deviation."""
    mean = tf.reduce_mean(x, axes, keepdims=True)
    centered = x - mean
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(centered), axes, keepdims=True) + epsilon)
    return centered * inverse, mean, inverse


def batch_norm(
    x: tf.Tensor,
    scale: tf.Tensor,
    offset: tf.Tensor,
    mean: Any,
    variance: Any,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    axis: int = -1,
    unbiased: bool = False,
) -> tf.Tensor:
    """Batch normalisation by the running statistics or, in training, by those of the batch, which they take in.

    With `unbiased` the running variance takes in the unbiased one.
    """
    if not training:
        return normalized_by(x, scale, offset, mean, variance, epsilon, axis)
    y, new_mean, new_variance = batch_norm_train(x, scale, offset, mean, variance, momentum, epsilon, axis)
    if unbiased:
        count = tf.size(x) // tf.size(mean)
        kept = momentum * variance
        share = tf.cast(count / tf.maximum(count - 1, 1), variance.dtype)
        new_variance = kept + (new_variance - kept) * share
    mean.assign(new_mean)
    variance.assign(new_variance)
    return y


def normalized_by(
    x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, epsilon: float, axis: int
) -> tf.Tensor:
    """Batch normalisation by given statistics."""
    kind = wider(x.dtype, scale.dtype, mean.dtype)
    mean, variance, offset, scale = (per_channel(tf.cast(s, kind), x, axis) for s in (mean, variance, offset, scale))
    return tf.cast(tf.nn.batch_normalization(tf.cast(x, kind), mean, variance, offset, scale, epsilon), x.dtype)


def batch_norm_train(
    x: tf.Tensor,
    scale: tf.Tensor,
    offset: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    axis: int = -1,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch normalisation by the statistics of the batch, and the running statistics with these mixed in.

    `momentum` is the share of the old statistics that is kept; the variance is the biased one throughout.
    """
    kind = wider(x.dtype, mean.dtype)
    axes = [i for i in range(x.shape.rank) if i != axis % x.shape.rank]
    wide = tf.cast(x, kind)
    batch_mean = tf.reduce_mean(wide, axes)
    batch_variance = tf.reduce_mean(tf.square(wide - per_channel(batch_mean, x, axis)), axes)
    y = normalized_by(x, scale, offset, batch_mean, batch_variance, epsilon, axis)
    mixed = (
        tf.cast(tf.cast(old, kind) * momentum + new * (1 - momentum), old.dtype)
        for old, new in ((mean, batch_mean), (variance, batch_variance))
    )
    return y, *mixed


def instance_norm(
    x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor, epsilon: float = 1e-5, axis: int = -1
) -> tf.Tensor:
    """Each channel of each sample normalised by itself."""
    axes = [i for i in range(1, x.shape.rank) if i != axis % x.shape.rank]
    y = standardized(single(x), axes, epsilon)[0]
    return tf.cast(y * per_channel(single(scale), x, axis) + per_channel(single(offset), x, axis), x.dtype)


def group_norm(
    x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor, groups: int, epsilon: float = 1e-5, axis: int = -1
) -> tf.Tensor:
    """Groups of channels of each sample normalised together."""
    if axis == 1:
        parts, axes = tf.reshape(single(x), [size(x, 0), groups, -1]), [2]
    else:
        parts, axes = tf.reshape(single(x), [size(x, 0), -1, groups, size(x, axis) // groups]), [1, 3]
    y = tf.reshape(standardized(parts, axes, epsilon)[0], tf.shape(x))
    y = tf.ensure_shape(y, x.shape)
    return tf.cast(y * per_channel(single(scale), x, axis) + per_channel(single(offset), x, axis), x.dtype)


def layer_norm(
    x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor | None = None, axis: int = -1, epsilon: float = 1e-5
) -> tf.Tensor:
    """Layer normalisation over the axes from `axis` on."""
    y = tf.cast(standardized(single(x), axes_from(x, axis), epsilon)[0], x.dtype) * scale
    return y if offset is None else y + offset


def layer_norm_statistics(
    x: tf.Tensor,
    scale: tf.Tensor,
    offset: tf.Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    dtype: tf.DType = tf.float32,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Layer normalisation, the means, and the inverse standard deviations; these in `dtype`."""
    y, mean, inverse = standardized(single(x), axes_from(x, axis), epsilon)
    y = tf.cast(y, x.dtype) * scale
    return (y if offset is None else y + offset), tf.cast(mean, dtype), tf.cast(inverse, dtype)


def rms_norm(x: tf.Tensor, scale: tf.Tensor, axis: int = -1, epsilon: float = 1e-5) -> tf.Tensor:
    """Divided by the root of the mean square over the axes from `axis` on."""
    wide = single(x)
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axes_from(x, axis), keepdims=True) + epsilon)
    return tf.cast(wide * inverse, x.dtype) * scale


def local_response_norm(
    x: tf.Tensor, count: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, axis: int = -1
) -> tf.Tensor:
    """Each element divided by the energy of `count` neighbouring channels; an even count reaches further up."""
    wide = single(x)
    axis = axis % x.shape.rank
    below = (count - 1) // 2
    squares = tf.pad(
        tf.square(wide), [[below, count - 1 - below] if i == axis else [0, 0] for i in range(x.shape.rank)]
    )
    channels = size(x, axis)
    before = [slice(None)] * axis
    energy = sum(squares[(*before, slice(i, i + channels))] for i in range(count))
    return tf.cast(wide / (bias + alpha / count * energy) ** beta, x.dtype)


def lp_normalize(x: tf.Tensor, p: int = 2, axis: int = -1) -> tf.Tensor:
    """Divided by the p-norm along an axis; zeros stay zeros."""
    if p == 1:
        norm = tf.reduce_sum(tf.abs(x), axis, keepdims=True)
    else:
        total = tf.reduce_sum(tf.square(x), axis, keepdims=True)
        norm = tf.sqrt(tf.where(total == 0, tf.ones_like(total), total))
    return x / tf.where(norm == 0, tf.ones_like(norm), norm)


def mean_variance_norm(x: tf.Tensor, axes: Sequence[int] = (0, 2, 3)) -> tf.Tensor:
    """Without its mean over `axes`, divided by its standard deviation."""
    centered = x - tf.reduce_mean(x, axes, keepdims=True)
    return centered / (tf.sqrt(tf.reduce_mean(tf.square(centered), axes, keepdims=True)) + 1e-9)
