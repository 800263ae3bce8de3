"""ONNX Runtime is asked for what a model means, not for what it may round to or how many threads it has."""

import os

import ml_dtypes
import numpy as np
import onnx
from decoders import decoder
from harness import floats, node_model
from onnx import TensorProto, helper, numpy_helper

import onward
from onward import runners
from onward.model import load


def products() -> tuple[onnx.ModelProto, np.ndarray]:
    """A product with a weight of 4 bits, as ONNX writes it, and the weight in floats."""
    codes = np.random.default_rng(0).integers(-8, 8, (64, 32)).astype(ml_dtypes.int4)
    scales = np.abs(floats(2, 32)) + np.float32(0.1)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    slots = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [3, 64]), ("y", [3, 32]))]
    weights = [numpy_helper.from_array(codes, "w"), numpy_helper.from_array(scales, "s")]
    graph = helper.make_graph(nodes, "g", slots[:1], slots[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, codes.astype(np.float32) * np.repeat(scales, 32, 0)


def test_products_that_it_makes_itself_are_not_rounded() -> None:
    model, weight = products()
    x = floats(3, 64)
    found = runners.prepare("onnxruntime", load(model))({"x": x})["y"]
    np.testing.assert_allclose(found, x @ weight, rtol=1e-5, atol=1e-5)


def test_leave_to_round_is_not_taken_and_told() -> None:
    rounded, exact = decoder(1, accuracy=4), decoder(1)
    report = onward.verify(rounded, load(exact))
    assert report.ok and "accuracy_level" in report.remark and any("accuracy_level" in note for note in report.notes)
    assert onward.verify(exact, load(rounded)).remark == ""


def test_an_lstm_that_depends_on_threads_runs_on_one() -> None:
    size, zeros = 16, np.zeros(1, np.int8)
    w, r = (np.random.default_rng(n).integers(-128, 128, (1, n, 4 * size)).astype(np.int8) for n in (8, size))
    scale = np.full(1, 0.004, np.float32)
    inputs = [floats(20, 4, 8), w, r, floats(1, 8 * size), None, None, None, None, scale, zeros, scale, zeros]
    fixed = [1, 2, 3, 8, 9, 10, 11]
    model, feeds = node_model("DynamicQuantizeLSTM", inputs, 3, domain="com.microsoft", fixed=fixed, hidden_size=size)
    report = onward.verify(model, "torch", inputs={model.graph.input[0].name: feeds[0]})
    assert report.ok and "on one thread" in report.remark


def test_mixtures_of_experts_are_not_rounded() -> None:
    codes = [np.random.default_rng(n).integers(0, 256, (2, 32, 32)).astype(np.uint8) for n in (1, 2)]
    scales = np.full((2, 32, 2), 1e-3, np.float32)
    inputs = [floats(5, 32), floats(5, 2), codes[0], scales, None, codes[1], scales]
    given = {"expert_weight_bits": 8, "block_size": 16, "activation_type": "silu"}
    model, _ = node_model("QMoE", inputs, domain="com.microsoft", fixed=[2, 3, 5, 6], **given)
    before = dict(os.environ)
    report = onward.verify(model, "torch")
    assert report.ok and "QMoE" in report.remark and dict(os.environ) == before
