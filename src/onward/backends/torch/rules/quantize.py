"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_zero
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.rules.cast import small_float
from onward.backends.torch.target import TARGET, dtype, ops, rule, torch
from onward.backends.torch.window import options, padding
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv
from onward.spec.quantize import Dequantize, Quantize, Steps

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    ratio, offset = shared.divided(e, x, scale, spread(e, x, scale, p), p), _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return small_float(shared.plus(ratio, offset), p.dtype, p.saturate)
    whole = torch.round(ratio)
    if p.precision in (_D.FLOAT16, _D.BFLOAT16):
        whole = whole.to(torch.float32)
    return torch.clamp(shared.plus(whole, offset), *INTEGER_RANGES[p.dtype]).to(dtype(p.dtype))


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    return shared.multiplied(e, x, scale, spread(e, x, scale, p), _zero_points(e, x, zero_point, p), p)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if is_zero(e, zero_point) or zero_point is None:
        return None
    points = spread(e, x, zero_point, p)
    return points.to(torch.float32) if e.dtype(zero_point) in FLOAT8 else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps) -> Any:
    """A scale or zero point, so that it broadcasts with `x`."""
    alone = shared.per_tensor(e, x, parameter)
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
