"""What matrix products need beside JAX's own."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax


def by_filled(x: Array, weight: Array) -> Array:
    """`x @ weight` of a weight that is full of one number: all columns of the product are equal.

    The CPU compiler of jaxlib 0.10 computes it wrongly as a whole where its sum, mean or maximum is taken: it reads
    memory that no one has written.
    """
    if weight.ndim < 2:
        return x @ weight
    column = x @ weight[..., :1]
    return jnp.broadcast_to(column, (*column.shape[:-1], weight.shape[-1]))


def einsum_of_filled(equation: str, filled: Sequence[int], *operands: Array) -> Array:
    """`jnp.einsum` where operands, by number, are full of one number: along their own axes the result is the same.

    It is computed once for each of these, see `by_filled`.
    """
    given, _, result = equation.replace(" ", "").partition("->")
    terms, labels = given.split(","), [label for label in given if label.isalpha()]
    if "->" not in equation:
        result = "..." * ("..." in given) + "".join(sorted(label for label in labels if labels.count(label) == 1))
    parts, sizes = list(operands), {}
    for i in filled:
        for label in {*terms[i]} & {*result} - {"."}:
            if labels.count(label) == 1:
                axis = axis_of_label(terms[i], label)
                sizes[axis_of_label(result, label)] = parts[i].shape[axis]
                parts[i] = lax.slice_in_dim(parts[i], 0, 1, axis=axis % parts[i].ndim)
    y = jnp.einsum(f"{given}->{result}", *parts)
    shape = list(y.shape)
    for axis, size in sizes.items():
        shape[axis] = size
    return jnp.broadcast_to(y, shape)


def axis_of_label(term: str, label: str) -> int:
    """The axis that a letter stands for, counted from the end if it is behind the dots."""
    before, _, after = term.partition("...")
    return before.index(label) if label in before else after.index(label) - len(after)


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
