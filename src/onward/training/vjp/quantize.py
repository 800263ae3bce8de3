"""Gradients of quantisation, straight through: rounding counts as doing nothing, clipping as what it is.

The gradient of a quantised tensor is that of the numbers it stands for. Scales and zero points get none: they are
settings, not weights.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.training.autodiff import Context, is_real
from onward.training.build import Tensor
from onward.training.vjp import Gradients, no_gradient, vjp


@vjp("QuantizeLinear")
def quantize(
    c: Context,
    g: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int,
    block_size: int = 0,
    **_: object,
) -> Gradients:
    """The gradient of what lies between the least and the greatest number that can be stood for."""
    op = c.op
    low, high = (_number(c, x, scale, zero_point, end, axis, block_size) for end in _range(c.y.dtype))
    inside = op.And(op.GreaterOrEqual(x, low), op.LessOrEqual(x, high))
    return op.where(inside, g.cast(x.dtype), 0)


def _range(dtype: ir.DataType) -> tuple[float, float]:
    kind = dtype.numpy()
    limits = ml_dtypes.finfo(kind) if dtype.is_floating_point() else ml_dtypes.iinfo(kind)
    return float(limits.min), float(limits.max)


def _number(
    c: Context, x: Tensor, scale: Tensor, zero_point: Tensor | None, level: float, axis: int, block_size: int
) -> Tensor:
    """What a level stands for, in a shape that broadcasts to `x`."""
    op = c.op
    if block_size:
        quantised = op.constant(np.asarray(level).astype(c.y.dtype.numpy()), c.y.dtype)
        full = op.Expand(quantised.cast(ir.DataType.FLOAT), x.shape).cast(c.y.dtype)
        return op.DequantizeLinear(full, scale, zero_point, axis=axis, block_size=block_size).cast(x.dtype)
    factor = scale.cast(x.dtype)
    number = factor * level if zero_point is None else (op.like(level, x) - zero_point.cast(x.dtype)) * factor
    if scale.rank == 0:
        return number
    if x.rank is None:
        raise c.refuse("the rank of the input is not known")
    return op.Reshape(number, op.ints([-1, *[1] * (x.rank - 1 - axis % x.rank)]))


@vjp("DequantizeLinear")
def dequantize(c: Context, g: Tensor, x: Tensor, *_: object, **__: object) -> Gradients:
    return g if is_real(x.value) else None


@vjp("DynamicQuantizeLinear")
def dynamic_quantize(c: Context, g: Tensor | None, x: Tensor) -> Gradients:
    """The range is that of the input: nothing is clipped."""
    return None if g is None else g.cast(x.dtype)


no_gradient("integers", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")
