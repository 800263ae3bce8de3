"""Ops of ONNX Runtime of models with a state, and small ones on windows, tokens and streams, against itself."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, node_model

MS = "com.microsoft"
IMAGE = floats(2, 3, 6, 7)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [-0.2, 0.0, 1.3, 1.0], [0.5, 0.5, 0.5, 0.9]], np.float32)
WHICH = np.array([0, 1, 1], np.int32)
IDS = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]])
WORDS = np.array([[3, 1, 2, 0, 0], [1, 1, 1, 1, 4], [2, 0, 0, 0, 0]], np.int32)
FIVE = np.array([5, 9, 13, 17])


def state(rule: str, q: int, kv: int, past: bool, decay: int = 1) -> list[Any]:
    width, time = 4, 3
    return [
        floats(2, time, q * width),
        floats(2, time, kv * width, seed=1) * 0.3,
        floats(2, time, kv * 5, seed=2),
        floats(2, kv, width, 5, seed=3) if past else None,
        -np.abs(floats(2, time, kv * decay, seed=4)) if rule.startswith("gated") else None,
        np.abs(floats(2, time, kv, seed=5)) * 0.3 if rule.endswith("delta") else None,
    ]


def attention(rule: str, q: int, kv: int, past: bool, decay: int = 1) -> tuple[str, list[Any], int, dict[str, Any]]:
    given = {"q_num_heads": q, "kv_num_heads": kv, "update_rule": rule}
    return "LinearAttention", state(rule, q, kv, past, decay), 2, given


def conv(past: bool, **given: Any) -> tuple[str, list[Any], int, dict[str, Any]]:
    before = 2 * given.get("dilation", 1)
    x, old = floats(2, 4, 6), floats(2, 4, before, seed=1)
    if given.get("channels_last"):
        x, old = x.transpose(0, 2, 1).copy(), old.transpose(0, 2, 1).copy()
    inputs = [x, floats(4, 1, 3), floats(4), old if past else None]
    return "CausalConvWithState", inputs, 2, given


CASES: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    attention("linear", 2, 2, False),
    attention("gated", 4, 2, True),
    attention("delta", 2, 2, True),
    attention("gated_delta", 2, 2, True, 4),
    attention("gated_delta", 2, 4, True),
    conv(False),
    conv(True, activation="silu"),
    conv(True, dilation=2),
    conv(True, channels_last=1),
    ("LinearAttentionGate", [floats(2, 3, 4), floats(4), floats(4, seed=1), floats(2, 3, 4, seed=2)], 2, {}),
    ("GatedAdd", [floats(2, 3, 4), floats(2, 3, 4, seed=1), floats(2, 3, 1)], 1, {}),
    ("ScaledSiLU", [floats(2, 3)], 1, {"alpha": 0.7}),
    ("ScaledSiLU", [floats(2, 3), np.array(1.5, np.float32)], 1, {}),
    ("GatedRMSNorm", [floats(2, 3, 8), floats(4), floats(2, 3, 8, seed=1)], 1, {}),
    ("GatedRMSNorm", [floats(2, 3, 8), floats(8), floats(2, 3, 8, seed=1)], 1, {"activation": "sigmoid"}),
    ("BranchwiseRMSNorm", [floats(2, 3, 4, 5), floats(4, 5)], 1, {}),
    ("BranchwiseRMSNorm", [floats(2, 3, 20), floats(20)], 1, {"num_branches": 4}),
    ("BranchwiseRMSNorm", [floats(2, 3, 20), floats(5)], 1, {"num_branches": 4, "epsilon": 0.1}),
    ("HyperConnectionPreMix", [floats(2, 3, 4, 5), floats(2, 3, 4)], 1, {"reduction_scale": 0.25}),
    ("HyperConnectionPreMix", [floats(2, 3, 20), floats(2, 3, 20, seed=1)], 1, {"num_branches": 4}),
    ("HyperConnectionPostMix", [floats(2, 3, 4, 5), floats(2, 3, 5), floats(2, 3, 4), floats(2, 3, 4, 4)], 1, {}),
    ("HyperConnectionPostMix", [floats(2, 3, 20), floats(2, 3, 5), floats(2, 3, 4, 1)], 1, {"num_branches": 4}),
    (
        "EngramGate",
        [floats(2, 3, 4, 5), floats(2, 3, 4, 5, seed=1), floats(2, 3, 5), *(floats(4, 5, seed=i) for i in (1, 2, 3))],
        2,
        {},
    ),
    (
        "NGramHashMapping",
        [IDS, np.array([3, 5, 7]), FIVE],
        2,
        {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 9},
    ),
    (
        "NGramHashMapping",
        [IDS, np.array([3, 5]), FIVE[:2], IDS[:, :1] + 6, FIVE[:2]],
        2,
        {"max_ngram_size": 2, "n_head_per_ngram": 2, "pad_id": 9},
    ),
    ("NGramRepeatBlock", [IDS, floats(2, 6)], 1, {"ngram_size": 2}),
    ("NGramRepeatBlock", [IDS, floats(2, 6)], 1, {"ngram_size": 1}),
    ("NGramRepeatBlock", [IDS, floats(2, 6)], 1, {"ngram_size": 7}),
    ("MurmurHash3", [np.array([[1, -2, 3], [2**31 - 1, 0, 77]], np.int32)], 1, {}),
    ("MurmurHash3", [np.array([1, 2, 2**32 - 1], np.uint32)], 1, {"positive": 0, "seed": 42}),
    ("MurmurHash3", [np.array([1, -2, 2**40 + 3])], 1, {}),
    ("MurmurHash3", [floats(5)], 1, {}),
    ("MurmurHash3", [floats(5, dtype=np.float64)], 1, {"positive": 0}),
    ("UnfoldTensor", [floats(2, 7, 3)], 1, {"dim": 1, "size": 3, "step": 2}),
    ("UnfoldTensor", [floats(2, 7)], 1, {"size": 7}),
    ("CropAndResize", [IMAGE, BOXES, WHICH, np.array([4, 3], np.int32)], 1, {"extrapolation_value": 7.0}),
    ("CropAndResize", [IMAGE, BOXES, WHICH, np.array([4, 1], np.int32)], 1, {"mode": "nearest"}),
    (
        "ConvTransposeWithDynamicPads",
        [floats(1, 2, 4, 5), floats(2, 3, 3, 3), np.array([1, 0, 1, 2]), floats(3)],
        1,
        {"strides": [2, 2], "output_padding": [1, 0]},
    ),
    ("WordConvEmbedding", [WORDS, floats(4, 1, 2, 3), floats(4), floats(6, 3)], 1, {}),
    ("SampleOp", [floats(2, 3)], 1, {}),
    ("MatMulInteger16", [IDS.astype(np.int16), IDS.T.astype(np.int16) * 100], 1, {}),
]


WEIGHTS = {"CausalConvWithState": [1, 2], "GatedRMSNorm": [1], "EngramGate": [3, 4, 5]}
"""Inputs whose shapes must be known: those of weights are."""


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "given"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_ops(op: str, inputs: list[Any], outputs: int, given: dict[str, Any]) -> None:
    model, feeds = node_model(op, inputs, outputs, domain=MS, fixed=WEIGHTS.get(op, []), **given)
    check(model, feeds, rtol=2e-5, atol=2e-5)
