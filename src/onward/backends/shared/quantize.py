"""Products of quantized tensors: helpers whose sums are of floating point."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.facts import is_exact_in_single, offset
from onward.backends.emit.target import Rule


def dynamic_quantize(e: Emitter, x: Expr) -> Unpack:
    return Unpack(ops.dynamic_quantize(x))


def integer_matmul(
    e: Emitter, a: Expr, b: Expr, a_zero_point: Expr | None = None, b_zero_point: Expr | None = None
) -> Expr:
    rows = offset(e, a_zero_point)
    if isinstance(rows, Arg) and e.rank(rows) != 0 and e.shape(rows) != (1,):
        rows = ops.per_row(a_zero_point)
    keywords = given(a_zero_point=rows, b_zero_point=offset(e, b_zero_point))
    size = (e.shape(b) or (None,))[-2:][0]
    return ops.quantized_matmul(a, b, **keywords, **_width(e, a, a_zero_point, b, b_zero_point, (-2,), size))


def integer_conv(
    e: Emitter, image: Expr, x: Expr, w: Expr, x_zero_point: Expr | None, w_zero_point: Expr | None, **window: Any
) -> Expr:
    """`image` is x as the helper takes it."""
    points = given(x_zero_point=offset(e, x_zero_point), w_zero_point=offset(e, w_zero_point))
    shape = e.shape(w) or ()
    known = [n for n in shape[1:] if n is not None]
    terms = math.prod(known) if shape and len(known) == len(shape) - 1 else None
    exact = _width(e, x, x_zero_point, w, w_zero_point, tuple(range(1, len(shape))), terms)
    return ops.quantized_conv(image, w, **points, **window, **exact)


def _width(e: Emitter, *operands: Any) -> dict[str, Any]:
    """The float dtype in which the sums are exact: single precision where that is certain, else the default, double."""
    return {"dtype": e.target.dtype(ir.DataType.FLOAT)} if is_exact_in_single(e, *operands) else {}


RULES: dict[str, Rule] = {"DynamicQuantizeLinear": dynamic_quantize, "MatMulInteger": integer_matmul}
