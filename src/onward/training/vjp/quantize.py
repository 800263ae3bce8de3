"""Gradients of quantisation, straight through: rounding counts as doing nothing, clipping as what it is.

The gradient of a quantised tensor is that of the numbers it stands for, that of a sum of products of such is that of
the sum as it is. Scales and zero points get none: they are
settings, not weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.training.autodiff import Context, is_real, quantiser
from onward.training.build import Tensor
from onward.training.vjp import Gradients, vjp
from onward.training.vjp.conv import conv
from onward.training.vjp.linear import matmul


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


def scale_of(c: Context, x: Tensor) -> Tensor:
    """What a step of a quantised tensor stands for."""
    node = quantiser(x.value)
    assert node is not None, "asked only of quantised tensors"
    places = {"QuantizeLinear": node.inputs[1:2], "DynamicQuantizeLinear": node.outputs[1:2]}
    (value,) = places.get(node.op_type, node.inputs[6:7])
    if value is None or value.shape is None or any(d != 1 for d in value.shape):
        raise c.refuse("it takes integers of more than one scale")
    return c.op.Reshape(c.op.tensor(value), c.op.ints([]))


def _levels(x: Tensor, zero: Tensor | None, trailing: int) -> Tensor:
    """How far a tensor of integers is from its zero point, which has one number or one for each index of an axis."""
    op, levels = x.op, x.cast(ir.DataType.FLOAT)
    if zero is None:
        return levels
    if zero.rank == 1 and trailing and zero.dims != [1]:
        zero = op.Reshape(zero, op.ints([-1, *[1] * trailing]))
    return levels - zero.cast(ir.DataType.FLOAT)


def _as_real(c: Context, found: Gradients, *factors: Tensor) -> Gradients:
    """Gradients of levels as those of what they stand for."""
    assert isinstance(found, Sequence)
    pairs = zip(factors, found, strict=False)
    return [g / scale_of(c, x) if g is not None and c.wants(x.value) else None for x, g in pairs]


@vjp("MatMulInteger")
def matmul_integer(
    c: Context, g: Tensor, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Gradients:
    return _as_real(c, matmul(c, g, _levels(a, a_zero, 1), _levels(b, b_zero, 0)), a, b)


@vjp("ConvInteger")
def conv_integer(
    c: Context,
    g: Tensor,
    x: Tensor,
    w: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    **attributes: Any,
) -> Gradients:
    trailing = (w.rank or 1) - 1
    return _as_real(c, conv(c, g, _levels(x, x_zero, 0), _levels(w, w_zero, trailing), **attributes), x, w)


def _unclipped(c: Context, g: Tensor) -> Tensor:
    """The gradient of results that are not at an end of the range."""
    low, high = (c.op.constant(np.asarray(end, c.y.dtype.numpy())) for end in _range(c.y.dtype))
    return c.op.where(c.op.And(c.op.Greater(c.y, low), c.op.Less(c.y, high)), g, 0)


def _stands_for(x: Tensor, scale: Tensor, zero: Tensor, axis: int) -> Tensor:
    return x.op.DequantizeLinear(x, scale, zero, axis=axis)


@vjp("QLinearMatMul")
def qlinear_matmul(
    c: Context,
    g: Tensor,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    *_: Tensor,
) -> Gradients:
    first, second = _stands_for(a, a_scale, a_zero, -2), _stands_for(b, b_scale, b_zero, -1)
    found = matmul(c, _unclipped(c, g), first, second)
    assert isinstance(found, Sequence)
    return [found[0] if is_real(a.value) else None, None, None, found[1] if is_real(b.value) else None]


@vjp("QLinearConv")
def qlinear_conv(
    c: Context,
    g: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    *_: Tensor,
    **attributes: Any,
) -> Gradients:
    image, kernel = _stands_for(x, x_scale, x_zero, 1), _stands_for(w, w_scale, w_zero, 0)
    found = conv(c, _unclipped(c, g), image, kernel, **attributes)
    assert isinstance(found, Sequence)
    return [found[0] if is_real(x.value) else None, None, None, found[1] if is_real(w.value) else None]
