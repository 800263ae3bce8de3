"""Singular values with their vectors, and eigenvalues of symmetric matrices."""

from __future__ import annotations

import numpy as np

from onward.frontends.decompose.matrix import grid, orthogonal_columns, side, turned, wide
from onward.graph.build import Builder, Tensor


def singular(op: Builder, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The singular values, the largest first, and the vectors on either side as columns, as many as values."""
    is_tall = side(op, a, -1, 10**9) <= side(op, a, -2, 10**9)
    product, rotation = orthogonal_columns(op, a if is_tall else turned(op, a))
    lengths = op.Sqrt(op.sum(product * product, [-2], keepdims=False))
    count = op.Gather(op.Shape(lengths), op.ints([-1]))
    values, order = op.many("TopK", 2, lengths, count, axis=-1, largest=1, sorted=1)
    places = op.constant(np.arange(side(op, product), dtype=np.int64))
    chosen = turned(op, op.Equal(op.unsqueeze(order, [-1]), places).cast(product.dtype))
    none = op.Equal(values, op.like(0, values))
    scale = op.unsqueeze(1.0 / op.where(none, op.like(1, values), values), [-2])
    vectors = op.MatMul(product, chosen) * scale, op.MatMul(rotation, chosen)
    left, right = vectors if is_tall else vectors[::-1]
    return values.cast(a.dtype), left.cast(a.dtype), right.cast(a.dtype)


def symmetric(op: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues, the smallest first, and their vectors as columns, of what the lower triangle says.

    Moved up until none is negative, they are singular values.
    """
    rows, columns = grid(op, a)
    whole = wide(op.where(rows >= columns, a, turned(op, a)))
    sums = op.sum(op.Abs(whole), [-1])
    bound = op.ReduceMax(sums, op.ints([-2]), keepdims=1)
    moved, _, vectors = singular(op, whole + bound * op.constant(np.eye(side(op, a))))
    values = moved - op.squeeze(bound, [-1])
    last, end = op.ints([-1]), op.ints([-(2**31)])
    values, vectors = (op.Slice(t, last, end, last, last) for t in (values, vectors))
    return values.cast(a.dtype), vectors.cast(a.dtype)
