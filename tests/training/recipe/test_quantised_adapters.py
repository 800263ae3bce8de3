"""Adapters beside quantised matrices: the same training as beside the numbers these stand for, and the bits stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from decoders import decoder
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.errors import OnwardError
from onward.training import SGD, Trainer, load, lora, prepare

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)
WIDE, NARROW, BLOCK = 32, 6, 16
X, Y = RNG.standard_normal((5, 3, WIDE)).astype(np.float32), RNG.standard_normal((5, 3, NARROW)).astype(np.float32)
BATCH = {"x": X, "labels": Y}


def quantised(kind: str, dtype: Any = np.int8) -> tuple[onnx.ModelProto, Array]:
    """A product with a matrix that DequantizeLinear makes numbers of, and these numbers."""
    rows = kind in ("turned", "transB")
    shape = (NARROW, WIDE) if rows else (WIDE, NARROW)
    steps = RNG.integers(-7, 8, shape).astype(np.int8)
    codes = steps.astype(dtype)
    if kind == "blocks":
        scale = RNG.uniform(0.05, 0.1, (WIDE // BLOCK, NARROW)).astype(np.float32)
        weight, given = steps * np.repeat(scale, BLOCK, 0), {"axis": 0, "block_size": BLOCK}
    else:
        scale = RNG.uniform(0.05, 0.1, NARROW).astype(np.float32)
        weight = steps * (scale[:, None] if rows else scale)
        given = {"axis": 0 if rows else 1}
    nodes = [helper.make_node("DequantizeLinear", ["w", "scale"], ["real"], **given)]
    if kind == "turned":
        nodes.append(helper.make_node("Transpose", ["real"], ["turned"], perm=[1, 0]))
    if kind == "transB":
        nodes.append(helper.make_node("Reshape", ["x", "flat"], ["flat_x"]))
        nodes.append(helper.make_node("Gemm", ["flat_x", "real"], ["flat_y"], transB=1, alpha=0.5))
        nodes.append(helper.make_node("Reshape", ["flat_y", "deep"], ["y"]))
    else:
        nodes.append(helper.make_node("MatMul", ["x", "turned" if kind == "turned" else "real"], ["y"]))
    numbers = {"scale": scale, "flat": np.array([-1, WIDE]), "deep": np.array([-1, 3, NARROW])}
    tensors = [numpy_helper.from_array(array, name) for name, array in numbers.items()]
    tensors.append(numpy_helper.from_array(codes, "w"))
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, NARROW])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, (weight.T if rows else weight) * (0.5 if kind == "transB" else 1)


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.int4])
@pytest.mark.parametrize("kind", ["columns", "blocks", "turned", "transB"])
def test_products_with_decoded_matrices(kind: str, dtype: Any, tmp_path: Path) -> None:
    model, weight = quantised(kind, dtype)
    trainer = Trainer(prepare(model, "mse", SGD(lr=0.5), lora=lora(4, alpha=8)), kernels=False)
    assert list(trainer.parameters) == ["w.lora_a", "w.lora_b"]
    alpha = 2 * (0.5 if kind == "transB" else 1)
    a, b = (array.copy().astype(np.float64) for array in trainer.parameters.values())
    for _ in range(3):
        y = X @ (weight + alpha * a @ b)
        assert trainer.step(BATCH) == pytest.approx(((y - Y) ** 2).mean(), rel=1e-5)
        slope = np.einsum("nik,nij->kj", X, 2 * (y - Y) / Y.size) * alpha
        a, b = a - 0.5 * slope @ b.T, b - 0.5 * a.T @ slope
    trainer.save(tmp_path / "tuned.onnx")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # what it fuses rounds to 8 bits
    session = onnxruntime.InferenceSession(tmp_path / "tuned.onnx", options)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ (weight + alpha * a @ b), rtol=1e-4, atol=1e-4)
    kept = {tensor.name: tensor for tensor in onnx.load(tmp_path / "tuned.onnx").graph.initializer}
    assert kept["w"].SerializeToString() == model.graph.initializer[-1].SerializeToString()


MS = "com.microsoft"
WEIGHT = RNG.integers(-7, 8, (WIDE, NARROW)).astype(np.int8)
QUANTILES = RNG.integers(0, 256, WIDE * NARROW // 2).astype(np.uint8)
SCALE, ZERO = np.array([0.05], np.float32), np.array([1], np.int8)
ROUND = helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"])
LARGEST = RNG.uniform(0.5, 1, WIDE * NARROW // BLOCK).astype(np.float32)
OTHERS: dict[str, list[onnx.NodeProto]] = {
    "MatMulBnb4": [
        helper.make_node(
            *("MatMulBnb4", ["x", "quantiles", "largest"], ["y"]),
            domain=MS,
            K=WIDE,
            N=NARROW,
            block_size=BLOCK,
            quant_type=1,
        )
    ],
    "DynamicQuantizeMatMul": [helper.make_node("DynamicQuantizeMatMul", ["x", "w", "scale", "zero"], ["y"], domain=MS)],
    "MatMulIntegerToFloat": [
        ROUND,
        helper.make_node("MatMulIntegerToFloat", ["xq", "w", "xs", "scale", "xz", "zero"], ["y"], domain=MS),
    ],
    "MatMulInteger": [
        ROUND,
        helper.make_node("MatMulInteger", ["xq", "w", "xz", "one_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["xs", "scale"], ["scales"]),
        helper.make_node("Mul", ["numbers", "scales"], ["y"]),
    ],
}
INSIDE = [
    helper.make_node("QuantizeLinear", ["x", "xscale", "xzero"], ["xq"]),
    helper.make_node("QLinearMatMul", ["xq", "xscale", "xzero", "w", "scale", "zero", "xscale", "xzero"], ["yq"]),
    helper.make_node("DequantizeLinear", ["yq", "xscale", "xzero"], ["hidden"]),
    helper.make_node("MatMul", ["hidden", "last"], ["y"]),
]


def of_nodes(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of a product; `one_zero`, `xscale` and `xzero` are scalars."""
    numbers = {
        "w": WEIGHT,
        "scale": SCALE,
        "zero": ZERO,
        "one_zero": ZERO[0],
        "last": np.eye(NARROW, dtype=np.float32),
        "quantiles": QUANTILES,
        "largest": LARGEST,
        "xscale": np.float32(0.02),
        "xzero": np.uint8(128),
    }
    used = {name for node in nodes for name in node.input}
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in numbers.items() if name in used]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, WIDE])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, NARROW])]
    graph = helper.make_graph(nodes, "product", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("op", OTHERS)
def test_products_that_round_or_look_quantiles_up(op: str, tmp_path: Path) -> None:
    """What the matrix makes of the input stays what it was; the adapter is added to it."""
    model = of_nodes(OTHERS[op])
    base = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]
    trainer = Trainer(prepare(model, "mse", SGD(lr=0.5), lora=lora(4, alpha=8)), kernels=False)
    name = "quantiles" if op == "MatMulBnb4" else "w"
    assert list(trainer.parameters) == [f"{name}.lora_a", f"{name}.lora_b"]
    a, b = (array.copy().astype(np.float64) for array in trainer.parameters.values())
    for _ in range(3):
        y = base + 2 * X @ a @ b
        assert trainer.step(BATCH) == pytest.approx(((y - Y) ** 2).mean(), rel=1e-5)
        slope = np.einsum("nik,nij->kj", X, 2 * (y - Y) / Y.size) * 2
        a, b = a - 0.5 * slope @ b.T, b - 0.5 * a.T @ slope
    trainer.save(tmp_path / "tuned.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "tuned.onnx").run(None, {"x": X})[0]
    np.testing.assert_allclose(found, base + 2 * X @ a @ b, rtol=1e-4, atol=1e-4)


def test_what_gets_no_adapter_is_counted_and_said() -> None:
    with pytest.warns(UserWarning, match=r"1 quantised products get no adapter \(QLinearMatMul\): .* QDQ"):
        made = prepare(of_nodes(INSIDE), "mse", SGD(lr=0.1), lora=lora(2))
    assert list(made.parameters) == ["last.lora_a", "last.lora_b"]


def test_a_decoder_in_bits_goes_on_after_a_file(tmp_path: Path) -> None:
    """The bits are in the file once; what was trained runs with a cache as before."""
    model = decoder(layers=1)
    ids = np.random.default_rng(0).integers(0, 48, (2, 6))
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": ids}
    made = prepare(model, "causal_lm", SGD(lr=0.5), lora=lora(4, "model.layers.*"))
    made.save(tmp_path / "trainable.onnx")
    trainer, again = Trainer(made, kernels=False), Trainer(load(tmp_path / "trainable.onnx"), kernels=False)
    batch = {name: batch[name] for name in trainer.inputs}
    losses = [trainer.step(batch) for _ in range(4)]
    assert [again.step(batch) for _ in range(4)] == pytest.approx(losses, rel=1e-6)
    assert losses[-1] < losses[0]
    stored = onnx.load(tmp_path / "trainable.onnx")
    codes = [tensor for tensor in model.graph.initializer if tensor.name.endswith("_Q4")]
    algorithm = stored.training_info[0].algorithm
    for tensor in codes:
        data = tensor.SerializeToString()
        assert [data] == [one.SerializeToString() for one in stored.graph.initializer if one.name == tensor.name]
    large = [one for one in algorithm.initializer if one.data_type in (1, 2, 3, 21, 22) and np.prod(one.dims) > 300]
    assert not [one.name for one in large if ".lora_" not in one.name]
    again.save(tmp_path / "tuned.onnx")
    tuned = onward.load(tmp_path / "tuned.onnx").ir.graph
    assert [v.name for v in tuned.inputs] == [v.name for v in model.graph.input]
    assert sum(node.op_type == "MatMulNBits" for node in tuned) == len(codes)
    with pytest.raises(OnwardError, match=r'has an adapter already.*--trainable "\*\.lora_\?"'):
        prepare(str(tmp_path / "tuned.onnx"), lora=lora(4))


def test_patterns_that_fit_nothing_are_refused() -> None:
    with pytest.raises(OnwardError, match=r"no quantised one, is called v\.\*"):
        prepare(quantised("columns")[0], "mse", lora=lora(4, "v.*"))
