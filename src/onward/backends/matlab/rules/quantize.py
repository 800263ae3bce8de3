"""Quantization, and products of quantized tensors, whose sums are of floats that hold them exactly."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Binary, Expr, Name
from onward.backends.emit.facts import is_exact_in_single, is_zero, offset
from onward.backends.emit.settings import minus, plus
from onward.backends.matlab.rules.cast import converted
from onward.backends.matlab.rules.conv import window_of
from onward.backends.matlab.rules.linear import product
from onward.backends.matlab.target import HALVES, class_of, ops, rank_of, rule
from onward.backends.shared import quantize as shared
from onward.spec.cast import INTEGER_RANGES, SMALL_FLOATS, Cast
from onward.spec.conv import Conv
from onward.spec.quantize import Dequantize, Quantize, Steps

_D = ir.DataType
_NARROW = (_D.INT4, _D.UINT4, _D.INT2, _D.UINT2)
"""Integers that are kept in a wider class, which does not end where they do."""
TERMS = 2**31 // 255**2
"""So many products of 8-bit integers do not leave the range of int32."""


@rule("QuantizeLinear")
def quantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Quantize) -> Expr:
    """MATLAB's own conversion to integers keeps within their range."""
    divisor = spread(e, x, scale, p, "scale", p.precision if e.dtype(scale) == p.precision else None)
    ratio = _divided(e, x, scale, divisor, p)
    offsets = _zero_points(e, x, zero_point, p)
    if p.dtype in SMALL_FLOATS:
        return converted(plus(ratio, offsets), _D.FLOAT, Cast(p.dtype, int(p.saturate)))
    whole = plus(ops.round_even(ratio), offsets)
    if p.dtype in _NARROW:
        whole = ops.clip(whole, *INTEGER_RANGES[p.dtype])
    return Name(class_of(p.dtype))(whole)


def _divided(e: Emitter, x: Expr, scale: Expr, divisor: Any, p: Quantize) -> Expr:
    """The input in steps of the scale, in the precision that the file asks for."""
    if shared.is_tensor(divisor) and e.dtype(scale) != p.precision:
        divisor = converted(divisor, e.dtype(scale), Cast(p.precision))
    own = x if e.dtype(x) == p.precision else converted(x, e.dtype(x), Cast(p.precision))
    if not isinstance(divisor, Expr) and divisor == 1:
        return own
    ratio = own / divisor
    return converted(ratio, _D.FLOAT, Cast(p.precision)) if p.precision in HALVES else ratio


@rule("DequantizeLinear")
def dequantize(e: Emitter, x: Expr, scale: Expr, zero_point: Expr | None = None, *, p: Dequantize) -> Expr:
    factor = spread(e, x, scale, p, "scale", _D.FLOAT)
    distance = minus(Name("single")(x), _zero_points(e, x, zero_point, p))
    return distance if not isinstance(factor, Expr) and factor == 1 else Binary("*", distance, factor)


def _zero_points(e: Emitter, x: Expr, zero_point: Expr | None, p: Steps) -> Any:
    """What is added to or taken from numbers in single precision; None for nothing."""
    if zero_point is None:
        return None
    points = spread(e, x, zero_point, p, "zero_point", _D.FLOAT)
    if shared.is_tensor(points) and is_zero(e, zero_point):
        return None
    return Name("single")(points) if shared.is_tensor(points) else points


def spread(e: Emitter, x: Expr, parameter: Expr, p: Steps, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point, so that it broadcasts with `x`; `dtype` is that of a tensor which may hold a number."""
    alone = shared.per_tensor(e, x, parameter, role, dtype)
    if alone is not None:
        return alone
    rank = rank_of(e, x)
    if rank == 0:
        return parameter
    dim = rank - p.axis % rank
    along = column(parameter, dim) if rank_of(e, parameter) == 1 else parameter
    return ops.per_block(along, dim, p.block_size, Name("size")(x, dim)) if p.block_size else along


def column(parameter: Expr, dim: int) -> Expr:
    """A vector along a dimension."""
    if dim <= 2:
        return parameter if dim == 1 else parameter.T
    return Name("reshape")(parameter, *[1] * (dim - 1), Name("[]"))


@rule("DynamicQuantizeLinear")
def dynamic_quantize(e: Emitter, x: Expr) -> Unpack:
    return Unpack(ops.dynamic_quantize(x), roles=("", "scale", "zero_point"))


@rule("MatMulInteger")
def integer_matmul(
    e: Emitter, a: Expr, b: Expr, a_zero_point: Expr | None = None, b_zero_point: Expr | None = None
) -> Expr:
    terms = (e.shape(b) or (None,))[-2:][0]
    kind = _exact(e, a, a_zero_point, b, b_zero_point, (-2,), terms)
    rows = offset(e, a_zero_point, "zero_point")
    if isinstance(rows, Arg) and e.rank(rows) == 1 and e.shape(rows) != (1,):
        rows = rows.T
    left = _distance(a, rows, kind)
    right = _distance(b, offset(e, b_zero_point, "weight_zero_point"), kind)
    return _int32(product(e, a, b, left, right), terms)


@rule("ConvInteger")
def integer_conv(
    e: Emitter, x: Expr, w: Expr, x_zero_point: Expr | None = None, w_zero_point: Expr | None = None, *, p: Conv
) -> Expr:
    rank, shape = rank_of(e, x), e.shape(w) or ()
    known = [n for n in shape[1:] if n is not None]
    terms = math.prod(known) if shape and len(known) == len(shape) - 1 else None
    kind = _exact(e, x, x_zero_point, w, w_zero_point, tuple(range(1, rank)), terms)
    points = offset(e, w_zero_point, "weight_zero_point")
    if isinstance(points, Arg) and e.rank(points) == 1 and e.shape(points) != (1,):
        points = column(points, rank)
    image = _distance(x, offset(e, x_zero_point, "zero_point"), kind)
    return _int32(ops.conv(image, _distance(w, points, kind), None, *window_of(p)), terms)


def _exact(e: Emitter, *operands: Any) -> str:
    """The class in which sums are exact."""
    return "single" if is_exact_in_single(e, *operands) else "double"


def _distance(x: Expr, zero_point: Any, kind: str) -> Expr:
    """How far integers are from their zero point."""
    return minus(Name(kind)(x), Name(kind)(zero_point) if shared.is_tensor(zero_point) else zero_point)


def _int32(total: Expr, terms: int | None) -> Expr:
    """Sums as int32, of which they keep the low bits where they may be too large."""
    return Name("int32")(total) if terms is not None and terms <= TERMS else ops.to_integer(total, "int32")
