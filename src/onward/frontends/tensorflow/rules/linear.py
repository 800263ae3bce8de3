"""Products of matrices."""

from __future__ import annotations

import onnx_ir as ir

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.conv import took_bias
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def _turned(op: Writer, x: Tensor) -> Tensor:
    """With the last two axes swapped."""
    rank = op.rank(x, "a matrix to be transposed")
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@rule("MatMul")
def matmul(op: Writer, a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return op.MatMul(_turned(op, a) if transpose_a else a, _turned(op, b) if transpose_b else b)


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(
    op: Writer, a: Tensor, b: Tensor, *, adj_x: bool = False, adj_y: bool = False, Tout: ir.DataType | None = None
) -> Tensor:
    a, b = _turned(op, a) if adj_x else a, _turned(op, b) if adj_y else b
    if Tout is None or a.dtype == b.dtype == Tout:
        return op.MatMul(a, b)
    if Tout == ir.DataType.INT32 and {a.dtype, b.dtype} <= {ir.DataType.INT8, ir.DataType.UINT8}:
        return op.MatMulInteger(a, b)
    return op.MatMul(a.cast(Tout), b.cast(Tout))


@rule("Einsum")
def einsum(op: Writer, *tensors: Tensor, equation: str) -> Tensor:
    return op.Einsum(*tensors, equation=equation)


@rule("BiasAdd", "BiasAddV1")
def bias_add(op: Writer, x: Tensor, bias: Tensor, *, data_format: str = "NHWC") -> Tensor:
    if data_format != "NHWC":
        rank = op.rank(x, "what a bias is added to")
        return x if _taken_by_convolution(op, x, bias) else x + op.unsqueeze(bias, list(range(1, rank - 1)))
    return x + bias if not _taken_by_convolution(op, x, bias) else x


def _taken_by_convolution(op: Writer, x: Tensor, bias: Tensor) -> bool:
    """Whether the bias could go into the convolution that is all of `x`."""
    alone = op.operation.inputs[0]
    given_out = any(alone.name == tensor.name for tensor in getattr(op.operation.graph, "outputs", ()))
    if bias.value.producer() is not None or bias.rank != 1 or len(alone.consumers()) != 1 or given_out:
        return False
    return took_bias(x, bias)
