"""What stands where when numbers are sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor

SORTED = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64)
"""What ONNX Runtime sorts."""


def _sortable(x: Tensor) -> Tensor:
    """In a dtype that can be sorted and holds the same numbers."""
    if x.dtype in SORTED:
        return x
    if x.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return x.cast(ir.DataType.FLOAT)
    return x.cast(ir.DataType.INT64)


def _sorted(op: Builder, x: Tensor, axis: int, descending: bool = False) -> list[Tensor]:
    """The numbers in order, and where they were; of equal ones the first comes first."""
    count = op.Gather(op.Shape(x), op.ints([axis]))
    values, places = op.many("TopK", 2, _sortable(x), count, axis=axis, largest=int(descending), sorted=1)
    return [values.cast(x.dtype), places]


def _holes(op: Builder, x: Tensor) -> Tensor | None:
    """Where there is no number; None where there always is one."""
    return op.IsNaN(x) if x.dtype.is_floating_point() else None


def _filled(op: Builder, x: Tensor) -> Tensor:
    """With infinity in place of what is not a number, which is last as well."""
    holes = _holes(op, x)
    return x if holes is None else op.where(holes, op.like(math.inf, x), x)


@rule("sort.stable")
def sort_stable(
    op: Builder, x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Sequence[Tensor]:
    return _sorted(op, x, dim, descending) if x.rank else _of_a_scalar(op, x)


def _taken(op: Builder, x: Tensor, axis: int, place: Tensor, keepdim: bool) -> list[Tensor]:
    """The number at a place of the order along an axis, given for each row or for all, and where it was."""
    values, places = _sorted(op, _filled(op, x), axis)
    at = op.Expand(place, op.Shape(op.ReduceMax(_sortable(x), op.ints([axis]), keepdims=1)))
    found = [op.GatherElements(t, at, axis=axis) for t in (values, places)]
    return found if keepdim else [op.squeeze(t, [axis]) for t in found]


def _middle(op: Builder, x: Tensor, axis: int, keepdim: bool) -> list[Tensor]:
    """The lower one of two in the middle; not a number where there is something else, and the first of those."""
    count = op.Gather(op.Shape(x), op.index(axis))
    place = op.Reshape(op.Div(count - 1, op.index(2)), op.ints([1] * op.rank(x, "the numbers")))
    value, where = _taken(op, x, axis, place, keepdim)
    holes = _holes(op, x)
    if holes is not None:
        marks = holes.cast(ir.DataType.FLOAT)
        any_hole = op.ReduceMax(marks, op.ints([axis]), keepdims=int(keepdim)) > 0.0
        value = op.where(any_hole, op.like(math.nan, x), value)
        where = op.Where(any_hole, op.ArgMax(marks, axis=axis, keepdims=int(keepdim)), where)
    return [value, where]


def _middle_of_numbers(op: Builder, x: Tensor, axis: int, keepdim: bool) -> list[Tensor]:
    """As if what is not a number were not there."""
    holes = _holes(op, x)
    if holes is None:
        return _middle(op, x, axis, keepdim)
    count = op.sum(op.Not(holes).cast(ir.DataType.INT64), [axis])
    place = op.Max(op.Div(count - 1, op.index(2)), op.index(0))
    value, where = _taken(op, x, axis, place, keepdim)
    none = op.Equal(count if keepdim else op.squeeze(count, [axis]), op.index(0))
    return [op.where(none, op.like(math.nan, x), value), where]


def _flat(op: Builder, x: Tensor) -> Tensor:
    return op.Reshape(x, op.ints([-1]))


@rule("median")
def median(op: Builder, x: Tensor) -> Tensor:
    return _middle(op, _flat(op, x), 0, keepdim=False)[0]


@rule("nanmedian")
def nanmedian(op: Builder, x: Tensor) -> Tensor:
    return _middle_of_numbers(op, _flat(op, x), 0, keepdim=False)[0]


def _of_a_scalar(op: Builder, x: Tensor) -> list[Tensor]:
    return [op.Identity(x), op.index(0)]


@rule("median.dim")
def median_dim(op: Builder, x: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    rank = op.rank(x, "the numbers")
    return _middle(op, x, dim % rank, keepdim) if rank else _of_a_scalar(op, x)


@rule("nanmedian.dim")
def nanmedian_dim(op: Builder, x: Tensor, dim: int, keepdim: bool = False) -> Sequence[Tensor]:
    rank = op.rank(x, "the numbers")
    return _middle_of_numbers(op, x, dim % rank, keepdim) if rank else _of_a_scalar(op, x)


@rule("kthvalue")
def kthvalue(op: Builder, x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sequence[Tensor]:
    """What is not a number is larger than all others."""
    rank = op.rank(x, "the numbers")
    if not rank:
        return _of_a_scalar(op, x)
    axis = dim % rank
    value, where = _taken(op, x, axis, op.Reshape(op.index(k - 1), op.ints([1] * rank)), keepdim)
    holes = _holes(op, x)
    if holes is None:
        return value, where
    numbers = op.sum(op.Not(holes).cast(ir.DataType.INT64), [axis], keepdims=keepdim)
    return op.where(numbers < k, op.like(math.nan, x), value), where


@rule("mode")
def mode(op: Builder, x: Tensor, dim: int = -1, keepdim: bool = False) -> Sequence[Tensor | None]:
    """The most frequent number, of several the smallest. Where it is PyTorch does not define."""
    rank = op.rank(x, "the numbers")
    if not rank:
        return _of_a_scalar(op, x)
    axis = dim % rank
    rows = op.transpose(x, [*(i for i in range(rank) if i != axis), axis])
    same = op.Equal(op.unsqueeze(rows, [-1]), op.unsqueeze(rows, [-2]))
    counts = op.sum(same.cast(ir.DataType.INT64), [-1], keepdims=False)
    most = op.Equal(counts, op.ReduceMax(counts, op.ints([-1]), keepdims=1))
    largest = op.ReduceMax(_sortable(rows), op.ints([-1]), keepdims=1)
    value = op.ReduceMin(op.Where(most, _sortable(rows), largest), op.ints([-1]), keepdims=0).cast(x.dtype)
    return (op.unsqueeze(value, [axis]) if keepdim else value), None


def _before(op: Builder, edges: Tensor, x: Tensor, right: bool, narrow: bool) -> Tensor:
    """How many edges, along the last axis, lie before each number: all, where there is none."""
    edges, x = (op.unsqueeze(edges, [-2]), op.unsqueeze(x, [-1])) if edges.rank != 1 else (edges, op.unsqueeze(x, [-1]))
    before = op.Not(edges > x if right else edges >= x)
    count = op.sum(before.cast(ir.DataType.INT64), [-1], keepdims=False)
    return count.cast(ir.DataType.INT32) if narrow else count


@rule("searchsorted.Tensor")
def searchsorted(
    op: Builder,
    edges: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        raise UnsupportedError("a sorter is not supported")
    if edges.dtype != x.dtype:
        raise UnsupportedError(f"{x.dtype.name.lower()} cannot be sorted among {edges.dtype.name.lower()}")
    return _before(op, edges, x, right or side == "right", out_int32)


@rule("searchsorted.Scalar")
def searchsorted_scalar(op: Builder, edges: Tensor, x: float, **options: bool) -> Tensor:
    return searchsorted(op, edges, op.like(x, edges), **options)  # type: ignore[arg-type]
