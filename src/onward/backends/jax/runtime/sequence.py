"""Lists of tensors."""

import itertools

import jax.numpy as jnp
from jax import Array


def split_by(x: Array, sizes: list[int] | int, axis: int) -> list[Array]:
    """Parts of the given sizes, or of one size; the last may be smaller then."""
    ends = list(itertools.accumulate(sizes))[:-1] if isinstance(sizes, list) else [*range(sizes, x.shape[axis], sizes)]
    return jnp.split(x, ends, axis=axis)
