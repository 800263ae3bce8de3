"""Gradients of quantisation: straight through, inside the range."""

from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from gradient_checks import run_onnxruntime, run_torch
from onnx import TensorProto, helper, numpy_helper

from onward.training.autodiff.derivatives import gradient

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


RNG = np.random.default_rng(0)
WEIGHT = RNG.integers(-100, 100, (4, 3)).astype(np.int8)
KERNEL = RNG.integers(-100, 100, (3, 2, 2, 2)).astype(np.int8)
ZEROS = np.asarray([3, 0, -2], np.int8)


def of_sums(product: str, b: np.ndarray, zero: np.ndarray, shape: list[int]) -> onnx.ModelProto:
    """The sum of squares of a product of integers, made of numbers that are quantised on the way."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("Reshape", ["q", "shape"], ["moved"]),
        helper.make_node(product, ["moved", "b", "zero", "b_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "scale"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("loss", "y")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    constants = {"b": b, "b_zero": zero, "shape": np.asarray(shape)}
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "sums", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("zero", [np.asarray(5, np.int8), ZEROS], ids=["one zero point", "a zero point a column"])
def test_product_of_integers(zero: np.ndarray) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)
    made = gradient(of_sums("MatMulInteger", WEIGHT, zero, [2, 5, 4]), "loss", ["x"]).to_proto()
    for run in (run_torch, run_onnxruntime):
        found = run(made, {"x": x})
        expected = 2 * found["y"] @ (WEIGHT.astype(np.float32) - zero).T
        np.testing.assert_allclose(found["x.grad"], expected, rtol=1e-4, atol=1e-2)


def test_convolution_of_integers() -> None:
    x = np.random.default_rng(1).standard_normal((2, 2, 5, 5)).astype(np.float32)
    made = gradient(of_sums("ConvInteger", KERNEL, np.asarray(5, np.int8), [2, 2, 5, 5]), "loss", ["x"]).to_proto()
    for run in (run_torch, run_onnxruntime):
        found = run(made, {"x": x})
        w = torch.tensor(KERNEL.astype(np.float32) - 5)
        expected = F.conv_transpose2d(torch.tensor(2 * found["y"]), w).numpy()
        np.testing.assert_allclose(found["x.grad"], expected, rtol=1e-4, atol=1e-1)


@pytest.mark.parametrize("op", ["QLinearMatMul", "QLinearConv"])
def test_quantised_product(op: str) -> None:
    """A result at an end of its range has no gradient; there are some here."""
    shape, b = ([2, 5, 4], WEIGHT) if op == "QLinearMatMul" else ([2, 2, 5, 5], KERNEL)
    scales = {"a_scale": 0.02, "b_scale": 0.01, "y_scale": 0.02}
    constants = {name: np.asarray(value, np.float32) for name, value in scales.items()}
    constants |= {"a_zero": np.asarray(3, np.int8), "b_zero": np.asarray(5, np.int8), "y_zero": np.asarray(9, np.int8)}
    names = ["q", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "a_scale", "a_zero"], ["q"]),
        helper.make_node(op, names, ["levels"]),
        helper.make_node("DequantizeLinear", ["levels", "y_scale", "y_zero"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("loss", "y")]
    outputs.append(helper.make_tensor_value_info("levels", TensorProto.INT8, None))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants | {"b": b}).items()]
    graph = helper.make_graph(nodes, "product", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = 2 * np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    made = gradient(model, "loss", ["x"]).to_proto()
    for run in (run_torch, run_onnxruntime):
        found = run(made, {"x": x})
        inside = (found["levels"] > -128) & (found["levels"] < 127)
        assert 0 < inside.mean() < 1
        slope = torch.tensor(np.where(inside, 2 * found["y"], 0))
        w = torch.tensor((b.astype(np.float32) - 5) * 0.01)
        expected = slope @ w.T if op == "QLinearMatMul" else F.conv_transpose2d(slope, w)
        low, high = (-128 - 3) * 0.02, (127 - 3) * 0.02
        expected = np.where((low <= x) & (high >= x), expected.numpy(), 0)
        np.testing.assert_allclose(found["x.grad"], expected, rtol=1e-4, atol=1e-4)


def test_levels_as_numbers() -> None:
    """A cast takes the levels as they are: a step of the scale is a change by one."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("loss", "y")]
    constants = [
        numpy_helper.from_array(np.asarray(0.5, np.float32), "scale"),
        numpy_helper.from_array(np.asarray(3, np.int8), "zero"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph(nodes, "levels", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made = gradient(model, "loss", ["x"]).to_proto()
    for run in (run_torch, run_onnxruntime):
        found = run(made, {"x": X})
        np.testing.assert_allclose(found["x.grad"], 2 * found["y"] / 0.5, rtol=1e-6)


FORMS = {
    "4 bits": {},
    "zero points": {"points": True},
    "8 bits": {"bits": 8, "points": True},
    "2 bits": {"bits": 2, "points": True},
    "filled up": {"columns": 40, "points": True},
    "zero points that are numbers": {"points": np.float32},
    "blocks by columns": {"groups": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_product_with_blocks_of_bits(form: str) -> None:
    """By what the codes stand for: of the input and of the bias."""
    given: dict[str, Any] = {"bits": 4, "columns": 32, "points": False, "groups": False, **FORMS[form]}
    bits, columns, size, rows = given["bits"], given["columns"], 16, 6
    blocks = -(-columns // size)
    rng = np.random.default_rng(bits + columns)
    codes = rng.integers(0, 2**bits, (rows, blocks, size)).astype(np.uint8)
    scales = rng.uniform(0.1, 0.2, (rows, blocks)).astype(np.float32)
    zeros = np.full((rows, blocks), 2 ** (bits - 1), np.uint8)
    constants = {"codes": packed(codes, bits), "scales": scales, "bias": np.ones(rows, np.float32)}
    if given["points"]:
        zeros = rng.integers(0, 2**bits, (rows, blocks)).astype(np.uint8)
        is_number = given["points"] is np.float32
        constants["zeros"] = zeros.astype(np.float32) if is_number else packed(zeros, bits)
    which = np.arange(columns) // size
    if given["groups"]:
        which = rng.integers(0, blocks, columns)
        constants["groups"] = which.astype(np.int32)
    names = [name if name in constants else "" for name in ("codes", "scales", "zeros", "groups", "bias")]
    node = helper.make_node(
        *("MatMulNBits", ["x", *names], ["y"]),
        domain="com.microsoft",
        K=columns,
        N=rows,
        bits=bits,
        block_size=size,
    )
    nodes = [node, helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("loss", "y")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, columns])]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "product", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    x = rng.standard_normal((2, 3, columns)).astype(np.float32)
    numbers = codes.reshape(rows, -1)[:, :columns].astype(np.float32)
    weight = (numbers - zeros[:, which].astype(np.float32)) * scales[:, which]
    found = run_onnxruntime(gradient(model, "loss", ["x", "bias"]).to_proto(), {"x": x})
    slope = 2 * found["y"]
    np.testing.assert_allclose(found["y"], x @ weight.T + 1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["x.grad"], slope @ weight, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found["bias.grad"], slope.sum((0, 1)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_a_large_weight_is_never_all_numbers_at_once(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.training.autodiff.vjp.quantize.HELD", 70)
    test_product_with_blocks_of_bits(form)


def packed(codes: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Several numbers to a byte along the last axis, the lowest bits first."""
    each = 8 // bits
    wide = np.pad(codes, [*[(0, 0)] * (codes.ndim - 1), (0, -codes.shape[-1] % each)])
    parts = wide.reshape(*wide.shape[:-1], -1, each) << (np.arange(each, dtype=np.uint8) * bits).astype(np.uint8)
    return np.bitwise_or.reduce(parts.astype(np.uint8), axis=-1)
