"""Pools."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.shared.pool import lp_pool, max_roi_pool, max_unpool, pool_arguments
from onward.backends.torch.target import F, ops, rule, torch
from onward.backends.torch.window import options, padded, short
from onward.spec.pool import AveragePool, GlobalLpPool, MaxPool
from onward.spec.window import Window

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_FLOATS = (*_WIDE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


rule("LpPool")(lp_pool)
rule("MaxUnpool")(max_unpool)
rule("MaxRoiPool")(max_roi_pool)


@rule("MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Any:
    win = p.window
    rank = len(win.kernel)
    general = pool_arguments(e, p)
    function: Expr = getattr(F, f"max_pool{rank}d")
    arguments = {**_arguments(win, p.ceil_mode), **options(dilation=short(win.dilations))}
    if e.used(1):
        if rank > 3 or e.dtype(x) not in _FLOATS or not _takes(win) or p.storage_order:
            return Unpack(ops.max_pool_indices(x, **general, **options(column_major=bool(p.storage_order))))
        y, index = e.unpack(function(x, short(win.kernel), **arguments, return_indices=True), 2)
        return y, ops.index_over_planes(index, x)
    if rank > 3 or (e.dtype(x) not in _FLOATS and rank == 1):
        return ops.max_pool_nd(x, **general)
    if not _takes(win):
        if p.ceil_mode or e.dtype(x) not in _FLOATS:
            return ops.max_pool_nd(x, **general)
        x = padded(x, win, -float("inf"), pool=True)
    return function(x, short(win.kernel), **arguments)


@rule("AveragePool")
def avg_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr:
    win = p.window
    rank = len(win.kernel)
    overhang = p.ceil_mode
    kinds = _WIDE if rank == 3 else _FLOATS
    uneven = not _takes(win)
    if (
        rank > 3
        or set(win.dilations) != {1}
        or e.dtype(x) not in kinds
        or (uneven and (overhang or not p.count_include_pad))
    ):
        return ops.avg_pool_nd(x, **pool_arguments(e, p), **options(count_include_pad=bool(p.count_include_pad)))
    if uneven:
        x = padded(x, win, pool=True)
    counted = {} if uneven or win.unpadded or p.count_include_pad else {"count_include_pad": False}
    function: Expr = getattr(F, f"avg_pool{rank}d")
    return function(x, short(win.kernel), **_arguments(win, overhang), **counted)


@rule("GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr:
    rank = e.rank(x)
    if rank in (3, 4, 5):
        function: Expr = getattr(F, f"adaptive_avg_pool{rank - 2}d")
        return function(x, 1)
    return x.mean(_spatial_axes(x, rank), keepdim=True)


@rule("GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr:
    rank = e.rank(x)
    if rank in (3, 4, 5):
        function: Expr = getattr(F, f"adaptive_max_pool{rank - 2}d")
        return function(x, 1)
    return x.amax(_spatial_axes(x, rank), keepdim=True)


@rule("GlobalLpPool")
def global_lp_pool(e: Emitter, x: Expr, p: GlobalLpPool) -> Expr:
    return torch.linalg.vector_norm(x, p.p, _spatial_axes(x, e.rank(x)), keepdim=True)


def _takes(win: Window) -> bool:
    """PyTorch's pools take even padding of up to half the kernel."""
    begin = win.begin or ()
    return win.symmetric and all(0 <= b <= k // 2 for b, k in zip(begin, win.kernel, strict=True))


def _arguments(win: Window, ceil_mode: bool) -> dict[str, Any]:
    padding = short(win.begin) if win.begin is not None and _takes(win) else 0
    stride = {} if win.strides == win.kernel else {"stride": short(win.strides)}
    return {**stride, **options(padding=padding, ceil_mode=ceil_mode)}


def _spatial_axes(x: Expr, rank: int | None) -> Any:
    return tuple(range(2, rank)) if rank is not None else Name("tuple")(Name("range")(2, x.ndim))
