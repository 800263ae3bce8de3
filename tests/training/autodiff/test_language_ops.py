"""Gradients of the ops that language models are written with for ONNX Runtime, against differences and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import (
    TARGET,
    Arrays,
    check_op,
    close,
    run_onnxruntime,
    run_torch,
    single,
    single_precision,
    with_target,
)

from onward.training.autodiff.derivatives import gradient

MS = "com.microsoft"


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape) + seed).uniform(-1, 1, shape)


def ints(*numbers: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return np.asarray(numbers, dtype)


TURNS = np.arange(8)[:, None] / np.asarray([1.0, 3.0])
CACHES = {"cos": np.cos(TURNS), "sin": np.sin(TURNS)}
HEADS = {"num_heads": 2, "kv_num_heads": 1}
Q, K, V = normal(2, 3, 8), normal(2, 3, 4, seed=1), normal(2, 3, 4, seed=2)
LENGTHS = {"ends": ints(2, 2), "total": np.asarray(3, np.int32)}
NO_PAST = {"pk": np.zeros((2, 1, 0, 4)), "pv": np.zeros((2, 1, 0, 4))}
PAST = {"pk": normal(2, 1, 2, 4), "pv": normal(2, 1, 2, 4, seed=1)}
LATER = {"ends": ints(4, 4), "total": np.asarray(5, np.int32)}
WIDTHS = {"num_heads": 2, "rotary_embedding_dim": 4}
GQA = "GroupQueryAttention"
ROWS, CACHE = ("batch", "length", ""), ("batch", "", "past", "")
SIZES = {"q": ROWS, "k": ROWS, "v": ROWS, "x": ROWS, "skip": ROWS, "pk": CACHE, "pv": CACHE, "ends": ("batch",)}
CASES: dict[str, tuple[str, Arrays, dict[str, Any]]] = {
    "attention": (GQA, {"q": Q, "k": K, "v": V, **NO_PAST, **LENGTHS, **CACHES}, {**HEADS, "do_rotary": 1}),
    "attention, packed": (
        GQA,
        {"q": normal(2, 3, 16), "_k": Q, "_v": Q, **NO_PAST, **LENGTHS, **CACHES},
        {**HEADS, "do_rotary": 1, "rotary_interleaved": 1},
    ),
    "attention, past": (
        GQA,
        {"q": Q, "k": K, "v": V, **PAST, **LATER},
        {**HEADS, "outputs": 3, "local_window_size": 3, "softcap": 2.0},
    ),
    "rotation": ("RotaryEmbedding", {"x": normal(2, 3, 8), "p": np.asarray([[0, 1, 2], [3, 4, 5]]), **CACHES}, WIDTHS),
    "rotation by heads": (
        "RotaryEmbedding",
        {"x4": normal(2, 2, 3, 4), "p": ints(2, dtype=np.int64), **CACHES},
        {"interleaved": 1},
    ),
    "sum and root": (
        "SkipSimplifiedLayerNormalization",
        {"x": normal(2, 3, 4), "skip": normal(2, 3, 4, seed=1), "gamma": normal(4)},
        {"epsilon": 1e-3},
    ),
    "sum and normalisation": (
        "SkipLayerNormalization",
        {"x": normal(2, 3, 4), "skip": normal(2, 3, 4, seed=1), "gamma": normal(4), "beta": normal(4, seed=1)},
        {"epsilon": 1e-3},
    ),
    "several heads": (
        "MultiHeadAttention",
        {"q": normal(2, 3, 8), "k": normal(2, 3, 8), "v": normal(2, 3, 8, seed=1), "b": normal(24)},
        {"num_heads": 2},
    ),
    "several heads, past": (
        "MultiHeadAttention",
        {
            "q": normal(2, 3, 8),
            "k": normal(2, 3, 8, seed=3),
            "v": normal(2, 3, 8, seed=1),
            "_b": Q,
            "_m": Q,
            "_bias": Q,
            "pk": normal(2, 2, 2, 4),
            "pv": normal(2, 2, 2, 4, seed=1),
        },
        {"num_heads": 2, "unidirectional": 1, "outputs": 3},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_gradient(case: str) -> None:
    """On ONNX Runtime with the names of sizes that such models have."""
    op, inputs, options = CASES[case]
    fixed = [name for name in ("cos", "sin") if name in inputs]
    present = {name: array for name, array in inputs.items() if name[0] != "_" and name not in fixed}
    wrt = [name for name, array in present.items() if array.dtype == np.float64 and array.size]
    check_op(op, inputs, wrt=wrt, second=False, runtime=False, fixed=fixed, domain=MS, **options)
    model = single(op, inputs, domain=MS, **options)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis, name in enumerate(SIZES.get(value.name, ())):
            if name:
                dims[axis].dim_param = name
    made = gradient(with_target(model, present | {name: inputs[name] for name in fixed}), TARGET, wrt).to_proto()
    feeds = present | {name: inputs[name] for name in fixed}
    exact, found = run_torch(made, feeds), run_onnxruntime(single_precision(made), feeds)
    for name in wrt:
        close(found[f"{name}.grad"], exact[f"{name}.grad"], 2e-4, name)


def test_root_alone() -> None:
    inputs = {"x": normal(2, 3, 4), "gamma": normal(4)}
    check_op("SimplifiedLayerNormalization", inputs, second=False, epsilon=1e-3)
