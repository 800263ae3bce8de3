"""Products with quantized weights of `com.microsoft`."""

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, added
from onward.canon.lower.quantize import as_float, requantized, rows
from onward.canon.lower.registry import lowering
from onward.errors import InvalidModelError, UnsupportedError
from onward.gate.bounds import check_room
from onward.graph.narrow import unpacked
from onward.graph.rewriter import Rewriter, describe, dims, input_of, needed, rank, require, take

Array = npt.NDArray[Any]

CODES: dict[int, Any] = {2: ml_dtypes.uint2, 4: ml_dtypes.uint4, 8: np.uint8}
"""The type of numbers of so many bits."""


def worth(total: ir.Value, factor: ir.Value, bias: ir.Value | None, op: Rewriter) -> ir.Value:
    """Sums of integers as numbers, plus a bias."""
    product = op("Mul", op("Cast", total, to=factor.dtype or ir.DataType.FLOAT), factor)
    return added(product, bias, op)


@lowering(f"{MS}::MatMulIntegerToFloat")
def matmul_integer_to_float(node: ir.Node, op: Rewriter) -> None:
    a, b, a_scale, b_scale = (needed(node, i) for i in range(4))
    a_zero, b_zero = input_of(node, 4), input_of(node, 5)
    total = op("MatMulInteger", a, b, a_zero, b_zero)
    op.replace(worth(total, op("Mul", rows(a_scale, op), b_scale), input_of(node, 6), op))


@lowering(f"{MS}::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(node: ir.Node, op: Rewriter) -> None:
    a, a_scale, a_zero = op.many(3, "DynamicQuantizeLinear", needed(node, 0))
    total = op("MatMulInteger", a, needed(node, 1), a_zero, input_of(node, 3))
    op.replace(worth(total, op("Mul", a_scale, needed(node, 2)), input_of(node, 4), op))


@lowering(f"{MS}::QGemm")
def qgemm(node: ir.Node, op: Rewriter) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero = (needed(node, i) for i in range(6))
    bias, y_scale, y_zero = (input_of(node, i) for i in (6, 7, 8))
    a, b = (op("Transpose", x, perm=[1, 0]) if take(node, name, 0) else x for x, name in ((a, "transA"), (b, "transB")))
    total = added(op("MatMulInteger", a, b, a_zero, b_zero), bias, op)
    factor = op("Mul", as_float(a_scale, op), as_float(b_scale, op))
    alpha = take(node, "alpha", 1.0)
    factor = factor if alpha == 1 else op("Mul", factor, op.floats(alpha))
    if y_scale is None:
        op.replace(worth(total, factor, None, op))
    else:
        op.replace(requantized(total, factor, y_scale, y_zero, op, None if y_zero else a.dtype))


@lowering(f"{MS}::MulInteger")
def mul_integer(node: ir.Node, op: Rewriter) -> None:
    """Inputs: a, its zero point, b, its zero point."""
    a, b = (_shifted(needed(node, i), input_of(node, i + 1), op) for i in (0, 2))
    op.replace(op("Mul", a, b))


def _shifted(x: ir.Value, zero: ir.Value | None, op: Rewriter) -> ir.Value:
    wide = op("Cast", x, to=ir.DataType.INT32)
    return wide if zero is None else op("Sub", wide, op("Cast", zero, to=ir.DataType.INT32))


def _tensor(value: ir.Value, op: Rewriter) -> ir.TensorProtocol:
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None:
        raise UnsupportedError(f"{describe(op.node)}: its quantized weight {value.name!r} is computed by the model")
    return tensor


def repacked(value: ir.Value, bits: int, shape: tuple[int, ...], op: Rewriter) -> ir.Value:
    """A weight whose bytes hold several numbers each, as a weight of numbers of so many bits."""
    if bits == 8:
        return _shaped(value, *shape, op=op)
    data = np.asarray(_tensor(value, op).numpy()).reshape(-1).view(np.uint8)
    if bits not in CODES or data.size * 8 != bits * int(np.prod(shape)):
        raise InvalidModelError(f"{describe(op.node)}: {data.size} bytes are not {shape} numbers of {bits} bits")
    dtype = ir.DataType.from_numpy(np.dtype(CODES[bits]))
    name = op.names.value(f"{value.name}_unpacked")
    weight = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
    weight.const_value = ir.PackedTensor(data, dtype, shape=ir.Shape(shape), name=name)
    op.graph.register_initializer(weight)
    return weight


class _Blocks(NamedTuple):
    """A weight of shape (N, K) that is quantized in blocks of each row."""

    columns: int
    rows: int
    size: int
    bits: int


@lowering(f"{MS}::MatMulNBits")
def matmul_nbits(node: ir.Node, op: Rewriter) -> None:
    """A layer of our own where all but its input are constants."""
    x, *parts = (input_of(node, i) for i in range(6))
    blocks = _Blocks(require(node, "K"), require(node, "N"), require(node, "block_size"), take(node, "bits", 4))
    if take(node, "weight_prepacked", 0):
        raise UnsupportedError(f"{describe(node)}: its weight is laid out for one kind of processor")
    weight, scales, zeros, groups, bias = parts
    owned = [weight, scales, zeros, bias]
    tensors = [ir.convenience.get_const_tensor(part) for part in owned if part is not None]
    if groups is None and all(tensor is not None for tensor in tensors) and _dtype(weight) == ir.DataType.UINT8:
        names = dict(zip(("in_features", "out_features", "block_size", "bits"), blocks, strict=True))
        op.replace(*op.own(1, "QuantizedLinear", x, *owned, **names))
    else:
        op.replace(_product(x, parts, blocks, op))


def _dtype(value: ir.Value | None) -> ir.DataType | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.dtype


@lowering("onward::QuantizedLinear")
def quantized_linear(node: ir.Node, op: Rewriter) -> None:
    """For backends that have no such layer."""
    x, weight, scales, zeros, bias = (input_of(node, i) for i in range(5))
    names = ("in_features", "out_features", "block_size", "bits")
    blocks = _Blocks(*(require(node, name) for name in names))
    op.replace(_product(x, [weight, scales, zeros, None, bias], blocks, op))


def _product(x: ir.Value | None, parts: list[ir.Value | None], of: _Blocks, op: Rewriter) -> ir.Value:
    """A product with a weight. `parts`: its codes, scales, zero points, the block of each column; and a bias."""
    codes, scales, zero, groups, bias = parts
    assert codes is not None and scales is not None
    columns, count, size, bits = of
    blocks = -(-columns // size)
    weight = repacked(codes, bits, (count, blocks * size), op)
    scales = _shaped(scales, count, blocks, op=op)
    zeros = _zero_points(zero, bits, count, blocks, op)
    if groups is not None:
        which = op("Cast", groups, to=ir.DataType.INT64)
        factor, offset = (op("Gather", part, which, axis=1) for part in (scales, _number(zeros, scales, op)))
        kept = op("Slice", _number(weight, scales, op), op.ints([0]), op.ints([columns]), op.ints([1]))
        real = op("Mul", op("Sub", kept, offset), factor)
    else:
        if zeros.dtype == weight.dtype:
            real = op("DequantizeLinear", weight, scales, zeros, axis=1, block_size=size)
        else:
            cut = op.ints([count, blocks, size])
            per_block = op("Reshape", _number(weight, scales, op), cut)
            last = op.ints([2])
            shifted = op("Sub", per_block, op("Unsqueeze", _number(zeros, scales, op), last))
            real = op("Reshape", op("Mul", shifted, op("Unsqueeze", scales, last)), op.ints([count, blocks * size]))
        if blocks * size > columns:
            real = op("Slice", real, op.ints([0]), op.ints([columns]), op.ints([1]))
    return added(op("MatMul", x, op("Transpose", real, perm=[1, 0])), bias, op)


def _shaped(x: ir.Value, *shape: int, op: Rewriter) -> ir.Value:
    return x if dims(x) == list(shape) else op("Reshape", x, op.ints(shape))


def _number(x: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    return (
        x if x.dtype == like.dtype else op("CastLike", x, like) if like.dtype is None else op("Cast", x, to=like.dtype)
    )


def _zero_points(zero: ir.Value | None, bits: int, count: int, blocks: int, op: Rewriter) -> ir.Value:
    """One for each block, of the weight's type, or of the scales' type if they are given so."""
    kind = CODES[bits]
    if zero is None:
        check_room("the zero points of a quantised product", (count, blocks), 1)
        return op.constant(np.full((count, blocks), 2 ** (bits - 1), kind))
    if zero.dtype != ir.DataType.UINT8 or bits == 8:
        return _shaped(zero, count, blocks, op=op)
    data = np.asarray(_tensor(zero, op).numpy()).reshape(count, -1)
    return op.constant(unpacked(data, bits)[:, :blocks].astype(kind))


@lowering(f"{MS}::GatherBlockQuantized")
def gather_block_quantized(node: ir.Node, op: Rewriter) -> None:
    """Rows of a table that is quantized in blocks: the rows are picked first, then turned into numbers.

    Where blocks are cut along the axis that is picked from, what is picked is no block: all become numbers before.
    """
    data, indices, scales, zero = needed(node, 0), needed(node, 1), needed(node, 2), input_of(node, 3)
    size, bits = take(node, "block_size", 128), take(node, "bits", 4)
    sizes = None if data.shape is None else data.shape.numpy() if data.shape.is_static() else None
    known = rank(data)
    if known is None or data.dtype is None or data.dtype.is_floating_point():
        raise UnsupportedError(f"{describe(node)}: its table is of unknown rank, or of floating-point numbers")
    axis, cut = take(node, "gather_axis", 0) % known, take(node, "quantize_axis", 1) % known
    if data.dtype == ir.DataType.UINT8:
        if bits < 8:
            if sizes is None:
                raise UnsupportedError(f"{describe(node)}: the shape of its table is not known")
            data = repacked(data, bits, (*sizes[:-1], sizes[-1] * (8 // bits)), op)
            zero = None if zero is None else _unpacked_zeros(zero, bits, scales, op)
        if zero is None:
            zero = op("Expand", op.constant(np.array(2 ** (bits - 1)).astype(CODES[bits])), op("Shape", scales))
    if axis == cut:
        real = op("DequantizeLinear", data, scales, zero, axis=cut, block_size=size)
        op.replace(op("Gather", real, indices, axis=axis))
        return
    rows_, factors = (op("Gather", x, indices, axis=axis) for x in (data, scales))
    offsets = None if zero is None else op("Gather", zero, indices, axis=axis)
    extra = rank(indices)
    if extra is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its indices is not known")
    place = cut if cut < axis else cut + extra - 1
    op.replace(op("DequantizeLinear", rows_, factors, offsets, axis=place, block_size=size))


def _unpacked_zeros(zero: ir.Value, bits: int, scales: ir.Value, op: Rewriter) -> ir.Value:
    width = None if scales.shape is None else scales.shape[-1]
    data = unpacked(np.asarray(_tensor(zero, op).numpy()), bits)
    return op.constant((data[..., :width] if isinstance(width, int) else data).astype(CODES[bits]))


NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""Quantiles of the normal distribution: Dettmers and others, 'QLoRA', 2023, appendix E."""

FP4 = (0.0, 0.0052083333333, 0.6666666666667, 1.0, 0.3333333333333, 0.5, 0.1666666666667, 0.25)
"""What a sign bit and three more stand for, without the sign."""


@lowering(f"{MS}::MatMulBnb4")
def matmul_bnb4(node: ir.Node, op: Rewriter) -> None:
    """A weight of four-bit codes, the first in the upper half of a byte, and the largest size in each block of it.

    It becomes numbers as the weights are written.
    """
    a, b, largest = (needed(node, i) for i in range(3))
    size, columns, count = (require(node, name) for name in ("block_size", "K", "N"))
    codes, sizes = _tensor(b, op), _tensor(largest, op)
    table = np.array(NF4 if require(node, "quant_type") == 1 else [*FP4, *(-x for x in FP4)], np.float32)

    def numbers() -> ir.TensorProtocol:
        data = np.asarray(codes.numpy()).reshape(-1).view(np.uint8)
        halves = np.stack([data >> 4, data & 15], axis=-1).reshape(-1)[: count * columns]
        scale = np.repeat(np.asarray(sizes.numpy()).reshape(-1), size)[: count * columns]
        return ir.Tensor((table[halves].astype(scale.dtype) * scale).reshape(count, columns))

    name = op.names.value(f"{b.name}_unpacked")
    weight = ir.Value(name=name, type=ir.TensorType(sizes.dtype), shape=ir.Shape([count, columns]))
    weight.const_value = ir.LazyTensor(numbers, sizes.dtype, ir.Shape([count, columns]), name=name)
    op.graph.register_initializer(weight)
    op.replace(op("MatMul", a, op("Transpose", weight, perm=[1, 0]) if take(node, "transB", 1) else weight))
