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


def dropout_with_mask(x: Array, rate: Any, training: Any, seed: int | None = None) -> tuple[Array, Array]:
    """Dropout, and which elements it kept. With a seed, those that ONNX's reference implementation keeps."""
    if seed is None:
        drawn = jax.random.uniform(new_key(), x.shape)
    else:
        drawn = jnp.asarray(np.random.RandomState(seed).uniform(size=x.shape))
    kept = (drawn >= rate) | ~jnp.asarray(training, bool)
    scale = jnp.where(training, 1 / (1 - jnp.asarray(rate)), 1)
    return jnp.where(kept, x * scale.astype(x.dtype), 0), kept
