"""Reductions with the edge cases of ONNX: axes that are computed, means of integers, nothing to reduce."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.norm import single


def axes_or_all(axes: Sequence[int]) -> tuple[int, ...] | None:
    """The axes of a reduction; no axes stand for all of them."""
    return tuple(axes) or None


def dtype_range(dtype: Any) -> np.ndarray:
    """The smallest and the largest value of a dtype, infinities included."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.array([-np.inf, np.inf], dtype)
    return np.array([0, 1] if dtype == jnp.bool_ else [jnp.iinfo(dtype).min, jnp.iinfo(dtype).max], dtype)


def reduce_max(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The largest element; of nothing it is the smallest value of the dtype."""
    return jnp.max(x, axis, keepdims=keepdims, initial=dtype_range(x.dtype)[0])


def reduce_min(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The smallest element; of nothing it is the largest value of the dtype."""
    return jnp.min(x, axis, keepdims=keepdims, initial=dtype_range(x.dtype)[1])


def euclidean_norm(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The root of the sum of squares."""
    return norm_of_sum(jnp.sum(jnp.square(single(x)), axis, keepdims=keepdims), 2).astype(x.dtype)


def norm_of_sum(total: Array, p: int) -> Array:
    """The root of a sum of powers. Its gradient for zeros, where the root itself is infinitely steep, is zero."""
    is_zero = total == 0
    inside = jnp.where(is_zero, 1, total)
    return jnp.where(is_zero, total, jnp.sqrt(inside) if p == 2 else inside ** (1 / p))


def integer_mean(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean of integers, rounded towards zero; narrow ones are added up in the default width."""
    total = jnp.sum(x, axis, keepdims=keepdims)
    count = x.size // max(total.size, 1)
    return lax.div(total, jnp.full_like(total, count)).astype(x.dtype)


def last_index(function: Callable[..., Array], x: Array, axis: int, keepdims: bool = False) -> Array:
    """The index that `jnp.argmax` or `jnp.argmin` finds, the last where several are equal."""
    return x.shape[axis] - 1 - function(jnp.flip(x, axis), axis, keepdims=keepdims)


def shifted(x: Array, axis: int, start: int, reverse: bool = False) -> Array:
    """`x` moved one step along an axis, with `start` in the first place: what an exclusive running sum adds up."""
    if x.shape[axis] == 0:
        return x
    kept = lax.slice_in_dim(x, 1, None, axis=axis) if reverse else lax.slice_in_dim(x, 0, -1, axis=axis)
    first = jnp.full_like(lax.slice_in_dim(x, 0, 1, axis=axis), start)
    return jnp.concatenate([kept, first] if reverse else [first, kept], axis)
