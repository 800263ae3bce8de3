"""Quantised layers in the form that ONNX Runtime computes exactly on every processor."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onward.graph.infer import infer
from onward.model import load
from onward.passes.unsigned_bytes import unsigned_bytes

RNG = np.random.default_rng(0)
LAYERS: dict[str, tuple[list[int], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ([1, 32, 6, 6], (16, 32, 3, 3), {"pads": [1] * 4}),
    "Conv with a filter for each channel": ([1, 32, 6, 6], (32, 1, 3, 3), {"group": 32, "pads": [1] * 4}),
    "Conv with five by five": ([1, 16, 9, 9], (16, 1, 5, 5), {"group": 16, "strides": [2, 2], "dilations": [2, 2]}),
    "Conv in groups": ([1, 32, 6, 6], (16, 16, 3, 3), {"group": 2}),
    "Conv of a sequence": ([1, 32, 20], (32, 1, 5), {"group": 32}),
    "MatMul": ([3, 128], (128, 16), {}),
    "Gemm": ([3, 128], (128, 16), {}),
}
"""The shapes of data and weights."""


def layer(name: str, data: Any, zero: int | None) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A layer between two grids, and inputs that are large enough to saturate; `data` and weights of int8."""
    op, (shape, weight, attributes) = name.split()[0], LAYERS[name]
    axis = 0 if op == "Conv" else 1
    channels = weight[axis]
    lowest = np.iinfo(data).min
    w = RNG.integers(90, 128, weight).astype(np.int8)
    arrays = {
        "w": w,
        "w_scale": np.full(channels, 0.01, np.float32),
        "w_zero": np.zeros(channels, np.int8),
        "scale": np.array(0.02, np.float32),
        "zero": np.array(lowest, data),
        "wide": np.array(w.sum(axis=tuple(i for i in range(w.ndim) if i != axis)).max() * 2e-4, np.float32),
    }
    if zero is not None:
        arrays["w_zero"] += np.int8(zero)
    read = ["w", "w_scale"] if zero is None else ["w", "w_scale", "w_zero"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", read, ["dw"], axis=axis),
        helper.make_node(op, ["d", "dw"], ["r"], **attributes),
        helper.make_node("QuantizeLinear", ["r", "wide", "zero"], ["qr"]),
        helper.make_node("DequantizeLinear", ["qr", "wide", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))],
        [
            numpy_helper.from_array(array, name)
            for name, array in arrays.items()
            if name in {*read, *["scale", "zero", "wide"]}
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return made, {"x": (RNG.integers(200, 256, shape) * 0.02).astype(np.float32)}


def run(proto: onnx.ModelProto, feeds: dict[str, np.ndarray], exact: bool) -> Any:
    """By ONNX Runtime as it is, or, `exact`, in floats."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if exact:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("zero", [None, 0, 3])
@pytest.mark.parametrize("data", [np.int8, np.uint8])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_exact_on_every_processor(name: str, data: Any, zero: int | None) -> None:
    proto, feeds = layer(name, data, zero)
    model = load(proto)
    unsigned_bytes(model.ir)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    wanted = run(proto, feeds, exact=True)
    assert wanted.std() > 0
    np.testing.assert_array_equal(run(made, feeds, exact=True), wanted)
    step = float(numpy_helper.to_array(next(t for t in proto.graph.initializer if t.name == "wide")))
    assert np.abs(run(made, feeds, exact=False) - wanted).max() <= step * 1.01, "rounding between two steps, no more"


def kinds(model: ir.Model) -> dict[str, str]:
    infer(model)
    found = [*model.graph.initializers.values(), *(v for node in model.graph for v in node.outputs)]
    return {v.name or "": v.dtype.name for v in found if v.dtype is not None}


def test_weights_keep_their_names_and_nothing_is_left_over() -> None:
    model = load(layer("Conv", np.int8, 0)[0]).ir
    assert unsigned_bytes(model) == 3
    found = kinds(model)
    assert (found["q"], found["w"], found["qr"]) == ("UINT8", "UINT8", "UINT8")
    assert set(model.graph.initializers) == {"w", "w_scale", "scale", "wide", "zero_point", "zero_point_2"}
    assert unsigned_bytes(model) == 0


def test_what_does_not_saturate_stays() -> None:
    """Filters for each channel, weights beside floats, and bytes that the model takes and gives."""
    own = load(layer("Conv with a filter for each channel", np.int8, 0)[0]).ir
    unsigned_bytes(own)
    assert kinds(own)["w"] == "INT8"
    text = """<ir_version: 9, opset_import: ["": 20]>
    g (int8[2, 4] a, float[2, 4] f) => (float[2, 2] y, float[2, 2] z, int8[2, 2] q)
    <float s = {0.1}, int8 i = {0}, int8[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        da = DequantizeLinear(a, s, i)
        dw = DequantizeLinear(w, s, i)
        y = MatMul(da, dw)
        z = MatMul(f, dw)
        q = QuantizeLinear(y, s, i)
    }"""
    model = load(onnx.parser.parse_model(text)).ir
    assert unsigned_bytes(model) == 0
