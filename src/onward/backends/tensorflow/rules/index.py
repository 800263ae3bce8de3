"""Ops that pick, place, sort or count elements by index."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.shared.shape import axis_of, subscript
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.rules.shape import along
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.errors import UnsupportedError
from onward.spec import index as spec

_D = ir.DataType


@rule("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    chosen = e.host(indices)
    if chosen is not None and chosen.ndim == 0:
        found = subscript(x, {p.axis: chosen.item()}, e.rank(x))
        assert found is not None
        return found
    function = tf.gather if _from_front(e, indices) else ops.gather
    return function(x, indices, **along(p.axis))


def _from_front(e: Emitter, indices: Expr) -> bool:
    """Whether no index counts from the end, which TensorFlow refuses."""
    known = e.const(indices)
    return known is not None and bool((known >= 0).all())


@rule("GatherElements")
def gather_elements(e: Emitter, x: Expr, indices: Expr, p: spec.Along) -> Expr:
    return ops.gather_elements(x, indices, p.axis)


@rule("GatherND")
def gather_nd(e: Emitter, x: Expr, indices: Expr, p: spec.GatherND) -> Expr:
    batch = {"batch_dims": p.batch_dims} if p.batch_dims else {}
    return (tf.gather_nd if _from_front(e, indices) else ops.gather_nd)(x, indices, **batch)


@rule("Scatter", "ScatterElements")
def scatter_elements(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterElements) -> Expr:
    return ops.scatter_elements(x, indices, updates, p.axis, **_reduction(e, x, p.reduction))


@rule("ScatterND")
def scatter_nd(e: Emitter, x: Expr, indices: Expr, updates: Expr, p: spec.ScatterND) -> Expr:
    if p.reduction == "none" and _from_front(e, indices):
        return tf.tensor_scatter_nd_update(x, indices, updates)
    return ops.scatter_nd(x, indices, updates, **_reduction(e, x, p.reduction))


def _reduction(e: Emitter, x: Expr, reduction: str) -> dict[str, str]:
    if reduction == "none":
        return {}
    if e.dtype(x) == _D.STRING:
        raise UnsupportedError(f"strings cannot be combined by the reduction {reduction!r}")
    return {"reduction": reduction}


@rule("TensorScatter")
def tensor_scatter(e: Emitter, cache: Expr, update: Expr, start: Expr | None = None, *, p: spec.TensorScatter) -> Expr:
    options = {"circular": True} if p.mode == "circular" else {}
    return ops.write_cache(cache, update, start, p.axis, **options)


@rule("OneHot")
def one_hot(e: Emitter, indices: Expr, depth: Expr, values: Expr, p: spec.OneHot) -> Expr:
    mask = ops.one_hot(indices, scalar(e, depth), p.axis)
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
def unique(e: Emitter, x: Expr, p: spec.Unique) -> Any:
    options = {} if p.sorted else {"ascending": False}
    if p.axis is None:
        return tuple(e.unpack(ops.unique(x, **options), 4))
    return tuple(e.unpack(ops.unique_slices(x, p.axis, **options), 4))


@rule("TopK")
def topk(e: Emitter, x: Expr, k: Expr, p: spec.TopK) -> Any:
    rank, count = e.rank(x), scalar(e, k)
    if p.largest and (p.axis == -1 or (rank is not None and p.axis == rank - 1)):
        return tuple(e.unpack(tf.math.top_k(x, count, index_type=tf.int64), 2))
    options = {} if p.largest else {"largest": False}
    return tuple(e.unpack(ops.top_k(x, count, p.axis, **options), 2))


@rule("Compress")
def compress(e: Emitter, x: Expr, condition: Expr, p: spec.Compress) -> Expr:
    kept = tf.where(condition)[:, 0]
    if p.axis is None:
        return tf.gather(tf.reshape(x, [-1]), kept)
    return tf.gather(x, kept, **along(axis_of(e, x, p.axis)))


@rule("ReverseSequence")
def reverse_sequence(e: Emitter, x: Expr, lengths: Expr, p: spec.ReverseSequence) -> Expr:
    return tf.reverse_sequence(x, lengths, seq_axis=p.time_axis, batch_axis=p.batch_axis)
