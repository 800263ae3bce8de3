"""Ops of ONNX Runtime that newer language models are written with, against ONNX Runtime itself."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from harness import check, compare, floats, node_model

from onward.scoreboard.suite import prepare

MS = "com.microsoft"
EXPERTS, WIDTH, INNER = 4, 32, 48
SCORES = floats(6, EXPERTS)


def rows(rank: int = 3, dtype: Any = np.float32) -> np.ndarray:
    return floats(2, 3, WIDTH, dtype=dtype) if rank == 3 else floats(6, WIDTH, dtype=dtype)


GATED = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0}


@pytest.mark.parametrize("rank", [3, 2])
@pytest.mark.parametrize(
    "given",
    [
        {"activation_type": "silu", "normalize_routing_weights": 1, "k": 2},
        {"activation_type": "gelu", "k": 3},
        {"activation_type": "identity"},
        {**GATED, "swiglu_limit": 1.0, "k": 2, "normalize_routing_weights": 1},
        {**GATED, "k": 2},
    ],
    ids=str,
)
def test_mixture_of_experts(given: dict[str, Any], rank: int) -> None:
    wide = 2 if "swiglu_fusion" in given else 1
    first, second = floats(EXPERTS, wide * INNER, WIDTH), floats(EXPERTS, WIDTH, INNER, seed=1)
    biases = [floats(EXPERTS, wide * INNER), floats(EXPERTS, WIDTH)] if rank == 3 else [None, None]
    inputs = [rows(rank), SCORES, first, biases[0], second, biases[1]]
    model, feeds = node_model("MoE", inputs, domain=MS, fixed=[2, 4], **given)
    check(model, feeds, rtol=2e-5, atol=2e-4)


def codes(*shape: int, bits: int) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 256, (*shape[:-1], shape[-1] * bits // 8)).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("bits", "block", "points", "shares"),
    [(4, 0, False, False), (4, 32, True, False), (8, 0, True, True), (2, 16, False, True), (4, 0, True, False)],
)
@pytest.mark.parametrize("gated", [False, True])
def test_quantized_mixture_of_experts(
    gated: bool, bits: int, block: int, points: bool, shares: bool, dtype: Any
) -> None:
    wide = 2 if gated else 1
    shapes = [(EXPERTS, wide * INNER, WIDTH), (EXPERTS, WIDTH, INNER)]
    weights = [codes(*shape, bits=bits) for shape in shapes]
    groups = [(*s[:2], -(-s[2] // block)) if block else s[:2] for s in shapes]
    scales = [(np.abs(floats(*group, seed=2)) * 0.02 / 2**bits + 0.01 / 2**bits).astype(dtype) for group in groups]
    fixed, zeros = [2, 3, 5, 6], [None, None]
    if points:
        zeros = [codes(*g[:-1], -(-g[-1] * bits // 8) * 8 // bits, bits=bits) for g in groups]
        fixed += [11, 12]
    mixed = np.abs(SCORES).astype(dtype) if shares else None
    inputs = [rows(dtype=dtype), SCORES.astype(dtype), weights[0], scales[0], None, weights[1], scales[1]]
    inputs += [None] * 4 + [*zeros, None, mixed]
    given = {"k": 2, "expert_weight_bits": bits, "normalize_routing_weights": int(shares)}
    given |= {**GATED, "swiglu_limit": 7.0} if gated else {"activation_type": "silu"}
    given |= {"block_size": block} if block else {}
    model, feeds = node_model("QMoE", inputs, domain=MS, fixed=fixed, **given)
    check(model, feeds, rtol=2e-3 if dtype == np.float16 else 2e-5, atol=2e-3 if dtype == np.float16 else 1e-4)


HEADS, SIZE = 2, 8


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_decoder_attention(masked: bool, bias: bool) -> None:
    """One element more in a buffer of ten places of which six are filled."""
    new = [floats(2, 1, HEADS * SIZE, seed=i) for i in range(3)]
    past = [floats(2, HEADS, 10, SIZE, seed=i) for i in (3, 4)]
    mask = np.array([[1] * 7, [0, 0] + [1] * 5], np.int32) if masked else None
    scores = floats(1, HEADS, 1, 7) if bias else None
    inputs = [*new, mask, scores, *past, np.array([6], np.int32), None, None]
    inputs += [floats(3 * HEADS * SIZE) if bias else None]
    given = {"num_heads": HEADS, "past_present_share_buffer": 1}
    model, feeds = node_model("DecoderMaskedMultiHeadAttention", inputs, 3, domain=MS, **given)
    check(model, feeds, rtol=2e-5, atol=2e-5, unknown=not masked)


def test_decoder_attention_over_an_encoder() -> None:
    inputs = [floats(2, 1, HEADS * SIZE), *(floats(2, HEADS, 5, SIZE, seed=i) for i in (1, 2))]
    model, feeds = node_model("DecoderMaskedMultiHeadAttention", inputs, domain=MS, num_heads=HEADS)
    check(model, feeds, rtol=2e-5, atol=2e-5, unknown=False)


LAYOUTS = np.array([[[1, 0, 0], [1, 1, 0], [0, 1, 1]], [[1, 0, 0], [0, 1, 0], [1, 0, 1]]])


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize(("new", "lengths"), [(40, [40, 40]), (1, [38, 38])], ids=["prompt", "step"])
def test_sparse_attention(new: int, lengths: list[int], rotary: int) -> None:
    kept = [np.nonzero(layout) for layout in LAYOUTS]
    most = max(len(columns) for _, columns in kept)
    begins = np.array([[(r < row).sum() for row in range(4)] for r, _ in kept], np.int32)
    columns = np.array([[*c, *[-1] * (most - len(c))] for _, c in kept], np.int32)
    q, k, v = (floats(2, new, n * 16, seed=i) for i, n in enumerate((4, 2, 2)))
    past = [np.zeros((2, 2, 48, 16), np.float32) if new > 1 else floats(2, 2, 48, 16, seed=i) for i in (3, 4)]
    turns = np.arange(48)[:, None] / 10 ** (np.arange(8) / 3)
    tables = [f(turns).astype(np.float32) for f in (np.cos, np.sin)] if rotary else []
    total = np.array([max(lengths)], np.int32)
    inputs = [q, k, v, *past, begins, columns, total, np.array(lengths, np.int32), *tables]
    given = {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16, "do_rotary": rotary}
    model, feeds = node_model("SparseAttention", inputs, 3, domain=MS, fixed=[5, 6], **given)
    found, wanted = prepare("torch", model)(feeds), in_place(model, feeds)
    for row, end in enumerate(lengths):
        cut = [[y[row, : min(new, end)], *(cache[row, :, :end] for cache in caches)] for y, *caches in (found, wanted)]
        compare(*cut, rtol=2e-5, atol=2e-5)


def in_place(model: onnx.ModelProto, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime gives where the caches are buffers that it writes to: it takes no others."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding, names = session.io_binding(), [value.name for value in session.get_inputs()]
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in zip(names, feeds, strict=True)}
    for name, value in given.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("out0")
    binding.bind_ortvalue_output("out1", given["in3"])
    binding.bind_ortvalue_output("out2", given["in4"])
    session.run_with_iobinding(binding)
    return [value.numpy() for value in binding.get_outputs()]


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotation_by_three_positions(interleaved: int, layout: int) -> None:
    turns = np.arange(20)[:, None] / 10 ** (np.arange(8) / 3)
    positions = np.random.default_rng(0).integers(0, 20, (3, 2, 5))
    inputs = [floats(2, HEADS, 5, 16), positions, np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)]
    given = {"mrope_section": [4, 2, 2], "mrope_layout": layout, "interleaved": interleaved}
    model, feeds = node_model("MRotaryEmbedding", inputs, domain=MS, **given)
    check(model, feeds, unknown=False)
