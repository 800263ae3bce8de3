"""Ops that pick, place, sort or count elements by index."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.rules.shape import along, axis_of, subscript
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.errors import UnsupportedError

_D = ir.DataType


@rule("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    axis = axis_of(e, x, axis)
    chosen = e.host(indices)
    if chosen is not None and chosen.ndim == 0:
        found = subscript(x, {axis: chosen.item()}, e.rank(x))
        assert found is not None
        return found
    function = tf.gather if _from_front(e, indices) else ops.gather
    return function(x, indices, **along(axis))


def _from_front(e: Emitter, indices: Expr) -> bool:
    """Whether no index counts from the end, which TensorFlow refuses."""
    known = e.const(indices)
    return known is not None and bool((known >= 0).all())


@rule("GatherElements")
def gather_elements(e: Emitter, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    return ops.gather_elements(x, indices, axis_of(e, x, axis))


@rule("GatherND")
def gather_nd(e: Emitter, x: Expr, indices: Expr, *, batch_dims: int = 0) -> Expr:
    batch = {"batch_dims": batch_dims} if batch_dims else {}
    return (tf.gather_nd if _from_front(e, indices) else ops.gather_nd)(x, indices, **batch)


@rule("Scatter", "ScatterElements")
def scatter_elements(
    e: Emitter, x: Expr, indices: Expr, updates: Expr, *, axis: int = 0, reduction: str = "none"
) -> Expr:
    return ops.scatter_elements(x, indices, updates, axis_of(e, x, axis), **_reduction(e, x, reduction))


@rule("ScatterND")
def scatter_nd(e: Emitter, x: Expr, indices: Expr, updates: Expr, *, reduction: str = "none") -> Expr:
    if reduction == "none" and _from_front(e, indices):
        return tf.tensor_scatter_nd_update(x, indices, updates)
    return ops.scatter_nd(x, indices, updates, **_reduction(e, x, reduction))


def _reduction(e: Emitter, x: Expr, reduction: str) -> dict[str, str]:
    if reduction == "none":
        return {}
    if e.dtype(x) == _D.STRING:
        raise UnsupportedError(f"strings cannot be combined by the reduction {reduction!r}")
    return {"reduction": reduction}


@rule("TensorScatter")
def tensor_scatter(
    e: Emitter, cache: Expr, update: Expr, start: Expr | None = None, *, axis: int = -2, mode: str = "linear"
) -> Expr:
    options = {"circular": True} if mode == "circular" else {}
    return ops.write_cache(cache, update, start, axis, **options)


@rule("OneHot")
def one_hot(e: Emitter, indices: Expr, depth: Expr, values: Expr, *, axis: int = -1) -> Expr:
    mask = ops.one_hot(indices, scalar(e, depth), axis)
    known, of = e.const(values), e.dtype(values)
    if known is not None and of is not None and of != _D.STRING and known.tolist() == [0, 1]:
        return mask if of == _D.BOOL else tf.cast(mask, dtype(of))
    return tf.where(mask, values[1], values[0])


@rule("NonZero")
def nonzero(e: Emitter, x: Expr) -> Expr:
    found = x if e.dtype(x) == _D.BOOL else Binary("!=", x, 0)
    if e.rank(x) == 0:  # a number has no axis along which it could have a place
        return tf.transpose(tf.where(tf.reshape(found, [1]))[:, :0])
    return tf.transpose(tf.where(found))


@rule("Unique")
def unique(e: Emitter, x: Expr, *, axis: int | None = None, sorted: int = 1) -> Any:
    options = {} if sorted else {"ascending": False}
    if axis is None:
        return tuple(e.unpack(ops.unique(x, **options), 4))
    return tuple(e.unpack(ops.unique_slices(x, axis, **options), 4))


@rule("TopK")
def topk(e: Emitter, x: Expr, k: Expr, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    rank, count = e.rank(x), scalar(e, k)
    if largest and (axis == -1 or (rank is not None and axis == rank - 1)):
        return tuple(e.unpack(tf.math.top_k(x, count, index_type=tf.int64), 2))
    options = {} if largest else {"largest": False}
    return tuple(e.unpack(ops.top_k(x, count, axis, **options), 2))


@rule("Compress")
def compress(e: Emitter, x: Expr, condition: Expr, *, axis: int | None = None) -> Expr:
    kept = tf.where(condition)[:, 0]
    return tf.gather(tf.reshape(x, [-1]), kept) if axis is None else tf.gather(x, kept, **along(axis_of(e, x, axis)))


@rule("ReverseSequence")
def reverse_sequence(e: Emitter, x: Expr, lengths: Expr, *, batch_axis: int = 1, time_axis: int = 0) -> Expr:
    return tf.reverse_sequence(x, lengths, seq_axis=time_axis, batch_axis=batch_axis)
