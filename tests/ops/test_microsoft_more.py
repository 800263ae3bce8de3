"""The other ops of ONNX Runtime that become standard ones, against ONNX Runtime itself."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, node_model
from test_microsoft_quantize import integers, quantum, zero

from onward.model import load
from onward.runners.onnxruntime import session
from onward.scoreboard.suite import prepare

MS = "com.microsoft"
SQUARE = floats(3, 4, 4) + 3 * np.eye(4, dtype=np.float32)

CASES: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("Trilu", [floats(2, 4, 5)], 1, {"upper": 0}),
    ("Trilu", [floats(4, 5), np.array(1)], 1, {}),
    ("ExpandDims", [floats(2, 3), np.array(1, np.int32)], 1, {}),
    ("ExpandDims", [floats(2, 3), np.array(-1, np.int32)], 1, {}),
    ("Pad", [floats(2, 3), np.array([0, 1, 2, 0]), np.array([7], np.float32)], 1, {}),
    ("Pad", [floats(4, 3), np.array([[0, 1, 2, 0]])], 1, {"mode": "reflect"}),
    ("Range", [np.array(2.0, np.float32), np.array(7.5, np.float32)], 1, {}),
    ("Range", [np.array([2]), np.array([9]), np.array([3])], 1, {}),
    ("GatherND", [floats(3, 4, 2), np.array([[0, 1], [2, 3]])], 1, {}),
    ("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], 3, {}),
    ("CDist", [floats(5, 3), floats(4, 3)], 1, {"metric": "euclidean"}),
    ("CDist", [floats(5, 3), floats(4, 3)], 1, {"metric": "sqeuclidean"}),
    ("GridSample", [floats(1, 2, 4, 5), floats(1, 3, 3, 2)], 1, {"mode": "bilinear", "padding_mode": "border"}),
    ("Inverse", [SQUARE], 1, {}),
]


@pytest.mark.parametrize(("op", "inputs", "outputs", "given"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_ops(op: str, inputs: list[Any], outputs: int, given: dict[str, Any]) -> None:
    model, feeds = node_model(op, inputs, outputs, domain=MS, **given)
    check(model, feeds, rtol=2e-5, atol=2e-5)


WORDS = np.array([[1, 4, 3, 0], [2, 2, 5, 1]], np.int32)


@pytest.mark.parametrize("segments", [False, True])
def test_qembed_layer_norm(segments: bool) -> None:
    tables = [integers(6, 8), integers(9, 8, seed=1), integers(2, 8, seed=2), integers(8, seed=3), integers(8, seed=4)]
    scales, points = [quantum(0.01 * i) for i in range(1, 6)], [zero(100 + i, np.uint8) for i in range(5)]
    kinds = (WORDS > 2).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    if not segments:
        kinds = tables[2] = scales[2] = points[2] = None
    inputs = [WORDS, kinds, *tables, mask, *scales, *points]
    model, feeds = node_model("QEmbedLayerNormalization", inputs, 2, domain=MS, epsilon=1e-5)
    check(model, feeds, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, np.array([5, 3], np.int32)], ids=["whole", "lengths"])
@pytest.mark.parametrize("start", [False, True])
def test_dynamic_quantize_lstm(start: bool, lengths: np.ndarray | None, direction: str) -> None:
    size, width, count = 6, 4, 2 if direction == "bidirectional" else 1
    x = floats(5, 2, width)
    w = integers(count, width, 4 * size, dtype=np.int8, seed=1)
    r = integers(count, size, 4 * size, dtype=np.int8, seed=2)
    bias = floats(count, 8 * size)
    states = [floats(count, 2, size, seed=i) if start else None for i in (3, 4)]
    w_scale, r_scale = np.full(count, 0.005, np.float32), np.full(count, 0.004, np.float32)
    zeros = np.zeros(count, np.int8)
    inputs = [x, w, r, bias, lengths, *states, None, w_scale, zeros, r_scale, zeros]
    fixed = [1, 2, 8, 9, 10, 11]
    model, feeds = node_model(
        "DynamicQuantizeLSTM", inputs, 3, domain=MS, fixed=fixed, hidden_size=size, direction=direction
    )
    one = session(load(model), threads=1)  # with more, it quantizes the states of a batch in as many parts
    wanted = one.run(None, dict(zip([i.name for i in one.get_inputs()], feeds, strict=True)))
    found = prepare("torch", model)(feeds)
    for actual, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(actual, right, rtol=1e-4, atol=1e-5)
