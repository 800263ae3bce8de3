"""Every attribute and optional input of the ops of language models: the gradient is that of ONNX Runtime's own op.

What is compared with is ONNX Runtime running the op itself, not our definition of it: its result, and how it changes
along a random direction. What has no gradient is refused, by the name of the node and what it is about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from gradient_checks import TARGET, Arrays, run_onnxruntime, single
from onnx import TensorProto, helper, numpy_helper

from onward.errors import UnsupportedError
from onward.training.autodiff.derivatives import gradient

MS = "com.microsoft"
GQA, MHA, ROTARY = "GroupQueryAttention", "MultiHeadAttention", "RotaryEmbedding"
SKIP, SKIP_ROOT = "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"
STEP = 1e-2
Case = tuple[str, Arrays, dict[str, Any]]


def f(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape) + seed).uniform(-1, 1, shape).astype(np.float32)


def i(*numbers: int) -> np.ndarray[Any, Any]:
    return np.asarray(numbers, np.int32)


def turns(width: int) -> Arrays:
    angles = np.arange(12)[:, None] / 3.0 ** np.arange(width // 2)
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


NO_TURNS = {"_cos": f(1), "_sin": f(1)}
"""An input whose name begins with `_` is left out."""


def grouped(
    new: int = 4,
    ends: tuple[int, ...] = (3, 3),
    past: int | None = None,
    packed: bool = False,
    rotary: int = 0,
    size: int = 16,
    more: Arrays | None = None,
    **given: Any,
) -> Case:
    """Two heads that share one, of so many features; `past`: how many places the cache has."""
    rows, no = len(ends), f(1)
    qkv = {"q": f(rows, new, 4 * size), "_k": no, "_v": no}
    if not packed:
        qkv = {"q": f(rows, new, 2 * size), "k": f(rows, new, size, seed=1), "v": f(rows, new, size, seed=2)}
    cache = {"_pk": no, "_pv": no}
    if past is not None:
        cache = {"pk": f(rows, 1, past, size), "pv": f(rows, 1, past, size, seed=1)}
    lengths = {"ends": i(*ends), "total": np.asarray(max(ends) + 1, np.int32)}
    tables = turns(rotary) if rotary else NO_TURNS
    inputs = {**qkv, **cache, **lengths, **tables, **(more or {})}
    return GQA, inputs, {"num_heads": 2, "kv_num_heads": 1, "outputs": 3, "do_rotary": int(bool(rotary)), **given}


NO_PLACES = {"_places": f(1)}
BIAS = {**NO_PLACES, "bias": f(1, 2, 4, 4)}
SINK = {**NO_PLACES, "_bias": f(1), "sink": f(2)}
GROUPED = {
    "plain": grouped(),
    "packed": grouped(packed=True),
    "rotary": grouped(rotary=16),
    "rotary, packed": grouped(rotary=16, packed=True),
    "rotary, interleaved": grouped(rotary=16, rotary_interleaved=1),
    "rotary of a part": grouped(rotary=16, size=32, past=0),
    "rotary of a part, interleaved": grouped(rotary=16, size=32, rotary_interleaved=1, packed=True),
    "rotary, positions": grouped(rotary=16, more={"places": np.asarray([[2, 3, 4, 5], [2, 3, 4, 5]])}),
    "rotary, past": grouped(rotary=16, past=3, ends=(6,)),
    "past": grouped(past=3, ends=(6,)),
    "past, packed": grouped(past=3, ends=(6,), packed=True),
    "past with room": grouped(new=1, past=8, ends=(4, 2)),
    "past, one token": grouped(new=1, past=3, ends=(3, 3), rotary=16),
    "padded rows": grouped(ends=(3, 1), past=0),
    "window": grouped(local_window_size=2),
    "window, past": grouped(local_window_size=3, past=3, ends=(6,)),
    "scale": grouped(scale=0.2),
    "softcap": grouped(softcap=0.7),
    "softcap, window": grouped(softcap=0.7, local_window_size=2),
    "smooth softmax": grouped(smooth_softmax=1),
    "sink": grouped(more=SINK),
    "sink, softcap": grouped(more=SINK, softcap=0.7),
    "bias": grouped(more=BIAS),
    "bias, sink, window": grouped(more={**BIAS, "sink": f(2)}, local_window_size=2),
    "not causal": grouped(causal=0),
}


def rotation(x: np.ndarray[Any, Any], places: Any, width: int, **given: Any) -> Case:
    return ROTARY, {"x": x, "p": np.asarray(places), **turns(width)}, given


EACH = [[0, 1, 2], [3, 5, 4]]
ROTATIONS = {
    "flat": rotation(f(2, 3, 16), EACH, 8),
    "flat, heads": rotation(f(2, 3, 16), EACH, 8, num_heads=2),
    "by heads": rotation(f(2, 2, 3, 8), EACH, 8),
    "interleaved": rotation(f(2, 3, 16), EACH, 8, interleaved=1),
    "offset": rotation(f(2, 3, 16), [2], 8),
    "of a part": rotation(f(2, 3, 16), EACH, 4, num_heads=2, rotary_embedding_dim=4),
    "of a part, interleaved": rotation(f(2, 3, 16), EACH, 4, num_heads=2, rotary_embedding_dim=4, interleaved=1),
    "of a part, by heads": rotation(f(2, 2, 3, 8), EACH, 4, num_heads=2, rotary_embedding_dim=4),
    "scale": rotation(f(2, 3, 16), EACH, 8, scale=0.5),
}


def heads(more: Arrays | None = None, keys: int = 3, **given: Any) -> Case:
    inputs = {"q": f(2, 3, 8), "k": f(2, keys, 8, seed=3), "v": f(2, keys, 8, seed=1), **(more or {})}
    return MHA, inputs, {"num_heads": 2, **given}


NO_BIAS = {"_b": f(1)}
NO_MASK = {**NO_BIAS, "_m": f(1)}
NO_EXTRA = {**NO_MASK, "_extra": f(1)}
CACHED = {**NO_EXTRA, "pk": f(2, 2, 2, 4), "pv": f(2, 2, 2, 4, seed=1)}
HEADS = {
    "plain": heads(),
    "bias": heads({"b": f(24)}),
    "scale": heads(scale=0.3),
    "causal": heads(unidirectional=1),
    "mask of keys": heads({**NO_BIAS, "m": i(1, 1, 0, 1, 1, 1).reshape(2, 3)}),
    "mask of keys, filter": heads({**NO_BIAS, "m": i(1, 1, 0, 1, 1, 1).reshape(2, 3)}, mask_filter_value=-2.0),
    "lengths": heads({**NO_BIAS, "m": i(2, 3)}),
    "mask of pairs": heads({**NO_BIAS, "m": i(*[1, 1, 0] * 6).reshape(2, 3, 3)}),
    "added to scores": heads({**NO_MASK, "extra": f(2, 2, 3, 3)}),
    "added to all": heads({**NO_MASK, "extra": f(1, 1, 3, 3)}),
    "past": heads(CACHED, outputs=3),
    "past, causal": heads(CACHED, outputs=3, unidirectional=1),
    "more keys": heads(keys=5),
    "more keys, causal": heads(keys=5, unidirectional=1),
    "keys by heads": (MHA, {"q": f(2, 3, 8), "k": f(2, 2, 5, 4), "v": f(2, 2, 5, 4, seed=1)}, {"num_heads": 2}),
}
SELF = {"x": f(2, 3, 6), "w": f(6, 24), "b": f(24)}
SELVES: dict[str, Case] = {
    "plain": ("Attention", SELF, {"num_heads": 2}),
    "causal": ("Attention", SELF, {"num_heads": 2, "unidirectional": 1, "scale": 0.4}),
    "mask of keys": ("Attention", {**SELF, "m": i(1, 1, 0, 1, 1, 1).reshape(2, 3)}, {"num_heads": 2}),
    "lengths": ("Attention", {**SELF, "m": i(2, 3)}, {"num_heads": 2}),
    "past": ("Attention", {**SELF, "_m": f(1), "past": f(2, 2, 2, 2, 4)}, {"num_heads": 2, "outputs": 2}),
    "added to scores": ("Attention", {**SELF, "_m": f(1), "_p": f(1), "extra": f(2, 2, 3, 3)}, {"num_heads": 2}),
    "widths": ("Attention", {**SELF, "w": f(6, 20), "b": f(20)}, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
}


def standard(more: Arrays | None = None, opset: int = 24, **given: Any) -> Case:
    """The op of the standard itself."""
    inputs = {"q": f(2, 2, 3, 4), "k": f(2, 2, 5, 4, seed=1), "v": f(2, 2, 5, 4, seed=2), **(more or {})}
    return "Attention", inputs, {"domain": "", "opset": opset, **given}


FLAT = {"q": f(2, 3, 16), "k": f(2, 3, 8, seed=1), "v": f(2, 3, 8, seed=2)}
COUNTS = {"q_num_heads": 4, "kv_num_heads": 2}
EARLIER = {"_m": f(1), "pk": f(2, 2, 2, 4), "pv": f(2, 2, 2, 4, seed=1)}
STANDARD = {
    "plain": standard(),
    "opset 23": standard(opset=23),
    "causal": standard(is_causal=1),
    "scale, softcap": standard(scale=0.3, softcap=0.7),
    "mask": standard({"m": f(3, 5)}),
    "mask of truths": standard({"m": np.tri(3, 5, 1, bool)}),
    "mask by rows": standard({"m": f(2, 1, 3, 5)}),
    "shared heads": standard({"q": f(2, 4, 3, 4)}),
    "flat": standard(FLAT, **COUNTS),
    "flat, causal, mask": standard({**FLAT, "m": f(3, 3)}, **COUNTS, is_causal=1),
    "past": standard(EARLIER, outputs=3),
    "past, causal": standard(EARLIER, outputs=3, is_causal=1),
    "lengths": standard({"_m": f(1), "_pk": f(1), "_pv": f(1), "n": np.asarray([4, 2])}),
    "precision": standard(softmax_precision=1),
    "probabilities": standard(outputs=4, qk_matmul_output_mode=3),
    "narrow values": standard({"v": f(2, 2, 5, 3)}),
}
TURNED = {"x": f(2, 3, 16), **turns(8), "p": np.asarray([[0, 1, 2], [3, 5, 4]])}
PLAIN: dict[str, Case] = {
    "rotary": ("RotaryEmbedding", TURNED, {"domain": "", "opset": 23, "num_heads": 2}),
    "rotary, interleaved": ("RotaryEmbedding", TURNED, {"domain": "", "opset": 23, "num_heads": 2, "interleaved": 1}),
    "rotary of a part": (
        "RotaryEmbedding",
        {**TURNED, **turns(4)},
        {"domain": "", "opset": 23, "num_heads": 2, "rotary_embedding_dim": 4},
    ),
    "rotary by heads": ("RotaryEmbedding", {**TURNED, "x": f(2, 2, 3, 8)}, {"domain": "", "opset": 23}),
    "root": ("RMSNormalization", {"x": f(2, 3, 8), "g": f(8)}, {"domain": "", "opset": 23, "epsilon": 1e-2}),
    "root, two axes": ("RMSNormalization", {"x": f(2, 3, 8), "g": f(3, 8)}, {"domain": "", "opset": 23, "axis": 1}),
    "swish": ("Swish", {"x": f(2, 3, 8)}, {"domain": "", "opset": 24, "alpha": 0.8}),
}
X, OTHER, GAMMA, BETA = f(2, 3, 8), f(2, 3, 8, seed=1), f(8), f(8, seed=1)
JOINED = {"x": X, "skip": OTHER, "gamma": GAMMA}
NORMS: dict[str, Case] = {
    "skip": (SKIP, JOINED, {}),
    "skip, beta": (SKIP, {**JOINED, "beta": BETA}, {"epsilon": 1e-2}),
    "skip, bias": (SKIP, {**JOINED, "beta": BETA, "bias": f(8, seed=2)}, {}),
    "skip, one row for all": (SKIP, {**JOINED, "skip": f(1, 3, 8)}, {}),
    "skip, rows in one axis": (SKIP, {**JOINED, "x": f(6, 8), "skip": f(6, 8, seed=1)}, {}),
    "skip, sum": (SKIP, {**JOINED, "beta": BETA}, {"outputs": 4}),
    "root": (SKIP_ROOT, JOINED, {}),
    "root, bias": (SKIP_ROOT, {**JOINED, "bias": BETA}, {"epsilon": 1e-2}),
    "root, sum": (SKIP_ROOT, JOINED, {"outputs": 4}),
    "root, rows in one axis": (SKIP_ROOT, {**JOINED, "x": f(6, 8), "skip": f(6, 8, seed=1)}, {"outputs": 4}),
    "root alone": ("SimplifiedLayerNormalization", {"x": X, "gamma": GAMMA}, {"domain": "", "epsilon": 1e-2}),
    "root alone, two axes": ("SimplifiedLayerNormalization", {"x": X, "gamma": f(3, 8)}, {"domain": "", "axis": 1}),
    "gelu": ("Gelu", {"x": X}, {}),
    "gelu, bias": ("BiasGelu", {"x": X, "b": BETA}, {}),
    "fast gelu": ("FastGelu", {"x": X}, {}),
    "fast gelu, bias": ("FastGelu", {"x": X, "b": BETA}, {}),
    "quick gelu": ("QuickGelu", {"x": X}, {}),
    "quick gelu, alpha": ("QuickGelu", {"x": X}, {"alpha": 0.8}),
}
CASES = {
    f"{title}: {name}": case
    for title, group in (
        *(("grouped", GROUPED), ("rotary", ROTATIONS), ("heads", HEADS), ("self", SELVES), ("joined", NORMS)),
        *(("Attention", STANDARD), ("standard", PLAIN)),
    )
    for name, case in group.items()
}


def weights_of(own: Arrays, feeds: Arrays) -> Arrays:
    """Random numbers for all that the op gives; none where it is not defined, behind the end of a row."""
    rng = np.random.default_rng(5)
    found = {name: rng.uniform(0.5, 1.5, array.shape).astype(np.float32) for name, array in own.items()}
    for row, end in enumerate(feeds.get("ends", ())):
        found["y0"][row, end + 1 :] = 0
        for cache in ("y1", "y2"):
            found[cache][row, :, end + 1 :] = 0
    return found


def weighted(model: onnx.ModelProto, weights: Arrays) -> onnx.ModelProto:
    """A scalar more: what the op gives times the weights, in all."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for name, array in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(array, f"w_{name}"))
        made.graph.node.append(helper.make_node("Mul", [name, f"w_{name}"], [f"m_{name}"]))
        made.graph.node.append(helper.make_node("ReduceSum", [f"m_{name}"], [f"t_{name}"], keepdims=0))
    made.graph.node.append(helper.make_node("Sum", [f"t_{name}" for name in weights], [TARGET]))
    made.graph.output.append(helper.make_tensor_value_info(TARGET, TensorProto.FLOAT, []))
    return made


def prepared(case: str) -> tuple[onnx.ModelProto, Arrays]:
    """A model of the op alone, and what it takes."""
    op, inputs, options = CASES[case]
    model = single(op, inputs, **{"domain": MS, **options})
    if op in (SKIP, SKIP_ROOT) and options.get("outputs") == 4:  # ONNX Runtime gives no mean and no deviation
        model.graph.node[0].output[1:3] = ["", ""]
        del model.graph.output[1:3]
    return model, {name: array for name, array in inputs.items() if name[0] != "_"}


@pytest.mark.parametrize("case", CASES)
def test_gradient(case: str) -> None:
    model, feeds = prepared(case)
    own = run_onnxruntime(model, feeds)
    weights = weights_of(own, feeds)
    wrt = [name for name, array in feeds.items() if array.dtype == np.float32 and array.size and name not in turns(2)]
    found = run_onnxruntime(gradient(weighted(model, weights), TARGET, wrt).to_proto(), feeds)
    for name, array in own.items():
        np.testing.assert_allclose(found[name] * (weights[name] > 0), array * (weights[name] > 0), 2e-5, 2e-5)
    for number, name in enumerate(wrt):
        way = np.random.default_rng(number).choice([-1, 1], feeds[name].shape).astype(np.float32)
        ends = [run_onnxruntime(model, {**feeds, name: feeds[name] + way * step}) for step in (STEP, -STEP)]
        slope = sum(np.sum((ends[0][y] - ends[1][y]) * each, dtype=np.float64) for y, each in weights.items())
        expected = pytest.approx(slope / (2 * STEP), rel=5e-3, abs=5e-3)
        assert float(np.sum(found[f"{name}.grad"] * way)) == expected, name


NO_SINK = {**NO_PLACES, "_bias": f(1), "_sink": f(1)}
STEPS = {**NO_SINK, "ks": f(1), "vs": f(1)}
REFUSED = {
    "a cache of integers": (grouped(more=STEPS, k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR"), "of integers"),
    "a cache of a window": (grouped(sliding_window_cache=1, local_window_size=2), "a cache of the size of its window"),
    "a window of nothing": (grouped(local_window_size=0), "a window of no places"),
    "scores": (grouped(outputs=4, qk_output=1), "scores as an output"),
    "packed rows": (rotation(f(2, 3, 16), EACH, 8, is_packed_batching=1), "packed into one"),
    "a shared buffer": (heads({**CACHED, "n": i(2)}), "in a shared buffer"),
    "turns inside": (("Attention", SELF, {"num_heads": 2, "do_rotary": 1}), "rotary embedding inside attention"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_gradient_is_refused_by_name(case: str) -> None:
    (op, inputs, options), why = REFUSED[case]
    model = single(op, inputs, **{"domain": MS, **options})
    shape = (2, 3, 16) if op == ROTARY else (2, 3, 8) if op in (MHA, "Attention") else (2, 4, 32)
    scores = {"y3": np.ones((2, 2, 4, 4), np.float32)} if case == "scores" else {}
    scalar = weighted(model, {"y0": np.ones(shape, np.float32), **scores})
    with pytest.raises(UnsupportedError, match=why) as error:
        gradient(scalar, TARGET, [next(iter(inputs))])
    assert op in str(error.value)
