"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_zero
from onward.backends.emit.settings import plus
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.tensorflow.rules.cast import small_float
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule, tf
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS
from onward.spec.conv import Conv
from onward.spec.quantize import Dequantize, FakeQuantize, Quantize, Steps

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    divisor = spread(e, x, scale, p, "scale", p.precision if e.dtype(scale) == p.precision else None)
    ratio, offset = shared.divided(e, x, scale, divisor, p), _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return small_float(plus(ratio, offset), p.dtype, p.saturate)
    whole = tf.round(ratio)
    if p.precision not in (_D.FLOAT, _D.DOUBLE):
        whole = tf.cast(whole, tf.float32)
    return tf.cast(tf.clip_by_value(plus(whole, offset), *INTEGER_RANGES[p.dtype]), dtype(p.dtype))


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    factor = spread(e, x, scale, p, "scale", _D.FLOAT)
    return shared.multiplied(e, x, scale, factor, _zero_points(e, x, zero_point, p), p)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    points = None if zero_point is None else spread(e, x, zero_point, p, "zero_point", _D.FLOAT)
    if shared.is_tensor(points) and is_zero(e, zero_point):
        return None
    return tf.cast(points, tf.float32) if shared.is_tensor(points) else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point, so that it broadcasts with `x`; `dtype` is that of a tensor which may hold a number."""
    alone = shared.per_tensor(e, x, parameter, role, dtype)
    if alone is not None:
        return alone
    rank, shape = e.rank(x), e.shape(parameter)
    if p.block_size and (shape is None or len(shape) != 1):
        return ops.per_block(parameter, x, p.axis, p.block_size)
    if not rank or p.block_size or shape is None or shape[0] is None:
        return ops.per_axis(parameter, x, p.axis, **changed(p, "block_size"))
    after = rank - 1 - p.axis % rank
    return tf.reshape(parameter, [-1, *[1] * after]) if after else parameter


@rule("onward::FakeQuantize")
def fake_quantize(e: Emitter, x: Expr, p: FakeQuantize) -> Expr:
    return tf.quantization.fake_quant_with_min_max_args(x, p.low, p.high)


@rule("ConvInteger", "onward.nhwc::ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    """Channels are first only where not even the rank was known when the layout was chosen."""
    window = lists(e, strides=p.strides, pads=p.pads, dilations=p.dilations)
    window |= {k: v for k, v in {"group": p.group, "auto_pad": p.auto_pad}.items() if v not in (1, "NOTSET")}
    is_first = not e.node.domain
    image = ops.channels_last(x) if is_first else x
    y = shared.integer_conv(e, image, x, w, x_zero_point, w_zero_point, **window)
    return ops.channels_first(y) if is_first else y
