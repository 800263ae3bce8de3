"""What matrix products need beside JAX's own."""

import jax.numpy as jnp
from jax import Array


def by_filled(x: Array, weight: Array) -> Array:
    """`x @ weight` of a weight that is full of one number: all columns of the product are equal.

    The CPU compiler of jaxlib 0.10 computes it wrongly as a whole where its sum, mean or maximum is taken: it reads
    memory that no one has written.
    """
    if weight.ndim < 2:
        return x @ weight
    column = x @ weight[..., :1]
    return jnp.broadcast_to(column, (*column.shape[:-1], weight.shape[-1]))


def integer_gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Array:
    """`alpha * a @ b + beta * c` of integers; fractions are cut off once, at the end."""
    left, right = a.astype(int), b.astype(int)
    result = (left.T if trans_a else left) @ (right.T if trans_b else right)
    if alpha != 1:
        result = alpha * result.astype(float)
    if c is not None and beta != 0:
        result = result + (c.astype(int) if beta == 1 else beta * c.astype(float))
    return result.astype(int).astype(a.dtype)
