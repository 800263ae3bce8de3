"""Quantization, and products of quantized tensors: helpers whose sums are of floating point."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Binary, Expr, ops
from onward.backends.emit.facts import is_exact_in_single, offset
from onward.backends.emit.settings import Elided, Setting, minus
from onward.backends.emit.target import Rule
from onward.spec.quantize import Dequantize, Quantize

_D = ir.DataType


def per_tensor(e: Emitter, x: Expr, parameter: Expr, role: str, dtype: ir.DataType | None) -> Any:
    """A scale or zero point of the whole of `x`: a number, or the tensor of one; None where there are several.

    Blocks may differ by a number that has a `dtype`; a scale of one does nothing.
    """
    number = e.scalar(parameter, e.rank(x))
    if number is not None:
        is_plain = isinstance(number, Expr) or dtype is None or (role == "scale" and number == 1)
        return number if is_plain or dtype is None else Setting(number, role, dtype)
    return parameter if e.rank(parameter) == 0 or (e.rank(x) and e.shape(parameter) == (1,)) else None


def divided(e: Emitter, x: Expr, scale: Expr, divisor: Any, p: Quantize) -> Expr:
    """The input in steps of the scale, which `divisor` is, so that it broadcasts."""
    cast = e.target.cast
    if is_tensor(divisor) and e.dtype(scale) != p.precision:
        divisor = cast(divisor, p.precision)
    ratio = x if e.dtype(x) == p.precision else cast(x, p.precision)
    return ratio / divisor if isinstance(divisor, Expr) or divisor != 1 else ratio


def multiplied(e: Emitter, x: Expr, scale: Expr, factor: Any, zero_point: Any, p: Dequantize) -> Expr:
    """What integers stand for; `factor` and `zero_point` (None for zero) broadcast."""
    cast = e.target.cast
    if is_tensor(factor) and e.dtype(scale) != _D.FLOAT:
        factor = cast(factor, _D.FLOAT)
    product = Binary("*", minus(cast(x, _D.FLOAT), zero_point), factor)
    return product if p.dtype == _D.FLOAT else cast(product, p.dtype)


def is_tensor(parameter: Any) -> bool:
    return isinstance(parameter, Expr) and not isinstance(parameter, Setting)


def dynamic_quantize(e: Emitter, x: Expr) -> Unpack:
    return Unpack(ops.dynamic_quantize(x), roles=("", "scale", "zero_point"))


def integer_matmul(
    e: Emitter, a: Expr, b: Expr, a_zero_point: Expr | None = None, b_zero_point: Expr | None = None
) -> Expr:
    rows = offset(e, a_zero_point, "zero_point")
    if isinstance(rows, Arg) and e.rank(rows) != 0 and e.shape(rows) != (1,):
        rows = ops.per_row(a_zero_point)
    keywords = given(a_zero_point=rows, b_zero_point=offset(e, b_zero_point, "weight_zero_point"))
    size = (e.shape(b) or (None,))[-2:][0]
    exact = _width(e, a, a_zero_point, b, b_zero_point, (-2,), size)
    return Elided(ops.quantized_matmul(a, b, **keywords, **exact))


def integer_conv(
    e: Emitter, image: Expr, x: Expr, w: Expr, x_zero_point: Expr | None, w_zero_point: Expr | None, **window: Any
) -> Expr:
    """`image` is x as the helper takes it."""
    points = given(
        x_zero_point=offset(e, x_zero_point, "zero_point"), w_zero_point=offset(e, w_zero_point, "weight_zero_point")
    )
    shape = e.shape(w) or ()
    known = [n for n in shape[1:] if n is not None]
    terms = math.prod(known) if shape and len(known) == len(shape) - 1 else None
    exact = _width(e, x, x_zero_point, w, w_zero_point, tuple(range(1, len(shape))), terms)
    return Elided(ops.quantized_conv(image, w, **points, **window, **exact))


def _width(e: Emitter, *operands: Any) -> dict[str, Any]:
    """The float dtype in which the sums are exact: single precision where that is certain, else the default, double."""
    return {"dtype": e.target.dtype(ir.DataType.FLOAT)} if is_exact_in_single(e, *operands) else {}


RULES: dict[str, Rule] = {"DynamicQuantizeLinear": dynamic_quantize, "MatMulInteger": integer_matmul}
