"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.facts import is_zero
from onward.backends.shared import quantize as shared
from onward.backends.shared.conv import lists
from onward.backends.tensorflow.rules.cast import small_float
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule, tf
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
        divisor = tf.cast(divisor, dtype(division))
    ratio = x if e.dtype(x) == division else tf.cast(x, dtype(division))
    if isinstance(divisor, Expr) or divisor != 1:
        ratio = ratio / divisor
    offset = _zero_points(e, x, zero_point, axis, block_size)
    if target in SMALL_FLOATS:
        return small_float(ratio if offset is None else ratio + offset, target, bool(saturate))
    whole = tf.round(ratio)
    if division != _D.FLOAT and division != _D.DOUBLE:
        whole = tf.cast(whole, tf.float32)
    moved = whole if offset is None else whole + offset
    return tf.cast(tf.clip_by_value(moved, *INTEGER_RANGES[target]), dtype(target))


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
        factor = tf.cast(factor, tf.float32)
    offset = _zero_points(e, x, zero_point, axis, block_size)
    values = tf.cast(x, tf.float32)
    product = Binary("*", values if offset is None else values - offset, factor)
    return product if target == _D.FLOAT else tf.cast(product, dtype(target))


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, axis: int, block_size: int) -> Any:
    """What is added to or taken from float32 numbers; None for nothing."""
    if zero_point is None or is_zero(e, zero_point):
        return None
    points = spread(e, x, zero_point, axis, block_size)
    return tf.cast(points, tf.float32) if isinstance(points, Expr) else points


def spread(e: Emitter, x: Expr, parameter: Any, axis: int, block_size: int = 0) -> Any:
    """A scale or zero point, given per tensor, per slice along `axis` or per block, so that it broadcasts with `x`."""
    number = e.scalar(parameter, e.rank(x))
    if number is not None:
        return number
    rank, own, shape = e.rank(x), e.rank(parameter), e.shape(parameter)
    if own == 0 or (rank and shape == (1,)):
        return parameter
    if block_size and own != 1:
        return ops.per_block(parameter, x, axis, block_size)
    if not rank or own is None or block_size or shape is None or shape[0] is None:
        return ops.per_axis(parameter, x, axis, **({"block_size": block_size} if block_size else {}))
    after = rank - 1 - axis % rank
    return tf.reshape(parameter, [-1, *[1] * after]) if after else parameter


@rule("onward::FakeQuantize")
def fake_quantize(e: Emitter, x: Expr, *, low: float, high: float) -> Expr:
    return tf.quantization.fake_quant_with_min_max_args(x, low, high)


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
