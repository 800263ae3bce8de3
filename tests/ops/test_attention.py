"""Attention and its relatives, against ONNX's reference implementation and against formulas."""

import itertools

import numpy as np
import onnx
import pytest
import torch
from harness import check, compare, floats, node_model, source, to_torch
from onnx.reference import ReferenceEvaluator

B, HEADS, T, S, D = 2, 4, 3, 5, 8
OPSET = 25


def reference(model: onnx.ModelProto, feed: list[np.ndarray]) -> list[np.ndarray]:
    names = [i.name for i in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, feed, strict=True)))


def attention(inputs, outputs=1, **attributes):
    model, feed = node_model("Attention", inputs, outputs, opset=OPSET, **attributes)
    check(model, feed, expected=reference(model, feed), atol=1e-5)
    return source(model)


def qkv(groups: int = 1, keys: int = S, dtype=np.float32) -> list[np.ndarray]:
    heads = HEADS // groups
    return [
        floats(B, HEADS, T, D, dtype=dtype),
        floats(B, heads, keys, D, dtype=dtype, seed=1),
        floats(B, heads, keys, D + 2, dtype=dtype, seed=2),
    ]


def masks() -> dict[str, np.ndarray | None]:
    shown = np.random.default_rng(0).random((B, HEADS, T, S)) > 0.4
    shown[0, 0, 0] = False
    return {
        "none": None,
        "bool": shown,
        "float": np.where(shown, floats(B, HEADS, T, S), -np.inf).astype(np.float32),
        "flat": shown[0, 0],
        "row": shown[0, 0, 1],
        "heads": floats(HEADS, T, S),
        "short": floats(B, 1, T, S - 2),
        "short bool": shown[:, :1, :, : S - 2],
    }


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "window", [{}, {"left_window_size": 1}, {"left_window_size": 2, "right_window_size": 1}], ids=str
)
def test_masks(mask, causal, groups, window):
    if mask == "row" and causal and not window:
        pytest.skip("the reference fails")
    attention([*qkv(groups), masks()[mask]], is_causal=causal, **window)


@pytest.mark.parametrize(
    ("mode", "mask", "causal"), list(itertools.product(range(4), ["none", "bool", "float"], [0, 1]))
)
def test_inner_scores(mode, mask, causal):
    # the reference caps the raw scores, too, against the text and the function body of the operator
    attributes = {"qk_matmul_output_mode": mode, "is_causal": causal, "softcap": 1.5 if mode else 0.0}
    attention([*qkv(2), masks()[mask]], ["y", "", "", "qk"], **attributes)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("window", [-1, 1])
@pytest.mark.parametrize("mask", [False, True])
def test_cache(causal, window, mask):
    past = [floats(B, HEADS, 4, D), floats(B, HEADS, 4, D + 2)]
    bias = floats(B, 1, T, S + 4) if mask else None
    attention([*qkv(), bias, *past], 3, is_causal=causal, left_window_size=window)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("window", [-1, 1])
@pytest.mark.parametrize("lengths", [[5, 3], [4, 1]])
def test_padded_keys(causal, window, lengths):
    given = [*qkv(), None, None, None, np.array(lengths, np.int64)]
    attention(given, is_causal=causal, left_window_size=window)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("scale", [None, 0.2])
def test_packed_heads(kv_heads, scale):
    inputs = [floats(B, T, HEADS * D), floats(B, S, kv_heads * D), floats(B, S, kv_heads * D, seed=1)]
    options = {} if scale is None else {"scale": scale}
    attention(inputs, q_num_heads=HEADS, kv_num_heads=kv_heads, **options)


@pytest.mark.parametrize("precision", [1, 11])
def test_softmax_precision(precision):
    attention(qkv(), softmax_precision=precision)


def test_plain_attention_is_one_call():
    text = attention(qkv(), is_causal=1)
    assert "return F.scaled_dot_product_attention(in0, in1, in2, is_causal=True)" in text
    assert "enable_gqa=True" in attention(qkv(2))


def test_export_with_dynamic_sizes():
    model, feed = node_model("Attention", [*qkv(), floats(B, 1, T, S)], opset=OPSET)
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[2].dim_param = "t" if value.name == "in0" else "s"
    model.graph.input[3].type.tensor_type.shape.dim[2].dim_param = "t"
    model.graph.input[3].type.tensor_type.shape.dim[3].dim_param = "s"
    t, s = torch.export.Dim("t", min=2, max=50), torch.export.Dim("s", min=2, max=50)
    shapes = ({2: t}, {2: s}, {2: s}, {2: t, 3: s})
    inputs = tuple(torch.from_numpy(x) for x in feed)
    program = torch.export.export(to_torch(model), inputs, dynamic_shapes=shapes, strict=False)
    compare([program.module()(*inputs).detach().numpy()], reference(model, feed))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [0, 4])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("positions", [False, True])
def test_rotary_embedding(interleaved, width, packed, positions):
    x = floats(B, T, HEADS * D) if packed else floats(B, HEADS, T, D)
    shape = (10, (width or D) // 2) if positions else (B, T, (width or D) // 2)
    angles = [floats(*shape), floats(*shape, seed=1)]
    ids = [np.random.default_rng(0).integers(0, 10, (B, T))] if positions else []
    attributes = {"num_heads": HEADS} if packed else {}
    model, feed = node_model(
        "RotaryEmbedding",
        [x, *angles, *ids],
        opset=23,
        interleaved=interleaved,
        rotary_embedding_dim=width,
        **attributes,
    )
    check(model, feed, expected=reference(model, feed))


def test_an_empty_batch():
    q, k = np.zeros((0, T, HEADS * D), np.float32), np.zeros((0, S, HEADS * D), np.float32)
    packed = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    check(*node_model("Attention", [q, k, k], opset=OPSET, **packed), expected=[q])
    x, angles = np.zeros((0, HEADS, T, D), np.float32), np.zeros((0, T, D // 2), np.float32)
    for interleaved in (0, 1):
        model, feed = node_model("RotaryEmbedding", [x, angles, angles], opset=23, interleaved=interleaved)
        check(model, feed, expected=[x])
