"""Pools."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.images import around, first, flag, is_last, last, spatial
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


@rule("MaxPool", "onward.nhwc::MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Any:
    general = pool_arguments(e, p)
    if e.used(1):
        call = ops.max_pool_indices(first(e, x), **general, **options(column_major=bool(p.storage_order)))
        return [last(e, y, len(p.window.kernel) + 2) for y in e.unpack(call, 2)] if is_last(e) else Unpack(call)
    padding = _padding(p)
    if padding is None or e.dtype(x) not in _FLOATS:
        return ops.max_pool_nd(x, **general, **flag(e))
    return lax.reduce_window(x, -jnp.inf, lax.max, *_window(e, p.window, padding))


@rule("AveragePool", "onward.nhwc::AveragePool")
def avg_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr:
    padding = _padding(p)
    counts_all = padding == "VALID" or p.count_include_pad
    if padding is None or not counts_all or e.dtype(x) not in _WIDE:
        counted = options(count_include_pad=bool(p.count_include_pad))
        return ops.avg_pool_nd(x, **pool_arguments(e, p), **counted, **flag(e))
    return lax.reduce_window(x, 0.0, lax.add, *_window(e, p.window, padding)) / math.prod(p.window.kernel)


def _padding(p: Pool) -> Any:
    """What `lax.reduce_window` takes for the spatial axes where it makes all windows, else None."""
    win = p.window
    if set(win.dilations) != {1} or win.begin is None or win.end is None:
        return None
    if p.ceil_mode and set(win.strides) != {1}:
        return None
    return "VALID" if win.unpadded else pairs(win.begin, win.end)


def _window(e: Emitter, win: Window, padding: Any) -> tuple[Any, ...]:
    amounts = padding if padding == "VALID" else around(e, padding, (0, 0))
    return around(e, win.kernel), around(e, win.strides), amounts


@rule("GlobalAveragePool", "onward.nhwc::GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr:
    return x.mean(_spatial_axes(e, x), keepdims=True)


@rule("GlobalMaxPool", "onward.nhwc::GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr:
    return x.max(_spatial_axes(e, x), keepdims=True)


@rule("GlobalLpPool")
def global_lp_pool(e: Emitter, x: Expr, p: GlobalLpPool) -> Expr:
    return ops.global_lp_pool(x, **options(p=None if p.p == 2 else p.p))


def _spatial_axes(e: Emitter, x: Expr) -> Any:
    rank = e.rank(x)
    return tuple(spatial(e, rank)) if rank is not None else Name("tuple")(Name("range")(2, x.ndim))
