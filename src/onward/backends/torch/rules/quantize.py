"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_zero
from onward.backends.emit.settings import plus
from onward.backends.emit.weights import Part
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.rules.cast import small_float
from onward.backends.torch.target import TARGET, dtype, ops, rule, torch
from onward.backends.torch.window import options, padded, padding, short
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv
from onward.spec.quantize import Dequantize, DynamicConv, DynamicLinear, Quantize, Steps

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    divisor = spread(e, x, scale, p, "scale", p.precision if e.dtype(scale) == p.precision else None)
    ratio, offset = shared.divided(e, x, scale, divisor, p), _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return small_float(plus(ratio, offset), p.dtype, p.saturate)
    whole = torch.round(ratio)
    if p.precision in (_D.FLOAT16, _D.BFLOAT16):
        whole = whole.to(torch.float32)
    return torch.clamp(plus(whole, offset), *INTEGER_RANGES[p.dtype]).to(dtype(p.dtype))


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    factor = spread(e, x, scale, p, "scale", _D.FLOAT)
    return shared.multiplied(e, x, scale, factor, _zero_points(e, x, zero_point, p), p)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if zero_point is None:
        return None
    of = e.dtype(zero_point)
    points = spread(e, x, zero_point, p, "zero_point", of if of in (_D.INT8, _D.UINT8) else _D.FLOAT)
    if shared.is_tensor(points) and is_zero(e, zero_point):
        return None
    return points.to(torch.float32) if of in FLOAT8 and shared.is_tensor(points) else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point, so that it broadcasts with `x`; `dtype` is that of a tensor which may hold a number."""
    alone = shared.per_tensor(e, x, parameter, role, dtype)
    if alone is not None:
        return alone
    rank, own = e.rank(x), e.rank(parameter)
    if p.block_size and own != 1:
        return ops.per_block(parameter, x.shape, p.axis, p.block_size)
    if not rank or own is None or p.block_size:
        return ops.per_axis(parameter, x.shape, p.axis, p.block_size)
    after = rank - 1 - p.axis % rank
    return parameter.reshape(-1, *[1] * after) if after else parameter


@rule("ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    window = lists(e, stride=p.strides, padding=padding(p), dilation=p.dilations)
    return shared.integer_conv(e, x, x, w, x_zero_point, w_zero_point, **window, **options(groups=p.group))


@rule("onward::DynamicLinear")
def dynamic_linear(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: DynamicLinear,
) -> Expr:
    kind = _layer_options(e, weight, scale, zero_point, bias, p)
    layer = ops.DynamicLinear(*(e.shape(weight) or ()), **kind)
    return _dynamic_layer(e, layer, "linear", weight, scale, zero_point, bias)(x)


@rule("onward::DynamicConv")
def dynamic_conv(
    e: Emitter,
    x: Expr,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    bias: Expr | None = None,
    *,
    p: DynamicConv,
) -> Expr:
    """Padding beforehand is the same: the range of the input always includes zero."""
    win, (out, channels, *kernel) = p.window, e.shape(weight) or ()
    assert win is not None and channels is not None
    if not win.symmetric:
        x = padded(x, win)
    window = options(
        stride=short(win.strides),
        padding=short(win.begin) if win.begin and win.symmetric else 0,
        dilation=short(win.dilations),
        groups=p.group,
    )
    kind = _layer_options(e, weight, scale, zero_point, bias, p)
    layer = ops.DynamicConv(channels * p.group, out, tuple(kernel), **window, **kind)
    return _dynamic_layer(e, layer, "conv", weight, scale, zero_point, bias)(x)


def _layer_options(
    e: Emitter,
    weight: Expr,
    scale: Expr,
    zero_point: Expr | None,
    bias: Expr | None,
    p: DynamicLinear | DynamicConv,
) -> dict[str, Any]:
    """What a layer of 8-bit weights must be told beside its sizes."""
    points = None if zero_point is None else e.const(zero_point)
    scales = e.const(scale)
    assert scales is not None
    told = {
        "bias": None if bias is not None else False,
        "per_channel": scales.size > 1 or None,
        "zero_point": None if points is None else True,
        "dtype": None if e.dtype(weight) == _D.INT8 else dtype(_D.UINT8),
        "sums": None if p.in_single else torch.float64,
    }
    return {name: value for name, value in told.items() if value is not None}


def _dynamic_layer(
    e: Emitter, layer: Expr, hint: str, weight: Expr, scale: Expr, zero_point: Expr | None, bias: Expr | None
) -> Expr:
    parts = {"weight": weight, "scale": Part(scale, _single, "single")}
    if zero_point is not None:
        parts["zero_point"] = Part(zero_point, _single, "single")
    return e.module(layer, hint, ("weight", "scale", "zero_point"), **parts, bias=bias)


def _single(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One number without an axis."""
    return a.reshape(()) if a.size == 1 else a
