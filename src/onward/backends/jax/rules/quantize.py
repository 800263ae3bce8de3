"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_zero
from onward.backends.emit.settings import plus
from onward.backends.jax.rules.cast import small_float
from onward.backends.jax.rules.conv import conv_padding
from onward.backends.jax.target import TARGET, dtype, jnp, ops, rule
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv
from onward.spec.quantize import Dequantize, Quantize, Steps

_D = ir.DataType
_SUMS = (_D.FLOAT, _D.DOUBLE)

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    divisor = spread(e, x, scale, p, "scale", p.precision if e.dtype(scale) == p.precision else None)
    ratio, offset = _divided(e, x, scale, divisor, p), _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return small_float(plus(ratio, offset), p.dtype, p.saturate)
    whole = jnp.round(ratio)
    if p.precision not in _SUMS:
        whole = whole.astype(jnp.float32)
    return jnp.clip(plus(whole, offset), *INTEGER_RANGES[p.dtype]).astype(dtype(p.dtype))


def _divided(e: Emitter, x: Expr, scale: Expr, divisor: Any, p: Quantize) -> Expr:
    """The input in steps of the scale, by the helper that rounds quotients correctly."""
    if shared.is_tensor(divisor) and e.dtype(scale) != p.precision:
        divisor = divisor.astype(dtype(p.precision))
    whole = x if e.dtype(x) == p.precision else x.astype(dtype(p.precision))
    return ops.quotient(whole, divisor) if isinstance(divisor, Expr) or divisor != 1 else whole


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    factor = spread(e, x, scale, p, "scale", _D.FLOAT)
    return shared.multiplied(e, x, scale, factor, _zero_points(e, x, zero_point, p), p)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if zero_point is None:
        return None
    points = spread(e, x, zero_point, p, "zero_point", _D.FLOAT)
    if shared.is_tensor(points) and is_zero(e, zero_point):
        return None
    return points.astype(jnp.float32) if shared.is_tensor(points) else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point, so that it broadcasts with `x`; `dtype` is that of a tensor which may hold a number."""
    alone = shared.per_tensor(e, x, parameter, role, dtype)
    if alone is not None:
        return alone
    rank, own = e.rank(x), e.rank(parameter)
    if p.block_size and own != 1:
        return ops.per_block(parameter, x.shape, p.axis, p.block_size)
    if not rank or own is None or p.block_size:
        return ops.per_axis(parameter, x.shape, p.axis, **given(block_size=p.block_size or None))
    after = rank - 1 - p.axis % rank
    return parameter.reshape(-1, *[1] * after) if after else parameter


@rule("ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    window = lists(e, strides=p.strides, dilations=p.dilations) | conv_padding(p)
    groups = {} if p.group == 1 else {"groups": p.group}
    return shared.integer_conv(e, x, x, w, x_zero_point, w_zero_point, **window, **groups)
