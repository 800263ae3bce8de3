"""Products of quantized tensors as exact integer products that are scaled and quantized again."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.canon.lower.registry import lowering
from onward.canon.upgrade.rewrite import Rewriter, input_of, needed, rank

_FLOAT = ir.DataType.FLOAT
Array = npt.NDArray[Any]


@lowering("QLinearMatMul")
def matmul(node: ir.Node, op: Rewriter) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (needed(node, i) for i in range(8))
    if a.dtype is not None and a.dtype.is_floating_point():
        product = op("MatMul", op("DequantizeLinear", a, a_scale, a_zero), op("DequantizeLinear", b, b_scale, b_zero))
        op.replace(op("QuantizeLinear", product, y_scale, y_zero))
        return
    rows = op("Unsqueeze", a_scale, op.ints([-1])) if rank(a_scale) == 1 and _elements(a_scale) != 1 else a_scale
    requantize(op, op("MatMulInteger", a, b, a_zero, b_zero), rows, b_scale, y_scale, y_zero)


@lowering("QLinearConv")
def conv(node: ir.Node, op: Rewriter) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (needed(node, i) for i in range(8))
    accumulated = op("ConvInteger", x, w, x_zero, w_zero, **node.attributes)
    spatial = (rank(w) or rank(x) or 4) - 2
    bias = input_of(node, 8)
    if bias is not None:
        accumulated = op("Add", accumulated, _per_channel(op, bias, spatial))
    requantize(op, accumulated, x_scale, _per_channel(op, w_scale, spatial), y_scale, y_zero)


def requantize(
    op: Rewriter, accumulated: ir.Value, a_scale: ir.Value, b_scale: ir.Value, y_scale: ir.Value, y_zero: ir.Value
) -> None:
    """Replace the node by int32 sums in units of `a_scale * b_scale`, in units of `y_scale`.

    The scales are combined first, as ONNX Runtime does: which way a tie rounds depends on it.
    """
    known = [op.read(scale) for scale in (a_scale, b_scale, y_scale)]
    a, b, y = (None if k is None else _scalar_if_one(k.astype(np.float32)) for k in known)
    if a is not None and b is not None and y is not None:
        factor = op.constant(np.asarray(a * b / y))
    else:
        factor = op("Div", op("Mul", _single(op, a_scale), _single(op, b_scale)), _single(op, y_scale))
    scaled = op("Mul", op("Cast", accumulated, to=_FLOAT), factor)
    op.replace(op("QuantizeLinear", scaled, op.floats(1.0), y_zero))


def _scalar_if_one(scale: Array) -> Array:
    return scale.reshape(()) if scale.size == 1 else scale


def _single(op: Rewriter, scale: ir.Value) -> ir.Value:
    """A scale in single precision."""
    return scale if scale.dtype == _FLOAT else op("Cast", scale, to=_FLOAT)


def _per_channel(op: Rewriter, values: ir.Value, spatial: int) -> ir.Value:
    """Values of the channels so that they broadcast with a tensor of that many spatial axes."""
    if rank(values) == 0 or _elements(values) == 1:
        return values
    known = op.read(values)
    if known is not None:
        return op.constant(known.reshape(-1, *[1] * spatial))
    return op("Reshape", values, op.ints([-1, *[1] * spatial]))


def _elements(value: ir.Value) -> int | None:
    return None if value.shape is None or not value.shape.is_static() else int(np.prod(value.shape.numpy()))
