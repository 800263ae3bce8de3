"""Quantization, and products of quantized tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Binary, Expr
from onward.backends.emit.facts import is_exact_in_single, is_zero, offset
from onward.backends.tensorflow.rules.cast import small_float
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS

_D = ir.DataType
Ints = Sequence[int]


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


@rule("DynamicQuantizeLinear")
def dynamic_quantize(e: Emitter, x: Expr) -> Unpack:
    return Unpack(ops.dynamic_quantize(x))


@rule("MatMulInteger")
def integer_matmul(
    e: Emitter, a: Expr, b: Expr, a_zero_point: Expr | None = None, b_zero_point: Expr | None = None
) -> Expr:
    rows = offset(e, a_zero_point)
    if isinstance(rows, Arg) and e.rank(rows) != 0 and e.shape(rows) != (1,):
        rows = ops.per_row(a_zero_point)
    keywords = given(a_zero_point=rows, b_zero_point=offset(e, b_zero_point))
    size = (e.shape(b) or (None,))[-2:][0]
    return ops.quantized_matmul(a, b, **keywords, **_width(e, a, a_zero_point, b, b_zero_point, (-2,), size))


@rule("ConvInteger")
def integer_conv_first(e: Emitter, *inputs: Expr, **attributes: Any) -> Expr:
    """Only where not even the rank was known when the layout was chosen."""
    return ops.channels_first(integer_conv(e, *inputs, turn=True, **attributes))


@rule("onward.nhwc::ConvInteger")
def integer_conv(
    e: Emitter,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None = None,
    w_zero_point: Expr | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
    turn: bool = False,
) -> Expr:
    shape = e.shape(w)
    sizes = None if shape is None or None in shape[1:] else [n for n in shape[1:] if n is not None]
    axes = tuple(range(1, len(shape or ())))
    return ops.quantized_conv(
        ops.channels_last(x) if turn else x,
        w,
        **given(
            x_zero_point=offset(e, x_zero_point),
            w_zero_point=offset(e, w_zero_point),
            strides=list(strides) if strides and set(strides) != {1} else None,
            pads=list(pads) if pads and set(pads) != {0} else None,
            dilations=list(dilations) if dilations and set(dilations) != {1} else None,
            group=None if group == 1 else group,
            auto_pad=None if auto_pad == "NOTSET" else auto_pad,
        ),
        **_width(e, x, x_zero_point, w, w_zero_point, axes, None if sizes is None else math.prod(sizes)),
    )


def _width(e: Emitter, *operands: Any) -> dict[str, Any]:
    """The float dtype in which the sums are exact: single precision where that is certain, else the default, double."""
    return {"dtype": tf.float32} if is_exact_in_single(e, *operands) else {}
