"""Pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.shared.window import pool_arguments
from onward.backends.torch.target import F, ops, rule, torch
from onward.backends.torch.window import options, padded, short, spatial
from onward.spec.window import Window, window

Ints = Sequence[int]
_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_FLOATS = (*_WIDE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@rule("MaxPool")
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
    win = _window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    rank = len(kernel_shape)
    general = pool_arguments(win, ceil_mode, tuple)
    function: Expr = getattr(F, f"max_pool{rank}d")
    arguments = {**_arguments(win, bool(ceil_mode)), **options(dilation=short(win.dilations))}
    if e.used(1):
        if rank > 3 or e.dtype(x) not in _FLOATS or not _takes(win) or storage_order:
            return Unpack(ops.max_pool_indices(x, **general, **options(column_major=bool(storage_order))))
        y, index = e.unpack(function(x, short(win.kernel), **arguments, return_indices=True), 2)
        return y, ops.index_over_planes(index, x)
    if rank > 3 or (e.dtype(x) not in _FLOATS and rank == 1):
        return ops.max_pool_nd(x, **general)
    if not _takes(win):
        if ceil_mode or e.dtype(x) not in _FLOATS:
            return ops.max_pool_nd(x, **general)
        x = padded(x, win, -float("inf"), pool=True)
    return function(x, short(win.kernel), **arguments)


@rule("AveragePool")
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
    win = _window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    rank = len(kernel_shape)
    overhang = bool(ceil_mode)
    kinds = _WIDE if rank == 3 else _FLOATS
    uneven = not _takes(win)
    if (
        rank > 3
        or set(win.dilations) != {1}
        or e.dtype(x) not in kinds
        or (uneven and (overhang or not count_include_pad))
    ):
        return ops.avg_pool_nd(
            x, **pool_arguments(win, ceil_mode, tuple), **options(count_include_pad=bool(count_include_pad))
        )
    if uneven:
        x = padded(x, win, pool=True)
    counted = {} if uneven or win.unpadded or count_include_pad else {"count_include_pad": False}
    function: Expr = getattr(F, f"avg_pool{rank}d")
    return function(x, short(win.kernel), **_arguments(win, overhang), **counted)


@rule("LpPool")
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
    win = _window(e, x, kernel_shape, strides, pads, dilations, auto_pad)
    return ops.lp_pool_nd(x, **pool_arguments(win, ceil_mode, tuple), **({} if p == 2 else {"p": p}))


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
def global_lp_pool(e: Emitter, x: Expr, *, p: int = 2) -> Expr:
    return torch.linalg.vector_norm(x, p, _spatial_axes(x, e.rank(x)), keepdim=True)


@rule("MaxUnpool")
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
    keywords = given(stride=strides and tuple(strides), pads=pads and tuple(pads), output_shape=shape)
    return ops.max_unpool_nd(x, indices, tuple(kernel_shape), **keywords)


def _window(
    e: Emitter, x: Expr, kernel: Ints, strides: Ints | None, pads: Ints | None, dilations: Ints | None, auto_pad: str
) -> Window:
    sizes = spatial(e, x)
    return window(kernel, sizes, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad, pool=True)


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


@rule("MaxRoiPool")
def max_roi_pool(e: Emitter, x: Expr, rois: Expr, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Expr:
    scale = {} if spatial_scale == 1 else {"scale": spatial_scale}
    return ops.max_roi_pool(x, rois, tuple(pooled_shape), **scale)
