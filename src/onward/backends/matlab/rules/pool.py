"""Pools."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.matlab.rules.conv import padding
from onward.backends.matlab.target import ops, rank_of, row, rule
from onward.spec.pool import AveragePool, GlobalLpPool, LpPool, MaxPool, MaxRoiPool, MaxUnpool, Pool


def window_of(p: Pool) -> list[Any]:
    """Kernel, strides, padding, dilations, and whether windows may begin inside and end outside."""
    win = p.window
    each = [row(reversed(numbers)) for numbers in (win.kernel, win.strides, win.dilations)]
    return [each[0], each[1], padding(win), each[2], bool(p.ceil_mode)]


@rule("MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Any:
    rank_of(e, x)
    if e.used(1):
        return Unpack(ops.max_pool_indices(x, *window_of(p), p.storage_order))
    return ops.max_pool(x, *_shown(p, window_of(p)))


def _shown(p: Pool, options: list[Any]) -> list[Any]:
    """Without what is as usual at the end: dilations of 1, and what is not asked for."""
    while options[-1] is False:
        options.pop()
    if len(options) == 4 and set(p.window.dilations) == {1}:
        options.pop()
    return options


@rule("AveragePool")
def average_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr:
    rank_of(e, x)
    return ops.average_pool(x, *_shown(p, [*window_of(p), bool(p.count_include_pad)]))


@rule("LpPool")
def lp_pool(e: Emitter, x: Expr, p: LpPool) -> Expr:
    rank_of(e, x)
    return ops.lp_pool(x, *window_of(p), p.p)


def spatial(e: Emitter, x: Expr) -> Expr:
    """The dimensions of an image."""
    return row(range(1, rank_of(e, x) - 1))


@rule("GlobalAveragePool")
def global_average(e: Emitter, x: Expr) -> Expr:
    return ops.mean(x, spatial(e, x))


@rule("GlobalMaxPool")
def global_max(e: Emitter, x: Expr) -> Expr:
    return ops.largest(x, spatial(e, x))


@rule("GlobalLpPool")
def global_lp(e: Emitter, x: Expr, p: GlobalLpPool) -> Expr:
    return ops.real_power(ops.total(Name("abs")(x) ** p.p, spatial(e, x)), 1 / p.p)


@rule("MaxUnpool")
def max_unpool(e: Emitter, x: Expr, indices: Expr, output_shape: Expr | None = None, *, p: MaxUnpool) -> Expr:
    count = len(p.kernel_shape)
    pads = p.pads or (0,) * 2 * count
    shape = None if output_shape is None else e.numbers(output_shape)
    wanted = shape if shape is None or isinstance(shape, Expr) else row(shape)
    strides = row(reversed(p.strides or (1,) * count))
    ends = row([*reversed(pads[:count]), *reversed(pads[count:])])
    return ops.max_unpool(x, indices, row(reversed(p.kernel_shape)), strides, ends, wanted)


@rule("MaxRoiPool")
def max_roi_pool(e: Emitter, x: Expr, rois: Expr, p: MaxRoiPool) -> Expr:
    return ops.max_roi_pool(x, rois, row(p.pooled_shape), p.spatial_scale)
