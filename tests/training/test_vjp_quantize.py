"""Gradients of quantisation: straight through, inside the range."""

from typing import Any

import numpy as np
import onnx
import pytest
from gradient_checks import run_onnxruntime, run_torch
from onnx import TensorProto, helper, numpy_helper

from onward.training.derivatives import gradient

X = np.asarray([[-9.0, -3.1, 0.2, 3.3], [0.0, 1.26, 9.0, -2.0]], np.float32)


def pair(
    scale: np.ndarray, zero: np.ndarray, *, between: list[onnx.NodeProto] | None = None, **options: Any
) -> onnx.ModelProto:
    """The sum of squares of numbers that were quantised and dequantised."""
    quantised = between[-1].output[0] if between else "q"
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **options),
        *(between or []),
        helper.make_node("DequantizeLinear", [quantised, "scale", "zero"], ["y"], **options),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    outputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    constants = [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(zero, "zero")]
    graph = helper.make_graph(nodes, "pair", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(model: onnx.ModelProto, inside: np.ndarray) -> None:
    made = gradient(model, "loss", ["x"]).to_proto()
    for run in (run_torch, run_onnxruntime):
        found = run(made, {"x": X})
        expected = np.where(inside, 2 * found["y"].reshape(X.shape), 0)
        np.testing.assert_allclose(found["x.grad"], expected, rtol=1e-6)


def test_one_scale() -> None:
    low, high = (-128 - 10) * 0.03, (127 - 10) * 0.03
    check(pair(np.asarray(0.03, np.float32), np.asarray(10, np.int8)), (low <= X) & (high >= X))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_scale_a_channel(axis: int) -> None:
    count = X.shape[axis]
    scale = np.linspace(0.01, 0.05, count).astype(np.float32)
    zero = np.arange(120, 120 + count).astype(np.uint8)
    shape = [1, 1]
    shape[axis] = count
    low, high = ((level - zero.astype(np.float32)) * scale for level in (0, 255))
    inside = (low.reshape(shape) <= X) & (high.reshape(shape) >= X)
    check(pair(scale, zero, axis=axis), inside)


def test_a_scale_a_block() -> None:
    scale = np.asarray([[0.02, 0.08], [0.01, 0.05]], np.float32)
    wide = np.repeat(scale, 2, axis=1)
    check(pair(scale, np.zeros((2, 2), np.int8), axis=1, block_size=2), (-128 * wide <= X) & (127 * wide >= X))


def test_moved_in_between() -> None:
    between = [helper.make_node("Transpose", ["q"], ["t"]), helper.make_node("Transpose", ["t"], ["u"])]
    check(pair(np.asarray(0.1, np.float32), np.asarray(0, np.int8), between=between), np.ones_like(X, bool))


def test_dynamic() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    outputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check(model, np.ones_like(X, bool))
