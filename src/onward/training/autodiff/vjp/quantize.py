"""Gradients of quantisation, straight through: rounding counts as doing nothing, clipping as what it is.

The gradient of an integer is that of the formula in which it is a real number (see `quantised_values`). Scales and
zero points get none: they are settings, not weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.graph.build import Tensor
from onward.spec.conv import Conv
from onward.spec.quantize import BlockProduct, Dequantize, Quantize
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.conv import conv
from onward.training.autodiff.vjp.elementwise import constant_of
from onward.training.autodiff.vjp.linear import matmul

HELD = 1 << 22
"""How many numbers of a weight that is held in bits are computed at a time."""


@vjp("QuantizeLinear", of_levels=True)
def quantize(
    c: Context, g: Tensor, x: Tensor, scale: Tensor, zero_point: Tensor | None = None, *, p: Quantize
) -> Gradients:
    """The gradient of what lies between the least and the greatest number that can be stood for."""
    op = c.op
    low, high = (_number(c, x, scale, zero_point, end, p.axis, p.block_size) for end in _range(c.y.dtype))
    inside = op.And(op.GreaterOrEqual(x, low), op.LessOrEqual(x, high))
    return op.where(inside, _over(g, _step(c, x, scale, c.y.dtype, p.axis, p.block_size)).cast(x.dtype), 0)


@vjp("DequantizeLinear", of_levels=True)
def dequantize(c: Context, g: Tensor, x: Tensor, scale: Tensor, *_: object, p: Dequantize) -> Gradients:
    return _times(g, _step(c, x, scale, x.dtype, p.axis, p.block_size)) if c.wants(x.value) else None


@vjp("DynamicQuantizeLinear", of_levels=True)
def dynamic_quantize(c: Context, g: Tensor | None, x: Tensor) -> Gradients:
    """The range is that of the input: nothing is clipped."""
    return None if g is None else _over(g, c.output(1)).cast(x.dtype)


def _range(dtype: ir.DataType) -> tuple[float, float]:
    kind = dtype.numpy()
    limits = ml_dtypes.finfo(kind) if dtype.is_floating_point() else ml_dtypes.iinfo(kind)
    return float(limits.min), float(limits.max)


def _number(
    c: Context, x: Tensor, scale: Tensor, zero_point: Tensor | None, level: float, axis: int, block_size: int
) -> Tensor:
    """What a level stands for, in a shape that broadcasts to `x`."""
    if block_size:
        return _of_blocks(x, level, c.y.dtype, scale, zero_point, axis, block_size).cast(x.dtype)
    factor = scale.cast(x.dtype)
    number = factor * level if zero_point is None else (c.op.like(level, x) - zero_point.cast(x.dtype)) * factor
    return _along(c, number, x, axis)


def _of_blocks(
    x: Tensor, level: float, dtype: ir.DataType, scale: Tensor, zero: Tensor | None, axis: int, block_size: int
) -> Tensor:
    """What a level stands for at each place of `x`."""
    op = x.op
    quantised = op.constant(np.asarray(level).astype(dtype.numpy()), dtype)
    full = op.Expand(quantised.cast(ir.DataType.FLOAT), x.shape).cast(dtype)
    return op.DequantizeLinear(full, scale, zero, axis=axis, block_size=block_size)


def _along(c: Context, numbers: Tensor, x: Tensor, axis: int) -> Tensor:
    """One number, or one for each index of an axis, in a shape that broadcasts to `x`."""
    if numbers.rank == 0:
        return numbers
    if x.rank is None:
        raise c.refuse("the rank of the input is not known")
    shape = [-1, *[1] * (x.rank - 1 - axis % x.rank)]
    known = constant_of(numbers)
    return c.op.Reshape(numbers, c.op.ints(shape)) if known is None else c.op.constant(known.reshape(shape))


def _step(c: Context, x: Tensor, scale: Tensor, dtype: ir.DataType, axis: int, block_size: int = 0) -> Tensor:
    """What a step from one integer to the next stands for, in a shape that broadcasts to `x`."""
    if block_size:
        return _of_blocks(x, 1, dtype, scale, None, axis, block_size)
    return _along(c, scale, x, axis)


def _times(g: Tensor, step: Tensor) -> Tensor:
    return g * step.cast(g.dtype)


def _over(g: Tensor, step: Tensor) -> Tensor:
    """`g / step`; what was only just multiplied by it is taken as it was."""
    made = g.value.producer()
    if made is not None and made.op_type == "Mul" and made.inputs[0] is not None and made.inputs[1] is step.value:
        return g.op.tensor(made.inputs[0])
    return g / step.cast(g.dtype)


def _levels(x: Tensor, zero: Tensor | None, trailing: int) -> Tensor:
    """How far a tensor of integers is from its zero point, which has one number or one for each index of an axis."""
    op, levels = x.op, x.cast(ir.DataType.FLOAT)
    if zero is None:
        return levels
    if zero.rank == 1 and trailing and zero.dims != [1]:
        zero = op.Reshape(zero, op.ints([-1, *[1] * trailing]))
    return levels - zero.cast(ir.DataType.FLOAT)


@vjp("MatMulInteger", of_levels=True)
def matmul_integer(
    c: Context, g: Tensor, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Gradients:
    return matmul(c, g, _levels(a, a_zero, 1), _levels(b, b_zero, 0))


@vjp("ConvInteger", of_levels=True)
def conv_integer(
    c: Context,
    g: Tensor,
    x: Tensor,
    w: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    *,
    p: Conv,
) -> Gradients:
    trailing = (w.rank or 1) - 1
    return conv(c, g, _levels(x, x_zero, 0), _levels(w, w_zero, trailing), p=p)


def _unclipped(c: Context, g: Tensor) -> Tensor:
    """The gradient of results that are not at an end of the range."""
    low, high = (c.op.constant(np.asarray(end, c.y.dtype.numpy())) for end in _range(c.y.dtype))
    return c.op.where(c.op.And(c.op.Greater(c.y, low), c.op.Less(c.y, high)), g, 0)


def _stands_for(x: Tensor, scale: Tensor, zero: Tensor, axis: int) -> Tensor:
    return x.op.DequantizeLinear(x, scale, zero, axis=axis)


def _of_both(c: Context, found: Gradients, *factors: tuple[Tensor, Tensor, int]) -> Gradients:
    """The gradients of integers from those of what they stand for: each with its scale, and the axis of that."""
    assert isinstance(found, Sequence)
    pairs = zip(found, factors, strict=False)
    slopes = [
        _times(g, _step(c, x, scale, x.dtype, axis)) if g is not None and c.wants(x.value) else None
        for g, (x, scale, axis) in pairs
    ]
    return [slopes[0], None, None, *slopes[1:]]


@vjp("QLinearMatMul", of_levels=True)
def qlinear_matmul(
    c: Context,
    g: Tensor,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    *_: Tensor,
) -> Gradients:
    first, second = _stands_for(a, a_scale, a_zero, -2), _stands_for(b, b_scale, b_zero, -1)
    found = matmul(c, _over(_unclipped(c, g), _step(c, c.y, y_scale, c.y.dtype, -2)), first, second)
    return _of_both(c, found, (a, a_scale, -2), (b, b_scale, -1))


@vjp("QLinearConv", of_levels=True)
def qlinear_conv(
    c: Context,
    g: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    *_: Tensor,
    p: Conv,
) -> Gradients:
    image, kernel = _stands_for(x, x_scale, x_zero, 1), _stands_for(w, w_scale, w_zero, 0)
    found = conv(c, _over(_unclipped(c, g), _step(c, c.y, y_scale, c.y.dtype, 1)), image, kernel, p=p)
    return _of_both(c, found, (x, x_scale, 1), (w, w_scale, 0))


@vjp("com.microsoft::MatMulNBits", of_levels=True)
def matmul_nbits(
    c: Context,
    g: Tensor,
    x: Tensor,
    codes: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    groups: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    p: BlockProduct,
) -> Gradients:
    """By the weight as numbers, which live no longer than this product: the bits are what is held."""
    if p.prepacked:
        raise c.refuse("its weight is laid out for one kind of processor")
    if groups is not None and zeros is not None:
        raise c.refuse("ONNX Runtime computes something else for columns that choose their block, with zero points")
    dx = _by_parts(g, p, codes, scales, zeros, groups) if c.wants(x.value) else None
    db = unbroadcast(g, bias) if bias is not None and c.wants(bias.value) else None
    return [dx, None, None, None, None, db]


def _by_parts(
    g: Tensor, p: BlockProduct, codes: Tensor, scales: Tensor, zeros: Tensor | None, groups: Tensor | None
) -> Tensor:
    """The product with a weight of which no more than some rows are numbers at a time."""
    op = g.op
    step = -(-p.rows // -(-p.rows * p.columns // HELD))
    if step == p.rows:
        return g @ _of_bits(p, codes, scales, zeros, groups)
    total = None
    for begin in range(0, p.rows, step):
        end = min(begin + step, p.rows)
        own = [None if x is None else _rows(x, p.rows, begin, end) for x in (codes, scales, zeros)]
        weight = _of_bits(replace(p, rows=end - begin), own[0], own[1], own[2], groups)  # type: ignore[arg-type]
        part = op.Slice(g, op.ints([begin]), op.ints([end]), op.ints([-1])) @ weight
        total = part if total is None else total + part
    assert total is not None
    return total


def _rows(x: Tensor, count: int, begin: int, end: int) -> Tensor:
    """Some of so many rows, which lie one behind the other in whatever shape."""
    op = x.op
    return op.Slice(op.Reshape(x, op.ints([count, -1])), op.ints([begin]), op.ints([end]), op.ints([0]))


def _of_bits(p: BlockProduct, codes: Tensor, scales: Tensor, zeros: Tensor | None, groups: Tensor | None) -> Tensor:
    """The weight (N, K) of a product, of codes that share bytes, a scale and perhaps a zero point for each block."""
    op = codes.op
    levels = op.Reshape(_unpacked(codes, p.bits), op.ints([p.rows, p.blocks * p.size]))
    factors = op.Reshape(scales, op.ints([p.rows, p.blocks]))
    middle = _zero_points(p, factors, zeros)
    if groups is not None:
        which = groups.cast(ir.DataType.INT64)
        kept = op.Slice(levels, op.ints([0]), op.ints([p.columns]), op.ints([1])).cast(factors.dtype)
        return (kept - op.Gather(middle.cast(factors.dtype), which, axis=1)) * op.Gather(factors, which, axis=1)
    if middle.dtype.is_floating_point():
        apart = [p.rows, p.blocks, p.size]
        shifted = op.Reshape(levels.cast(factors.dtype), op.ints(apart)) - op.unsqueeze(middle, [2])
        real = op.Reshape(shifted * op.unsqueeze(factors, [2]), op.ints([p.rows, p.blocks * p.size]))
    else:
        real = op.DequantizeLinear(levels, factors, middle, axis=1, block_size=p.size)
    return op.Slice(real, op.ints([0]), op.ints([p.columns]), op.ints([1])) if p.is_padded else real


def _zero_points(p: BlockProduct, factors: Tensor, zeros: Tensor | None) -> Tensor:
    """One for each block: bytes, or numbers if they are given as such."""
    op = factors.op
    if zeros is None:
        return op.Expand(op.constant(np.asarray(2 ** (p.bits - 1), np.uint8)), op.ints([p.rows, p.blocks]))
    if zeros.dtype != ir.DataType.UINT8:
        return op.Reshape(zeros, op.ints([p.rows, p.blocks])).cast(factors.dtype)
    each = op.Reshape(_unpacked(zeros, p.bits), op.ints([p.rows, -1]))
    return op.Slice(each, op.ints([0]), op.ints([p.blocks]), op.ints([1]))


def _unpacked(x: Tensor, bits: int) -> Tensor:
    """The numbers of so many bits that share a byte, the lowest first, each as a byte along a new last axis."""
    op = x.op
    if bits == 8:
        return x
    mask = op.constant(np.asarray(2**bits - 1, np.uint8))
    shifts = [op.constant(np.asarray(shift, np.uint8)) for shift in range(0, 8, bits)]
    shifted = [op.BitShift(x, shift, direction="RIGHT") if i else x for i, shift in enumerate(shifts)]
    parts = [op.BitwiseAnd(each, mask) for each in shifted[:-1]]
    return op.Concat(*(op.unsqueeze(each, [-1]) for each in (*parts, shifted[-1])), axis=-1)
