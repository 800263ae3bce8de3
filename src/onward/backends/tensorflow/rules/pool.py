"""Pools over images that are channels last."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.shared.pool import lp_pool, max_roi_pool, max_unpool, pool_arguments
from onward.backends.tensorflow.target import ops, rule, tf
from onward.backends.tensorflow.window import image_rule, is_same, pad_pairs, short
from onward.spec.pool import AveragePool, GlobalLpPool, MaxPool, MaxUnpool, Pool

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


rule("onward.nhwc::LpPool")(lp_pool)
rule("onward.nhwc::MaxUnpool")(max_unpool)
image_rule("MaxRoiPool")(max_roi_pool)


@rule("onward.nhwc::MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Any:
    win = p.window
    general = pool_arguments(e, p)
    if e.used(1):
        return Unpack(ops.max_pool_indices(x, **general, **({"column_major": True} if p.storage_order else {})))
    padding = pool_padding(p)
    rank = len(win.kernel)
    if padding is None or set(win.dilations) != {1} or not _has_kernel(e, x, rank):
        return ops.max_pool_nd(x, **general)
    if not isinstance(padding, str) and rank != 2:
        return ops.max_pool_nd(x, **general)
    function: Expr = getattr(tf.nn, f"max_pool{rank}d")
    return function(x, short(win.kernel), short(win.strides), padding)


@rule("onward.nhwc::AveragePool")
def avg_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr:
    win = p.window
    padding = pool_padding(p)
    rank = len(win.kernel)
    plain = isinstance(padding, str) and (padding == "VALID" or not p.count_include_pad)
    if not plain or set(win.dilations) != {1} or not _has_kernel(e, x, rank):
        counted = {"count_include_pad": True} if p.count_include_pad else {}
        return ops.avg_pool_nd(x, **pool_arguments(e, p), **counted)
    function: Expr = getattr(tf.nn, f"avg_pool{rank}d")
    return function(x, short(win.kernel), short(win.strides), padding)


@rule("onward.nhwc::GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr:
    return tf.reduce_mean(x, axis=_axes(e, x), keepdims=True)


@rule("onward.nhwc::GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr:
    return tf.reduce_max(x, axis=_axes(e, x), keepdims=True)


@rule("onward.nhwc::GlobalLpPool")
def global_lp_pool(e: Emitter, x: Expr, p: GlobalLpPool) -> Expr:
    return ops.lp_norm(x, _axes(e, x), p.p)


@rule("MaxUnpool")
def max_unpool_first(e: Emitter, x: Expr, indices: Expr, output_shape: Expr | None = None, *, p: MaxUnpool) -> Expr:
    """Where the rank of the result is not known, the image has no layout."""
    return ops.channels_first(max_unpool(e, ops.channels_last(x), ops.channels_last(indices), output_shape, p=p))


def _axes(e: Emitter, x: Expr) -> list[int]:
    rank = e.rank(x)
    assert rank is not None
    return list(range(1, rank - 1))


def _has_kernel(e: Emitter, x: Expr, rank: int) -> bool:
    """Whether TensorFlow pools numbers of this type over so many axes, on every processor."""
    return e.dtype(x) == ir.DataType.FLOAT or (rank < 3 and e.dtype(x) in _FLOATS)


def pool_padding(p: Pool) -> Any:
    """What TensorFlow's pools take: its words, or the amounts, as the maximum over two axes takes them; else None."""
    win = p.window
    wide = any(s > k for s, k in zip(win.strides, win.kernel, strict=True))
    if p.ceil_mode and not (set(win.strides) == {1} or win.same):
        return None
    if is_same(win):
        return None if wide else "SAME"
    if win.unpadded:
        return "VALID"
    if win.begin is None or win.end is None or min((*win.begin, *win.end)) < 0:
        return None
    return pad_pairs(win.begin, win.end)
