"""Arithmetic, comparisons, logic and activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.frontends.tensorflow.values import Complex
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import activated, fused, like
from onward.frontends.tflite.read import dtype_of
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.translate import dequantized, quantized
from onward.graph.build import Tensor

SAME = {
    "ABS": "Abs",
    "ADD": "AddV2",
    "ADD_N": "AddN",
    "ATAN2": "Atan2",
    "BITWISE_XOR": "BitwiseXor",
    "CEIL": "Ceil",
    "COMPLEX_ABS": "ComplexAbs",
    "COS": "Cos",
    "DIV": "RealDiv",
    "ELU": "Elu",
    "EQUAL": "Equal",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "FLOOR_DIV": "FloorDiv",
    "FLOOR_MOD": "FloorMod",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterEqual",
    "IMAG": "Imag",
    "LESS": "Less",
    "LESS_EQUAL": "LessEqual",
    "LOG": "Log",
    "LOGICAL_AND": "LogicalAnd",
    "LOGICAL_NOT": "LogicalNot",
    "LOGICAL_OR": "LogicalOr",
    "LOG_SOFTMAX": "LogSoftmax",
    "MUL": "Mul",
    "NEG": "Neg",
    "NOT_EQUAL": "NotEqual",
    "POW": "Pow",
    "REAL": "Real",
    "RELU": "Relu",
    "RELU6": "Relu6",
    "RIGHT_SHIFT": "RightShift",
    "ROUND": "Round",
    "RSQRT": "Rsqrt",
    "SELECT": "Select",
    "SELECT_V2": "SelectV2",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "SQUARE": "Square",
    "SQUARED_DIFFERENCE": "SquaredDifference",
    "SUB": "Sub",
    "TANH": "Tanh",
    "ZEROS_LIKE": "ZerosLike",
}
"""Ops that TensorFlow has under this name; some have an activation built in."""


def _same(op_type: str) -> Callable[..., Any]:
    def function(op: Writer, *inputs: Tensor) -> Any:
        return activated(op, like(op, op_type, *inputs), fused(op))

    return function


for _lite, _tensorflow in SAME.items():
    rule(_lite)(_same(_tensorflow))


@rule("MAXIMUM", "MINIMUM")
def extreme(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """The interpreter takes the first where it is the one, and else the second, be that a number or not."""
    most = op.operation.type == "MAXIMUM"
    if a.dtype == ir.DataType.FLOAT and op.operation.scale(0) is None:
        return op.where(a > b if most else a < b, a, b)
    return op.Max(a, b) if most else op.Min(a, b)


@rule("LOGISTIC")
def logistic(op: Writer, x: Tensor) -> Tensor:
    """As a result, in a form that is exact for small numbers, too; ONNX Runtime's own is off by 1e-8 whatever it is."""
    if op.operation.is_result(0) and op.operation.scale(0, output=True) is None:
        return op.Reciprocal(op.Exp(-x) + 1.0)
    return op.Sigmoid(x)


@rule("SIGN")
def sign(op: Writer, x: Tensor) -> Tensor:
    """Zero for what is no number."""
    return op.Sign(op.where(op.IsNaN(x), op.like(0, x), x) if x.dtype.is_floating_point() else x)


@rule("RELU_N1_TO_1")
def relu_n1_to_1(op: Writer, x: Tensor) -> Tensor:
    return op.Clip(x, op.like(-1, x), op.like(1, x))


@rule("RELU_0_TO_1")
def relu_0_to_1(op: Writer, x: Tensor) -> Tensor:
    return op.Clip(x, op.like(0, x), op.like(1, x))


@rule("LEAKY_RELU")
def leaky_relu(op: Writer, x: Tensor) -> Tensor:
    return op.LeakyRelu(x, alpha=op.operation.options.alpha)


@rule("PRELU")
def prelu(op: Writer, x: Tensor, slope: Tensor) -> Tensor:
    return op.where(x > 0, x, x * slope)


@rule("HARD_SWISH")
def hard_swish(op: Writer, x: Tensor) -> Tensor:
    return x * op.Clip(x + 3.0, op.like(0, x), op.like(6, x)) * (1 / 6)


@rule("GELU")
def gelu(op: Writer, x: Tensor) -> Tensor:
    if op.operation.options.approximate:
        inner = (x + x * x * x * 0.044715) * 0.7978845608028654
        return x * 0.5 * (op.Tanh(inner) + 1.0)
    return x * 0.5 * (op.Erf(x / 1.4142135623730951) + 1.0)


@rule("SOFTMAX")
def softmax(op: Writer, x: Tensor) -> Tensor:
    beta = op.operation.options.beta
    return op.Softmax(x if beta == 1 else x * beta, axis=-1)


@rule("L2_NORMALIZATION")
def l2_normalization(op: Writer, x: Tensor) -> Tensor:
    rank = op.rank(x, "what is normalised")
    size = op.Max(op.reduced("ReduceL2", x, [rank - 1], keepdims=True), op.like(1e-6, x))
    return activated(op, x / size, fused(op))


@rule("CAST")
def cast(op: Writer, x: Tensor | Complex) -> Tensor:
    """Of complex numbers, the real part."""
    return op.converted(x.real if isinstance(x, Complex) else x, dtype_of(op.operation.outputs[0]))


@rule("DEQUANTIZE")
def dequantize(op: Writer, x: Tensor) -> Tensor:
    scale = op.operation.scale(0)
    return dequantized(op, x, scale, alone=True) if scale is not None else x.cast(dtype_of(op.operation.outputs[0]))


@rule("QUANTIZE")
def quantize(op: Writer, x: Tensor) -> Tensor:
    """From numbers, or from integers with another scale."""
    before, after = op.operation.scale(0), op.operation.scale(0, output=True)
    numbers = x if before is None else dequantized(op, x, before)
    return quantized(op, numbers, after, dtype_of(op.operation.outputs[0]))


@rule("FAKE_QUANT")
def fake_quant(op: Writer, x: Tensor) -> Tensor:
    options = op.operation.options
    steps = 2**options.numBits - 1
    least = 1 if options.narrowRange else 0
    scale = float((options.max - options.min) / (steps - least))
    zero = round(least - options.min / scale)
    low, high = (least - zero) * scale, (steps - zero) * scale
    cut = op.Clip(x, op.like(low, x), op.like(high, x))
    return op.Round(cut * (1 / scale)) * scale
