"""Attention of ONNX Runtime's optimizer, against ONNX Runtime itself."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, node_model
from test_microsoft_quantize import integers, quantum, zero

from onward.scoreboard.suite import prepare

MS = "com.microsoft"
BATCH, QUERIES, HEADS, SIZE = 2, 5, 3, 4
WIDTH = HEADS * SIZE


def ms(op: str, inputs: list[Any], outputs: Any = 1, unknown: bool = True, fixed: Any = (), **given: Any) -> None:
    while inputs[-1] is None:
        inputs.pop()
    model, feeds = node_model(op, inputs, outputs, domain=MS, fixed=fixed, **given)
    check(model, feeds, rtol=2e-5, atol=2e-5, unknown=unknown)


def masks(past: int = 0) -> dict[str, np.ndarray | None]:
    total = past + QUERIES
    right = np.arange(total) < np.array([[total], [total - 2]])
    left = np.arange(total) >= np.array([[1], [2]])
    square = np.random.default_rng(0).integers(0, 2, (BATCH, QUERIES, total))
    square[:, :, 0] = 1
    return {
        "none": None,
        "right": right.astype(np.int32),
        "left": left.astype(np.int32),
        "square": square.astype(np.int32),
        "ends": np.array([total, total - 2], np.int32),
        "ends and begins": np.array([total, total - 1, 1, 2], np.int32),
    }


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("past", [0, 3])
def test_attention(past: int, mask: str, unidirectional: int) -> None:
    x, weight, bias = floats(BATCH, QUERIES, 8), floats(8, 3 * WIDTH), floats(3 * WIDTH)
    before = floats(2, BATCH, HEADS, past, SIZE) if past else None
    inputs = [x, weight, bias, masks(past)[mask], before]
    outputs = ["y", "present"] if past else ["y"]
    ms("Attention", inputs, outputs, fixed=[1, 2], num_heads=HEADS, unidirectional=unidirectional)


def test_attention_with_more_inputs() -> None:
    x, weight, bias = floats(BATCH, QUERIES, 8), floats(8, 3 * WIDTH), floats(3 * WIDTH)
    extra = floats(1, HEADS, QUERIES, QUERIES)
    inputs = [x, weight, bias, masks()["right"], None, extra]
    ms("Attention", inputs, num_heads=HEADS, scale=0.25, mask_filter_value=-50.0)
    ms("Attention", [x, weight, bias, None, None, floats(BATCH, HEADS, QUERIES, QUERIES)], num_heads=HEADS)


def test_attention_of_other_value_width() -> None:
    sizes = [WIDTH, WIDTH, 2 * WIDTH]
    inputs = [floats(BATCH, QUERIES, 8), floats(8, sum(sizes)), floats(sum(sizes))]
    ms("Attention", inputs, num_heads=HEADS, qkv_hidden_sizes=sizes)


KEYS = 7


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", ["none", "ends", "raw"])
def test_multi_head_attention(mask: str, bias: bool) -> None:
    q, k, v = floats(BATCH, QUERIES, WIDTH), floats(BATCH, KEYS, WIDTH), floats(BATCH, KEYS, 2 * WIDTH)
    seen = {
        "none": None,
        "ends": np.array([KEYS, KEYS - 3], np.int32),
        "raw": (np.arange(KEYS) < np.array([[KEYS], [KEYS - 2]])).astype(np.int32),
    }
    for extra in (None, floats(1, HEADS, QUERIES, KEYS)):
        given = [q, k, v, floats(4 * WIDTH) if bias else None, seen[mask], extra]
        ms("MultiHeadAttention", given, num_heads=HEADS)


@pytest.mark.parametrize("bias", [False, True])
def test_packed_operands(bias: bool) -> None:
    """ONNX Runtime runs them on other processors only: expected is its result for operands apart."""
    packed = floats(BATCH, QUERIES, HEADS, 3, SIZE)
    q, k, v = (packed[:, :, :, i].reshape(BATCH, QUERIES, WIDTH) for i in range(3))
    extra = [floats(3 * WIDTH)] if bias else []
    model, feeds = node_model("MultiHeadAttention", [q, k, v, *extra], domain=MS, num_heads=HEADS)
    expected = prepare("onnxruntime", model)(feeds)
    for inputs in ([packed, None, None], [q, packed[:, :, :, 1:], None]):
        model, feeds = node_model("MultiHeadAttention", [*inputs, *extra], domain=MS, num_heads=HEADS)
        check(model, feeds, expected=expected)


@pytest.mark.parametrize("bias", [False, True])
def test_keys_and_values_with_heads_apart(bias: bool) -> None:
    k, v = floats(BATCH, HEADS, KEYS, SIZE), floats(BATCH, HEADS, KEYS, SIZE, seed=1)
    inputs = [floats(BATCH, QUERIES, WIDTH), k, v, floats(3 * WIDTH) if bias else None]
    ms("MultiHeadAttention", inputs, num_heads=HEADS)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_earlier_keys_and_values(bias: bool, unidirectional: int) -> None:
    q, k, v = (floats(BATCH, QUERIES, WIDTH, seed=i) for i in range(3))
    past = [floats(BATCH, HEADS, 3, SIZE, seed=i) for i in (3, 4)]
    inputs = [q, k, v, floats(3 * WIDTH) if bias else None, None, None, *past]
    ms("MultiHeadAttention", inputs, 3, num_heads=HEADS, unidirectional=unidirectional)
    inputs[4] = masks(3)["right"]
    ms("MultiHeadAttention", inputs, 3, num_heads=HEADS, unidirectional=unidirectional)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("queries", [1, 3, 5])
def test_queries_of_a_longer_row(queries: int, mask: bool) -> None:
    """Earlier keys and values may stand before the new ones already: the last query sees all of them."""
    inputs = [floats(BATCH, queries, HEADS * SIZE), *(floats(BATCH, 5, HEADS * SIZE, seed=i) for i in (1, 2)), None]
    inputs += [np.array([[1] * 5, [1, 1, 0, 1, 1]], np.int32)] if mask else []
    ms("MultiHeadAttention", inputs, num_heads=HEADS, unidirectional=1)


@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_qattention(kind: Any, past: int) -> None:
    x = integers(BATCH, QUERIES, 8, dtype=np.uint8)
    weight = integers(8, 3 * WIDTH, dtype=kind, seed=1, high=128)
    inputs = [x, weight, floats(3 * WIDTH), quantum(0.013), quantum(0.017), masks(past)["ends"], zero(120, np.uint8)]
    inputs += [zero(3, kind), floats(2, BATCH, HEADS, past, SIZE) if past else None]
    outputs = ["y", "present"] if past else ["y"]
    ms("QAttention", inputs, outputs, num_heads=HEADS, unidirectional=1 if past else 0)
