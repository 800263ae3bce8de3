"""Numbers put or counted at places that other numbers name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor

REDUCTIONS = {"sum": ("add", 0.0), "prod": ("mul", 1.0), "amax": ("max", -math.inf), "amin": ("min", math.inf)}
"""What ONNX calls them, and what they begin with."""


def _scattered(op: Builder, x: Tensor, axis: int, index: Tensor, source: Tensor, how: str, includes: bool) -> Tensor:
    """Each number of the source joined to the one that its index names; without those of `x`, if asked."""
    if how == "mean":
        if not x.dtype.is_floating_point():
            raise UnsupportedError("the mean of whole numbers is not supported")
        ones = op.filled(source, 1)
        count = _scattered(op, op.filled(x, int(includes)), axis, index, ones, "sum", True)
        kept = op.Equal(count, op.like(0, count))
        total = _scattered(op, x, axis, index, source, "sum", includes)
        return total / op.where(kept, op.like(1, count), count)
    reduction, neutral = REDUCTIONS[how]
    if not includes:
        if math.isinf(neutral) and not x.dtype.is_floating_point():
            raise UnsupportedError("include_self=False is not supported for whole numbers")
        touched = op.ScatterElements(op.filled(x, 0), index, op.filled(source, 1), axis=axis)
        x = op.where(op.Equal(touched, op.like(0, x)), x, op.like(neutral, x))
    return op.ScatterElements(x, index, source, axis=axis, reduction=reduction)


@rule("scatter_reduce.two")
def scatter_reduce(
    op: Builder, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not x.rank:
        raise UnsupportedError("scalars are not supported")
    sizes = op.Shape(index)
    begin = op.ints([0] * op.rank(index, "the index"))
    src = op.Slice(src, begin, sizes)
    return _scattered(op, x, dim, index, src, reduce, include_self)


@rule("index_reduce")
def index_reduce(
    op: Builder, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    rank = op.rank(x, "the numbers")
    if not rank:
        raise UnsupportedError("scalars are not supported")
    flat = op.Reshape(index, op.ints([-1 if i == dim % rank else 1 for i in range(rank)]))
    return _scattered(op, x, dim, op.Expand(flat, op.Shape(source)), source, reduce, include_self)


@rule("put")
def put(op: Builder, x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat, places, numbers = (op.Reshape(t, op.ints([-1])) for t in (x, index, source))
    found = op.ScatterElements(flat, places, numbers, axis=0, reduction="add" if accumulate else None)
    return op.Reshape(found, op.Shape(x))


@rule("bincount")
def bincount(op: Builder, x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """As many as the largest number says; weights are added up in their own precision."""
    places = x.cast(ir.DataType.INT64)
    last = op.ReduceMax(op.Concat(places, op.ints([minlength - 1]), axis=0), keepdims=1)
    if weights is None:
        weights = op.Expand(op.index(1), op.Shape(places))
    elif weights.dtype != ir.DataType.FLOAT:
        weights = weights.cast(ir.DataType.DOUBLE)
    nothing = op.Expand(op.like(0, weights), last + 1)
    return op.ScatterElements(nothing, places, weights, axis=0, reduction="add")


@rule("multilabel_margin_loss_forward")
def multilabel_margin_loss(op: Builder, x: Tensor, target: Tensor, reduction: int) -> Sequence[Tensor]:
    """Labels count up to the first that is negative; the margin of each to all that are none."""
    size = op.Gather(op.Shape(x), op.ints([-1]))
    ended = op.CumSum((target < 0).cast(ir.DataType.INT32), op.index(-1)) > 0
    labels = op.where(ended, op.like(0, target), target)
    counted = op.Not(ended).cast(x.dtype)
    is_label = op.ScatterElements(op.zeros_like(x), labels, counted, axis=-1, reduction="max")
    at_labels = op.GatherElements(x, labels, axis=-1)
    margins = op.Relu(1.0 - (op.unsqueeze(at_labels, [-1]) - op.unsqueeze(x, [-2])))
    counts = margins * op.unsqueeze(counted, [-1]) * (1.0 - op.unsqueeze(is_label, [-2]))
    loss = op.sum(counts, [-2, -1], keepdims=False) / op.Reshape(size, op.ints([])).cast(x.dtype)
    if reduction:
        loss = op.ReduceMean(loss, keepdims=0) if reduction == 1 else op.ReduceSum(loss, keepdims=0)
    return loss, is_label
