"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.facts import is_zero
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.rules.cast import small_float
from onward.backends.torch.target import TARGET, dtype, ops, rule, torch
from onward.backends.torch.window import options, padding
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(
    e: Emitter,
    x: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Expr:
    target = (e.dtype(zero_point) if zero_point is not None else None) or _D(output_dtype or _D.UINT8)
    division = _D(precision) if precision else e.dtype(scale) or _D.FLOAT
    if not division.is_floating_point() or division == _D.FLOAT8E8M0:
        division = _D.FLOAT
    divisor = spread(e, x, scale, axis, block_size)
    if isinstance(divisor, Expr) and e.dtype(scale) != division:
        divisor = divisor.to(dtype(division))
    ratio = x if e.dtype(x) == division else x.to(dtype(division))
    if isinstance(divisor, Expr) or divisor != 1:
        ratio = ratio / divisor
    offset = _zero_points(e, x, zero_point, axis, block_size)
    if target in SMALL_FLOATS:
        return small_float(ratio if offset is None else ratio + offset, target, bool(saturate))
    whole = torch.round(ratio)
    if division in (_D.FLOAT16, _D.BFLOAT16):
        whole = whole.to(torch.float32)
    return torch.clamp(whole if offset is None else whole + offset, *INTEGER_RANGES[target]).to(dtype(target))


@rule("DequantizeLinear")
def dequantize(
    e: Emitter,
    x: Expr,
    scale: Expr,
    zero_point: Expr | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Expr:
    target = _D(output_dtype) if output_dtype else e.dtype(scale) or _D.FLOAT
    factor = spread(e, x, scale, axis, block_size)
    if isinstance(factor, Expr) and e.dtype(scale) != _D.FLOAT:
        factor = factor.to(torch.float32)
    offset = _zero_points(e, x, zero_point, axis, block_size)
    values = x.to(torch.float32)
    product = Binary("*", values if offset is None else values - offset, factor)
    return product if target == _D.FLOAT else product.to(dtype(target))


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, axis: int, block_size: int) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if is_zero(e, zero_point) or zero_point is None:
        return None
    points = spread(e, x, zero_point, axis, block_size)
    return points.to(torch.float32) if e.dtype(zero_point) in FLOAT8 else points


def spread(e: Emitter, x: Expr, parameter: Any, axis: int, block_size: int = 0) -> Any:
    """A scale or zero point, given per tensor, per slice along `axis` or per block, so that it broadcasts with `x`."""
    number = e.scalar(parameter, e.rank(x))
    if number is not None:
        return number
    rank, own, shape = e.rank(x), e.rank(parameter), e.shape(parameter)
    if own == 0 or (rank and shape == (1,)):
        return parameter
    if block_size and own != 1:
        return ops.per_block(parameter, x.shape, axis, block_size)
    if not rank or own is None or block_size:
        return ops.per_axis(parameter, x.shape, axis, block_size)
    after = rank - 1 - axis % rank
    return parameter.reshape(-1, *[1] * after) if after else parameter


@rule("ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    window = lists(e, stride=p.strides, padding=padding(p), dilation=p.dilations)
    return shared.integer_conv(e, x, x, w, x_zero_point, w_zero_point, **window, **options(groups=p.group))
