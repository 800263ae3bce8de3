"""Random numbers: their distribution, dtype and shape, and that a seed makes them repeat."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from harness import node_model, reference, to_torch
from onnx import TensorProto

from onward.model import load
from onward.passes.pipelines import canonical

SIZE = 20_000


def draw(op: str, *inputs: np.ndarray, **attributes: Any) -> torch.Tensor:
    model, feeds = node_model(op, list(inputs), opset=22, **attributes)
    with torch.no_grad():
        return to_torch(model)(*map(torch.from_numpy, feeds))


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_normal(dtype: int) -> None:
    y = draw("RandomNormal", shape=[SIZE // 100, 100], dtype=dtype, mean=3.0, scale=2.0)
    assert y.shape == (SIZE // 100, 100)
    assert y.dtype == {1: torch.float32, 11: torch.float64, 10: torch.float16}[dtype]
    assert abs(y.double().mean() - 3) < 0.1
    assert abs(y.double().std() - 2) < 0.1


def test_uniform() -> None:
    y = draw("RandomUniform", shape=[SIZE], low=-1.0, high=5.0)
    assert y.min() >= -1
    assert y.max() < 5
    assert abs(y.mean() - 2) < 0.1
    assert abs(y.std() - 6 / 12**0.5) < 0.1


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
def test_like_another_tensor(op: str) -> None:
    y = draw(op, np.zeros((3, 4), np.float64))
    assert (y.shape, y.dtype) == ((3, 4), torch.float64)
    y = draw(op, np.zeros((3, 4), np.int32), dtype=TensorProto.FLOAT)
    assert (y.shape, y.dtype) == ((3, 4), torch.float32)


@pytest.mark.parametrize("dtype", [None, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.UINT16, TensorProto.INT64])
@pytest.mark.parametrize("seed", [None, 7.0])
def test_bernoulli(dtype: int | None, seed: float | None) -> None:
    chances = np.repeat(np.array([[0.0], [0.2], [0.9], [1.0]], np.float32), SIZE, axis=1)
    attributes = {k: v for k, v in {"dtype": dtype, "seed": seed}.items() if v is not None}
    y = draw("Bernoulli", chances, **attributes)
    assert y.dtype == (torch.float32 if dtype is None else getattr(torch, onnx_name(dtype)))
    assert np.abs(y.double().mean(dim=1).numpy() - [0, 0.2, 0.9, 1]).max() < 0.02
    assert set(y.double().unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("attributes", [{}, {"dtype": TensorProto.DOUBLE}, {"seed": 0.0}])
def test_bernoulli_without_a_rule_of_its_own(attributes: dict[str, Any]) -> None:
    """Written with a uniform draw it means the same, which the function body in ONNX's schema does not."""
    chances = np.repeat(np.array([[0.0], [0.2], [0.9], [1.0]], np.float32), SIZE, axis=1)
    model, feeds = node_model("Bernoulli", [chances], opset=22, **attributes)
    lowered = ir.to_proto(canonical(load(model), lambda op: op != "Bernoulli"))
    assert "Bernoulli" not in {node.op_type for node in lowered.graph.node}
    (y,) = reference(lowered, feeds)
    assert np.abs(y.mean(axis=1) - [0, 0.2, 0.9, 1]).max() < 0.02


def onnx_name(dtype: int) -> str:
    return onnx.helper.tensor_dtype_to_np_dtype(dtype).name


def test_multinomial_draws_by_unnormalised_log_probability() -> None:
    weights = np.array([[1.0, 2.0, 7.0], [5.0, 5.0, 0.0]])
    with np.errstate(divide="ignore"):
        logits = (np.log(weights) + 3).astype(np.float32)
    y = draw("Multinomial", logits, sample_size=SIZE)
    assert (y.shape, y.dtype) == ((2, SIZE), torch.int32)
    for row, expected in zip(y, weights / weights.sum(axis=1, keepdims=True), strict=True):
        assert np.abs(torch.bincount(row, minlength=3).numpy() / SIZE - expected).max() < 0.02
    assert draw("Multinomial", logits, dtype=TensorProto.INT64).dtype == torch.int64


CASES: list[tuple[str, list[np.ndarray], dict[str, Any]]] = [
    ("RandomNormal", [], {"shape": [50]}),
    ("RandomUniform", [], {"shape": [50]}),
    ("RandomNormalLike", [np.zeros(50, np.float32)], {}),
    ("RandomUniformLike", [np.zeros(50, np.float32)], {}),
    ("Bernoulli", [np.full(50, 0.5, np.float32)], {}),
    ("Multinomial", [np.zeros((1, 9), np.float32)], {"sample_size": 50}),
]


@pytest.mark.parametrize("op,inputs,attributes", CASES, ids=[c[0] for c in CASES])
def test_a_seed_repeats(op: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> None:
    assert torch.equal(draw(op, *inputs, seed=3.0, **attributes), draw(op, *inputs, seed=3.0, **attributes))
    assert not torch.equal(draw(op, *inputs, seed=3.0, **attributes), draw(op, *inputs, seed=4.0, **attributes))
    assert not torch.equal(draw(op, *inputs, **attributes), draw(op, *inputs, **attributes))
