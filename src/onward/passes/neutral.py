"""Arithmetic that changes nothing: factors of one, and zeros that are added.

Adding zero turns -0 into 0. That is left out only where nothing after it tells these apart.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.replace import constant, is_op
from onward.graph.trained import role

MOST_STEPS = 64
"""How far the use of a zero is followed."""

LINEAR = frozenset([
    "Add", "AveragePool", "BatchNormalization", "Concat", "Expand", "Flatten", "GlobalAveragePool", "Identity",
    "LeakyRelu", "MaxPool", "Mul", "Neg", "Pad", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Slice", "Split",
    "Squeeze", "Sub", "Transpose", "Unsqueeze",
])  # fmt: skip
"""What gives a zero of one sign or the other for one of another sign, and the same numbers else."""
BLIND = frozenset([
    "Abs", "Conv", "ConvTranspose", "Cos", "Equal", "Exp", "GRU", "Gemm", "Greater", "GreaterOrEqual", "LSTM",
    "LayerNormalization", "Less", "LessOrEqual", "LogSoftmax", "MatMul", "Sigmoid", "Softmax",
])  # fmt: skip
"""What gives the same number for a zero of either sign, or sums up so many that its sign is anyone's."""


def unchanged(node: ir.Node) -> ir.Value | None:
    """The operand that a node gives on as it is; None where it computes something."""
    for index, operand in enumerate(node.inputs[:2]):
        other = node.inputs[1 - index] if len(node.inputs) == 2 else None
        if operand is None or other is None or (index == 1 and not is_op(node, "Mul", "Add")):
            continue
        number = _scalar(other, operand)
        if number is None or constant(operand) is not None:
            continue
        if is_op(node, "Mul", "Div") and number == 1:
            return operand
        if is_op(node, "Sub", "Add") and number == 0:
            keeps_sign = bool(np.signbit(number)) == is_op(node, "Add")
            is_integer = operand.dtype is not None and operand.dtype.is_integer()
            return operand if is_integer or keeps_sign or _is_blind(node) else None
    return None


def _scalar(value: ir.Value, beside: ir.Value) -> np.generic | None:
    """A single number that is no weight and gives no axes to what stands beside it."""
    tensor = constant(value)
    if tensor is None or tensor.size != 1 or role(value) is not None or beside.shape is None:
        return None
    if len(tensor.shape) > len(beside.shape) or not (tensor.dtype.is_floating_point() or tensor.dtype.is_integer()):
        return None
    found: np.generic = tensor.numpy().reshape(-1)[0]
    return found


def _is_blind(node: ir.Node) -> bool:
    """Whether nothing that comes of a node can tell zero from -0."""
    queue, seen = [*node.outputs], 0
    while queue:
        value = queue.pop()
        for reader, index in value.uses():
            seen += 1
            if seen > MOST_STEPS or reader.graph is not node.graph or reader.domain not in ("", "ai.onnx"):
                return False
            if reader.op_type in LINEAR or (reader.op_type == "Div" and index == 0):
                queue += reader.outputs
            elif reader.op_type not in BLIND:
                return False
    return True
