"""Distances between rows."""

from __future__ import annotations

import math

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor


def _norm(op: Builder, difference: Tensor, p: float) -> Tensor:
    """Of order p along the last axis."""
    size, axis = op.Abs(difference), op.ints([-1])
    if p == 0:
        return op.sum((size > 0.0).cast(difference.dtype), [-1], keepdims=False)
    if p == 1:
        return op.sum(size, [-1], keepdims=False)
    if p == 2:
        return op.ReduceL2(difference, axis, keepdims=0)
    if math.isinf(p):
        return op.ReduceMax(size, axis, keepdims=0)
    return op.Pow(op.sum(op.Pow(size, op.like(p, size)), [-1], keepdims=False), op.like(1 / p, size))


@rule("_cdist_forward")
def cdist(op: Builder, a: Tensor, b: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    return _norm(op, op.unsqueeze(a, [-2]) - op.unsqueeze(b, [-3]), p)


@rule("_pdist_forward")
def pdist(op: Builder, x: Tensor, p: float = 2.0) -> Tensor:
    count = None if x.dims is None else x.dims[0]
    if not isinstance(count, int):
        raise UnsupportedError("the number of rows is not known")
    first, second = np.triu_indices(count, 1)
    return _norm(op, op.Gather(x, op.constant(first), axis=0) - op.Gather(x, op.constant(second), axis=0), p)
