"""Pools."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.rules.conv import pairs
from onward.backends.jax.target import jnp, lax, ops, rule
from onward.backends.shared.pool import lp_pool, max_roi_pool, max_unpool, pool_arguments
from onward.spec.pool import AveragePool, GlobalLpPool, MaxPool, Pool
from onward.spec.window import Window

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_FLOATS = (*_WIDE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


rule("LpPool")(lp_pool)
rule("MaxUnpool")(max_unpool)
rule("MaxRoiPool")(max_roi_pool)


@rule("MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Any:
    general = pool_arguments(e, p)
    if e.used(1):
        return Unpack(ops.max_pool_indices(x, **general, **options(column_major=bool(p.storage_order))))
    padding = _padding(p)
    if padding is None or e.dtype(x) not in _FLOATS:
        return ops.max_pool_nd(x, **general)
    return lax.reduce_window(x, -jnp.inf, lax.max, *_window(p.window, padding))


@rule("AveragePool")
def avg_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr:
    padding = _padding(p)
    counts_all = padding == "VALID" or p.count_include_pad
    if padding is None or not counts_all or e.dtype(x) not in _WIDE:
        return ops.avg_pool_nd(x, **pool_arguments(e, p), **options(count_include_pad=bool(p.count_include_pad)))
    return lax.reduce_window(x, 0.0, lax.add, *_window(p.window, padding)) / math.prod(p.window.kernel)


def _padding(p: Pool) -> Any:
    """What `lax.reduce_window` takes for the spatial axes where it makes all windows, else None."""
    win = p.window
    if set(win.dilations) != {1} or win.begin is None or win.end is None:
        return None
    if p.ceil_mode and set(win.strides) != {1}:
        return None
    return "VALID" if win.unpadded else pairs(win.begin, win.end)


def _window(win: Window, padding: Any) -> tuple[Any, ...]:
    amounts = padding if padding == "VALID" else ((0, 0), (0, 0), *padding)
    return (1, 1, *win.kernel), (1, 1, *win.strides), amounts


@rule("GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr:
    return x.mean(_spatial_axes(e, x), keepdims=True)


@rule("GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr:
    return x.max(_spatial_axes(e, x), keepdims=True)


@rule("GlobalLpPool")
def global_lp_pool(e: Emitter, x: Expr, p: GlobalLpPool) -> Expr:
    return ops.global_lp_pool(x, **options(p=None if p.p == 2 else p.p))


def _spatial_axes(e: Emitter, x: Expr) -> Any:
    rank = e.rank(x)
    return tuple(range(2, rank)) if rank is not None else Name("tuple")(Name("range")(2, x.ndim))
