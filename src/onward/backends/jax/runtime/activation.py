"""Activation functions that JAX does not have, and Dropout with its mask."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from onward.backends.jax.runtime.random import new_key


def shrink(x: Array, limit: float, bias: float) -> Array:
    """Zero within `limit` of zero; beyond, moved by `bias` towards zero."""
    return jnp.where(x < -limit, x + bias, jnp.where(x > limit, x - bias, 0))


def hardmax(x: Array, axis: int) -> Array:
    """1 at the first of the largest elements along an axis, which may be empty, and 0 elsewhere."""
    if x.shape[axis] == 0:
        return x
    return jax.nn.one_hot(jnp.argmax(x, axis), x.shape[axis], dtype=x.dtype, axis=axis)


def dropout(x: Array, rate: Any, key: Array) -> Array:
    """Elements are zero at this rate, and the others larger, so that their mean stays."""
    kept = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(kept, x / jnp.asarray(1 - rate, x.dtype), 0)


def dropout_with_mask(
    x: Array, rate: Any, training: Any, seed: int | None = None, key: Array | None = None
) -> tuple[Array, Array]:
    """Dropout, and which elements it kept. With a seed, those that ONNX's reference implementation keeps."""
    if seed is None:
        drawn = jax.random.uniform(new_key() if key is None else key, x.shape)
    else:
        drawn = jnp.asarray(np.random.RandomState(seed).uniform(size=x.shape))
    kept = (drawn >= rate) | ~jnp.asarray(training, bool)
    scale = jnp.where(training, 1 / (1 - jnp.asarray(rate)), 1)
    return jnp.where(kept, x * scale.astype(x.dtype), 0), kept
