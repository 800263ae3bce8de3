"""From scores to probabilities, as classical models of ONNX define it."""

import math

import jax.numpy as jnp
from jax import Array


def softmax_zero(x: Array) -> Array:
    """Softmax over the last axis in which scores of zero stay zero."""
    top = x.max(-1, keepdims=True)
    is_zero = jnp.abs(x) <= 1e-7
    powers = jnp.where(is_zero, 0, jnp.exp(x - top))
    return jnp.where(is_zero, x * jnp.exp(-top), powers) / powers.sum(-1, keepdims=True)


def probit(x: Array) -> Array:
    """The quantile of the normal distribution, in the approximation that ONNX Runtime computes."""
    y = 2 * x - 1
    log = jnp.log((1 - y) * (1 + y))
    v = 2 / (math.pi * 0.147) + 0.5 * log
    root = jnp.sqrt(jnp.sqrt(v * v - log / 0.147) - v)
    return math.sqrt(2) * jnp.where(y < 0, -root, root)
