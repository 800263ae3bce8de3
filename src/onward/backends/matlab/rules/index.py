"""Ops that pick, place, sort or count elements by index."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.host import is_nonnegative
from onward.backends.matlab.rules.shape import dim_of, dims_of, reshaped
from onward.backends.matlab.rules.slice import from_the_end
from onward.backends.matlab.target import ALL, END, axis_dim, moves, ops, rank_of
from onward.errors import UnsupportedError
from onward.spec import index as spec


@moves("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    rank, dim = rank_of(e, x), axis_dim(e, x, p.axis)
    chosen = e.host(indices)
    place = None if chosen is None or chosen.ndim else _place(e, x, p.axis, chosen.item())
    if place is not None:
        part = x[tuple(place if d == dim else ALL for d in range(1, max(rank, 2) + 1))] if rank > 1 else x[place]
        dims = dims_of(e, x)
        if dim == rank:
            return part
        return reshaped(e, part, [n for i, n in enumerate(dims) if i != p.axis])
    return ops.gather(x, indices, dim, rank, rank_of(e, indices))


def _place(e: Emitter, x: Expr, axis: int, index: Any) -> Any:
    """An index as MATLAB counts; None where its sign is not known."""
    if not isinstance(index, Expr):
        size = dim_of(e, x, axis)
        return index + 1 if index >= 0 else from_the_end(END if isinstance(size, Expr) else size, -index - 1)
    return index + 1 if is_nonnegative(e, index) else None


@moves("GatherElements")
def gather_elements(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    return ops.gather_elements(x, indices, axis_dim(e, x, p.axis), rank_of(e, x))


@moves("GatherND")
def gather_nd(e: Emitter, x: Expr, indices: Expr, p: spec.GatherND) -> Expr:
    rank = rank_of(e, x)
    inner = rank - _width(e, indices) - p.batch_dims
    return ops.gather_nd(x, indices, inner, rank, p.batch_dims, rank_of(e, indices))


def _width(e: Emitter, indices: Expr) -> int:
    """How many axes places are along."""
    width = (e.shape(indices) or (None,))[-1]
    if width is None:
        raise UnsupportedError("how many axes the indices are for is not known, so the result has no known rank")
    return width


@moves("Scatter", "ScatterElements")
def scatter_elements(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterElements) -> Expr:
    return ops.scatter_elements(x, indices, updates, axis_dim(e, x, p.axis), rank_of(e, x), p.reduction)


@moves("ScatterND")
def scatter_nd(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterND) -> Expr:
    rank = rank_of(e, x)
    return ops.scatter_nd(x, indices, updates, rank - _width(e, indices), rank, p.reduction)


@moves("TensorScatter")
def tensor_scatter(e: Emitter, cache: Expr, update: Expr, start: Expr | None = None, *, p: spec.TensorScatter) -> Expr:
    return ops.write_cache(cache, update, start, axis_dim(e, cache, p.axis), rank_of(e, cache), p.mode == "circular")


@moves("OneHot")
def one_hot(e: Emitter, indices: Expr, depth: Expr, values: Expr, p: spec.OneHot) -> Expr:
    rank = rank_of(e, indices)
    axis = p.axis + rank + 1 if p.axis < 0 else p.axis
    number = e.scalar(depth, 1)
    return ops.one_hot(indices, depth if number is None else number, values, rank + 1 - axis, rank)


@moves("NonZero")
def nonzero(e: Emitter, x: Expr) -> Expr:
    return ops.nonzero(x, rank_of(e, x))


@moves("Unique")
def unique(e: Emitter, x: Expr, p: spec.Unique) -> Unpack:
    dim = 0 if p.axis is None else axis_dim(e, x, p.axis)
    return Unpack(ops.unique_parts(x, dim, bool(p.sorted)))


@moves("TopK")
def topk(e: Emitter, x: Expr, k: Expr, p: spec.TopK) -> Unpack:
    number = e.scalar(k, 1)
    return Unpack(ops.top_k(x, k if number is None else number, axis_dim(e, x, p.axis), bool(p.largest)))


@moves("Compress")
def compress(e: Emitter, x: Expr, condition: Expr, p: spec.Compress) -> Expr:
    if p.axis is None:
        return ops.compress(Name("reshape")(x, None, 1), condition, 1)
    return ops.compress(x, condition, axis_dim(e, x, p.axis))


@moves("ReverseSequence")
def reverse_sequence(e: Emitter, x: Expr, lengths: Expr, p: spec.ReverseSequence) -> Expr:
    return ops.reverse_sequence(x, lengths, axis_dim(e, x, p.time_axis), axis_dim(e, x, p.batch_axis))
