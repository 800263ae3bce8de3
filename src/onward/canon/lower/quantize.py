"""Quantized products: sums of integers, scaled to the output's integers in one step as ONNX Runtime does."""

import onnx_ir as ir

from onward.canon.lower.microsoft_fused import CONV, MS, channels_first, channels_last
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, input_of, needed, rank, take


def as_float(x: ir.Value, op: Rewriter) -> ir.Value:
    return x if x.dtype == ir.DataType.FLOAT else op("Cast", x, to=ir.DataType.FLOAT)


def requantized(
    total: ir.Value, factor: ir.Value, scale: ir.Value, zero: ir.Value | None, op: Rewriter, dtype: int | None = None
) -> ir.Value:
    """int32 sums, of which one is worth `factor`, as quantized numbers."""
    ratio = op("Div", factor, as_float(scale, op))
    product = op("Mul", op("Cast", total, to=ir.DataType.FLOAT), ratio)
    return op("QuantizeLinear", product, op.floats(1.0), zero, output_dtype=dtype)


def rows(scale: ir.Value, op: Rewriter) -> ir.Value:
    """A scale or zero point of each row of a matrix, so that it broadcasts."""
    one = dims(scale) in ([], [1])
    return scale if one or rank(scale) != 1 else op("Unsqueeze", scale, op.ints([1]))


@lowering("QLinearMatMul")
def qlinear_matmul(node: ir.Node, op: Rewriter) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (needed(node, i) for i in range(8))
    total = op("MatMulInteger", a, b, a_zero, b_zero)
    factor = op("Mul", rows(as_float(a_scale, op), op), as_float(b_scale, op))
    op.replace(requantized(total, factor, y_scale, y_zero, op))


@lowering("QLinearConv", f"{MS}::QLinearConv")
def qlinear_conv(node: ir.Node, op: Rewriter) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (needed(node, i) for i in range(8))
    is_last = take(node, "channels_last", 0)
    given = {name: take(node, name) for name in CONV}
    spatial = rank(w) or rank(x)
    if spatial is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its weight is not known")
    total = op("ConvInteger", channels_first(x, op) if is_last else x, w, x_zero, w_zero, **given)

    def channels(value: ir.Value) -> ir.Value:
        """One number for each output channel, so that it broadcasts."""
        return value if dims(value) in ([], [1]) else op("Reshape", value, op.ints([-1, *[1] * (spatial - 2)]))

    if (bias := input_of(node, 8)) is not None:
        total = op("Add", total, channels(bias))
    factor = channels(op("Mul", as_float(x_scale, op), as_float(w_scale, op)))
    y = requantized(total, factor, y_scale, y_zero, op)
    op.replace(channels_last(y, x, op) if is_last else y)
