"""Pools over images that are channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.shared.window import pool_arguments
from onward.backends.tensorflow.target import ops, rule, tf
from onward.backends.tensorflow.window import is_same, pad_pairs, short, spatial
from onward.spec.window import Window, window

Ints = Sequence[int]
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@rule("onward.nhwc::MaxPool")
def max_pool(
    e: Emitter,
    x: Expr,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    storage_order: int = 0,
    strides: Ints | None = None,
) -> Any:
    win = pool_window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    general = pool_arguments(win, ceil_mode, list)
    if e.used(1):
        return Unpack(ops.max_pool_indices(x, **general, **({"column_major": True} if storage_order else {})))
    padding = pool_padding(win, auto_pad, ceil_mode)
    rank = len(kernel_shape)
    if padding is None or set(win.dilations) != {1} or not _has_kernel(e, x, rank):
        return ops.max_pool_nd(x, **general)
    if not isinstance(padding, str) and rank != 2:
        return ops.max_pool_nd(x, **general)
    function: Expr = getattr(tf.nn, f"max_pool{rank}d")
    return function(x, short(win.kernel), short(win.strides), padding)


@rule("onward.nhwc::AveragePool")
def avg_pool(
    e: Emitter,
    x: Expr,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    win = pool_window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    padding = pool_padding(win, auto_pad, ceil_mode)
    rank = len(kernel_shape)
    plain = isinstance(padding, str) and (padding == "VALID" or not count_include_pad)
    if not plain or set(win.dilations) != {1} or not _has_kernel(e, x, rank):
        counted = {"count_include_pad": True} if count_include_pad else {}
        return ops.avg_pool_nd(x, **pool_arguments(win, ceil_mode, list), **counted)
    function: Expr = getattr(tf.nn, f"avg_pool{rank}d")
    return function(x, short(win.kernel), short(win.strides), padding)


@rule("onward.nhwc::LpPool")
def lp_pool(
    e: Emitter,
    x: Expr,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    p: int = 2,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    win = pool_window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    return ops.lp_pool_nd(x, **pool_arguments(win, ceil_mode, list), **({} if p == 2 else {"p": p}))


@rule("onward.nhwc::GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr:
    return tf.reduce_mean(x, axis=_axes(e, x), keepdims=True)


@rule("onward.nhwc::GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr:
    return tf.reduce_max(x, axis=_axes(e, x), keepdims=True)


@rule("onward.nhwc::GlobalLpPool")
def global_lp_pool(e: Emitter, x: Expr, *, p: int = 2) -> Expr:
    return ops.lp_norm(x, _axes(e, x), p)


@rule("MaxUnpool")
def max_unpool_first(e: Emitter, x: Expr, indices: Expr, *more: Expr | None, **attributes: Any) -> Expr:
    """Where the rank of the result is not known, the image has no layout."""
    return ops.channels_first(max_unpool(e, ops.channels_last(x), ops.channels_last(indices), *more, **attributes))


@rule("onward.nhwc::MaxUnpool")
def max_unpool(
    e: Emitter,
    x: Expr,
    indices: Expr,
    output_shape: Expr | None = None,
    *,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    shape = None if output_shape is None else e.numbers(output_shape)
    keywords = given(stride=strides and list(strides), pads=pads and list(pads), output_shape=shape)
    return ops.max_unpool_nd(x, indices, list(kernel_shape), **keywords)


def _axes(e: Emitter, x: Expr) -> list[int]:
    rank = e.rank(x)
    assert rank is not None
    return list(range(1, rank - 1))


def _has_kernel(e: Emitter, x: Expr, rank: int) -> bool:
    """Whether TensorFlow pools numbers of this type over so many axes, on every processor."""
    return e.dtype(x) == ir.DataType.FLOAT or (rank < 3 and e.dtype(x) in _FLOATS)


def pool_window(
    e: Emitter, x: Expr, kernel: Ints, strides: Ints | None, pads: Ints | None, dilations: Ints | None, auto_pad: str
) -> Window:
    sizes = spatial(e, x)
    return window(kernel, sizes, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad, pool=True)


def pool_padding(win: Window, auto_pad: str, ceil_mode: int) -> Any:
    """What TensorFlow's pools take: its words, or the amounts, as the maximum over two axes takes them; else None."""
    wide = any(s > k for s, k in zip(win.strides, win.kernel, strict=True))
    if ceil_mode and not (set(win.strides) == {1} or auto_pad.startswith("SAME")):
        return None
    if is_same(win, auto_pad == "SAME_UPPER"):
        return None if wide else "SAME"
    if win.unpadded:
        return "VALID"
    if win.begin is None or win.end is None or min((*win.begin, *win.end)) < 0:
        return None
    return pad_pairs(win.begin, win.end)
