"""Gradients of attention, and of ops that are differentiated by their definitions."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import (
    TARGET,
    Arrays,
    by_autograd,
    check_op,
    close,
    differences,
    run_onnxruntime,
    run_torch,
    single,
    single_precision,
    with_target,
)

from onward.training.autodiff.derivatives import gradient
from onward.training.autodiff.reverse import MissingGradient


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(sum(shape) + seed).uniform(-1, 1, shape)


Q, K, V = normal(1, 2, 3, 4), normal(1, 2, 5, 4, seed=1), normal(1, 2, 5, 4, seed=2)
FORMS: dict[str, tuple[Arrays, dict[str, Any]]] = {
    "causal": ({}, {"is_causal": 1}),
    "bool mask": ({"m": normal(3, 5) > -0.5}, {}),
    "float mask": ({"m": normal(1, 1, 3, 5)}, {"softcap": 1.5, "scale": 0.7}),
    "shared heads": ({"q": normal(1, 4, 3, 4), "m": normal(4, 3, 5)}, {}),
    "past": ({"_m": Q, "pk": normal(1, 2, 2, 4), "pv": normal(1, 2, 2, 4, seed=3)}, {"outputs": 3}),
    "lengths": ({"_m": Q, "_pk": Q, "_pv": Q, "n": np.asarray([4])}, {"opset": 24}),
}


def test_attention() -> None:
    check_op("Attention", {"q": Q, "k": K, "v": V}, opset=23)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_attention(form: str) -> None:
    inputs, options = FORMS[form]
    check_op("Attention", {"q": Q, "k": K, "v": V, **inputs}, **{"opset": 23, "second": False, **options})


FLAT: dict[str, tuple[Arrays, dict[str, Any]]] = {
    "heads": (
        {"q": normal(1, 3, 8), "k": normal(1, 5, 8), "v": normal(1, 5, 8)},
        {"q_num_heads": 2, "kv_num_heads": 2},
    ),
    "shared heads and past": (
        {
            "q": normal(1, 3, 8),
            "k": normal(1, 2, 4),
            "v": normal(1, 2, 4),
            "_m": Q,
            "pk": normal(1, 1, 2, 4),
            "pv": normal(1, 1, 2, 4, seed=3),
        },
        {"q_num_heads": 2, "kv_num_heads": 1, "is_causal": 1, "outputs": 3},
    ),
    "probabilities": ({"q": Q, "k": K, "v": V}, {"outputs": 4, "qk_matmul_output_mode": 3}),
}


@pytest.mark.parametrize("form", FLAT)
def test_forms_that_onnxruntime_runs_with_known_shapes_only(form: str) -> None:
    """With others its shape inference of the op itself is wrong."""
    inputs, options = FLAT[form]
    check_op("Attention", inputs, opset=23, second=False, runtime=False, **options)
    present = {name: array for name, array in inputs.items() if not name.startswith("_")}
    made = gradient(with_target(single("Attention", inputs, opset=23, **options), present), TARGET, list(present))
    exact, found = (run_torch(made.to_proto(), present), run_onnxruntime(single_precision(made.to_proto()), present))
    for name in present:
        close(found[f"{name}.grad"], exact[f"{name}.grad"], 2e-4, name)


def test_scores_given_out() -> None:
    """They may be used, as long as no gradient comes back through them."""
    inputs = {"q": Q, "k": K, "v": V}
    model = single("Attention", inputs, outputs=4, opset=23, qk_matmul_output_mode=0)
    with pytest.raises(MissingGradient, match="scores"):
        gradient(with_target(model, inputs), TARGET, ["q"])
    only = with_target(single("Attention", inputs, opset=23), inputs)
    only.graph.node[0].output.extend(["", "", "scores"])
    found = run_torch(gradient(only, TARGET, ["q"]).to_proto(), inputs)
    close(found["q.grad"], by_autograd(only, inputs, ["q"])["q"], 1e-9, "q.grad")


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    caches = {"c": normal(3, 2), "s": normal(3, 2, seed=1), "p": np.asarray([[2, 0]])}
    check_op("RotaryEmbedding", {"x": normal(1, 2, 2, 4), **caches}, opset=23, interleaved=interleaved)
    part = {"x": normal(1, 2, 12), "c": normal(1, 2, 2), "s": normal(1, 2, 2, seed=1)}
    options = {"num_heads": 2, "rotary_embedding_dim": 4, "interleaved": interleaved}
    check_op("RotaryEmbedding", part, opset=23, second=False, **options)


def test_swiglu() -> None:
    """ONNX Runtime does not know the opset."""
    check_op("SwiGLU", {"a": normal(2, 3), "b": normal(2, 3, seed=1)}, opset=28, runtime=False)


def test_center_crop_pad() -> None:
    check_op("CenterCropPad", {"x": normal(3, 4), "s": np.asarray([5, 2])})
    check_op("CenterCropPad", {"x": normal(3, 4), "s": np.asarray([7])}, axes=[1])


THREE = {"q": normal(1, 3, 4), "k": normal(1, 3, 4, seed=1), "v": normal(1, 3, 4, seed=2)}
GATES = {"_state": Q, "d": -np.abs(normal(1, 3, 4)), "b": np.abs(normal(1, 3, 2))}
HEADS = {"q_num_heads": 2, "kv_num_heads": 2, "outputs": 2, "opset": 27}
STATE = {"b": normal(2), "p": normal(1, 2, 2)}
SINGLE = [
    ("LinearAttention", THREE, {**HEADS, "update_rule": "linear"}),
    ("LinearAttention", {**THREE, **GATES}, {**HEADS, "update_rule": "gated_delta"}),
    ("CausalConvWithState", {"x": normal(1, 2, 4), "w": normal(2, 1, 3)}, {"outputs": 2, "opset": 27}),
    (
        "CausalConvWithState",
        {"x": normal(1, 2, 4), "w": normal(2, 1, 3), **STATE},
        {"outputs": 2, "opset": 27, "activation": "silu"},
    ),
]


@pytest.mark.parametrize(("op", "inputs", "options"), SINGLE, ids=[f"{op}{i}" for i, (op, _, _) in enumerate(SINGLE)])
def test_definitions_in_single_precision(op: str, inputs: Arrays, options: dict[str, Any]) -> None:
    """The definitions compute in it, whatever the inputs are."""
    present = {name: array for name, array in inputs.items() if not name.startswith("_")}
    model = with_target(single(op, inputs, **options), present)
    found = run_torch(gradient(model, TARGET, list(present)).to_proto(), present)
    numeric, traced = differences(model, present, list(present), TARGET), by_autograd(model, present, list(present))
    for name in present:
        close(found[f"{name}.grad"], numeric[name], 1e-6, f"{name}.grad against differences")
        close(found[f"{name}.grad"], traced[name], 1e-6, f"{name}.grad against PyTorch")
