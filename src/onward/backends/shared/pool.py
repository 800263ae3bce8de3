"""Pools that no framework has, as helpers over any window."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import changed, given, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.pool import LpPool, MaxRoiPool, MaxUnpool, Pool


def lp_pool(e: Emitter, x: Expr, p: LpPool) -> Expr:
    return ops.lp_pool_nd(x, **pool_arguments(e, p), **changed(p, "p"))


def max_unpool(e: Emitter, x: Expr, indices: Expr, output_shape: Expr | None = None, *, p: MaxUnpool) -> Expr:
    each = e.target.each
    shape = None if output_shape is None else e.numbers(output_shape)
    keywords = given(stride=p.strides and each(p.strides), pads=p.pads and each(p.pads), output_shape=shape)
    return ops.max_unpool_nd(x, indices, each(p.kernel_shape), **keywords)


def max_roi_pool(e: Emitter, x: Expr, rois: Expr, p: MaxRoiPool) -> Expr:
    return ops.max_roi_pool(x, rois, e.target.each(p.pooled_shape), **changed(p, scale="spatial_scale"))


def pool_arguments(e: Emitter, p: Pool) -> dict[str, Any]:
    """The arguments of helpers that pool over any window."""
    win, each = p.window, e.target.each
    if win.begin is None or win.end is None:
        pads: Any = "same_lower" if win.lower else "same_upper"
    else:
        pads = None if win.unpadded else each((*win.begin, *win.end))
    return options(
        kernel=each(win.kernel),
        stride=None if set(win.strides) == {1} else each(win.strides),
        pads=pads,
        dilation=None if set(win.dilations) == {1} else each(win.dilations),
        ceil_mode=p.ceil_mode,
    )
