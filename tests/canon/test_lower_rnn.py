"""Recurrent layers written as Scans compute what ONNX Runtime computes for the layers themselves."""

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from onward.canon.lower import lower
from onward.canon.lower.registry import DIALECT
from onward.model import Model, load

T, B, N, H = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
NUMBERS = {"activation_alpha": [0.3, 0.4], "activation_beta": [0.2, 0.1]}
CASES = [
    ("RNN", {}),
    ("RNN", {"direction": "reverse", "lengths": [5, 2, 0], "states": True}),
    ("RNN", {"direction": "bidirectional", "clip": 0.4, "activations": ["Relu", "Softsign"]}),
    *(("RNN", {"activations": [name], **NUMBERS}) for name in ("Affine", "ScaledTanh", "HardSigmoid")),
    *(("RNN", {"activations": [name], "activation_alpha": [0.3]}) for name in ("LeakyRelu", "Elu", "ThresholdedRelu")),
    ("GRU", {"direction": "bidirectional", "states": True}),
    ("GRU", {"direction": "reverse", "linear_before_reset": 1, "lengths": [2, 5, 0], "clip": 0.5}),
    ("GRU", {"activations": ["HardSigmoid", "Softplus"], "bias": False}),
    ("LSTM", {"direction": "bidirectional", "states": True, "peepholes": True}),
    ("LSTM", {"direction": "reverse", "lengths": [3, 5, 0], "states": True, "peepholes": True, "clip": 0.5}),
    ("LSTM", {"input_forget": 1, "bias": False}),
    ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Elu"], **NUMBERS, "states": True}),
]


def draw(*shape: int, seed: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 2


def layer(kind: str, options: dict[str, object]) -> tuple[onnx.ModelProto, dict[str, npt.NDArray[np.float32]]]:
    kept = dict(options)
    lengths, states, peepholes, bias = (kept.pop(key, None) for key in ("lengths", "states", "peepholes", "bias"))
    ways, g = 2 if options.get("direction") == "bidirectional" else 1, GATES[kind]
    weights = {"w": draw(ways, g * H, N, seed=1), "r": draw(ways, g * H, H, seed=2)}
    if bias is not False:
        weights["b"] = draw(ways, 2 * g * H, seed=3)
    if lengths is not None:
        weights["lengths"] = np.array(lengths, np.int32)
    if peepholes:
        weights["p"] = draw(ways, 3 * H, seed=4)
    feeds = {"x": draw(T, B, N, seed=5)}
    if states:
        feeds |= {name: draw(ways, B, H, seed=6 + i) for i, name in enumerate(["h", "c"][: 1 + (kind == "LSTM")])}
    names = [n if n in weights or n in feeds else "" for n in ("x", "w", "r", "b", "lengths", "h", "c", "p")]
    outputs = ["y", "y_h", "y_c"][: 2 + (kind == "LSTM")]
    node = helper.make_node(kind, names[: 8 if kind == "LSTM" else 6], outputs, hidden_size=H, **kept)
    graph = helper.make_graph(
        [node],
        kind.lower(),
        [helper.make_tensor_value_info(name, 1, [None, None, value.shape[2]]) for name, value in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", DIALECT)], ir_version=10), feeds


def run(model: onnx.ModelProto, feeds: dict[str, npt.NDArray[np.float32]]) -> list[npt.NDArray[np.float32]]:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)  # type: ignore[no-any-return]


def as_scans(model: onnx.ModelProto) -> onnx.ModelProto:
    graph = load(model).ir.clone()
    assert lower(graph, lambda key: key not in GATES)
    assert "Scan" in {node.op_type for node in graph.graph}
    return Model(graph).to_proto()


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_scans_are_the_layer(kind: str, options: dict[str, object]) -> None:
    model, feeds = layer(kind, options)
    for wanted, found in zip(run(model, feeds), run(as_scans(model), feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", GATES)
def test_the_batch_may_come_first(kind: str) -> None:
    """ONNX Runtime has no such layers, so the layer with steps first is compared."""
    model, feeds = layer(kind, {"direction": "bidirectional", "states": True})
    y, *states = run(model, feeds)
    node = model.graph.node[0]
    node.attribute.append(helper.make_attribute("layout", 1))
    found = run(as_scans(model), {name: value.swapaxes(0, 1) for name, value in feeds.items()})
    for wanted, made in zip([y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in states)], found, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=2e-6)
