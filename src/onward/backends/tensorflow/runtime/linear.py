"""Matrix products of vectors, and of integer types for which TensorFlow has no kernel."""

import tensorflow as tf


def matmul(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a @ b`, where either may be a vector."""
    if b.shape.rank == 1:
        column = matmul(a, b[:, None])
        return column[..., 0]
    return (a[None] @ b)[..., 0, :] if a.shape.rank == 1 else a @ b


def integer_gemm(
    a: tf.Tensor,
    b: tf.Tensor,
    c: tf.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> tf.Tensor:
    """`alpha * a @ b + beta * c` of integers; fractions are cut off once, at the end."""
    left, right = tf.cast(a, tf.int64), tf.cast(b, tf.int64)
    result = tf.matmul(left, right, transpose_a=trans_a, transpose_b=trans_b)
    if alpha != 1:
        result = alpha * tf.cast(result, tf.float64)
    if c is not None and beta != 0:
        addend = tf.cast(c, tf.int64)
        addend = addend if beta == 1 else beta * tf.cast(addend, tf.float64)
        both = tf.int64 if result.dtype == addend.dtype == tf.int64 else tf.float64
        result = tf.cast(result, both) + tf.cast(addend, both)
    return tf.cast(tf.cast(result, tf.int64), a.dtype)
