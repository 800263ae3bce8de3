"""Random numbers: their distribution, dtype and shape, and that a seed makes them repeat."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from harness import node_model, reference
from onnx import TensorProto

from onward.backends.backend import backend
from onward.model import load
from onward.passes.pipelines import canonical
from onward.scoreboard.suite import prepare

SIZE = 20_000
Draw = Callable[..., np.ndarray]


@pytest.fixture(params=[name for name in ("torch", "tensorflow", "jax", "matlab") if backend(name).is_installed])
def draw(request: pytest.FixtureRequest) -> Draw:
    """What a model of one node draws on a backend."""

    def drawn(op: str, *inputs: np.ndarray, **attributes: Any) -> np.ndarray:
        model, feeds = node_model(op, list(inputs), opset=22, **attributes)
        (found,) = prepare(request.param, model)(feeds)
        return np.asarray(found)

    return drawn


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_normal(draw: Draw, dtype: int) -> None:
    y = draw("RandomNormal", shape=[SIZE // 100, 100], dtype=dtype, mean=3.0, scale=2.0)
    assert (y.shape, y.dtype.name) == ((SIZE // 100, 100), onnx_name(dtype))
    assert abs(y.astype(float).mean() - 3) < 0.1
    assert abs(y.astype(float).std() - 2) < 0.1


def test_uniform(draw: Draw) -> None:
    y = draw("RandomUniform", shape=[SIZE], low=-1.0, high=5.0)
    assert y.min() >= -1
    assert y.max() < 5
    assert abs(y.mean() - 2) < 0.1
    assert abs(y.std() - 6 / 12**0.5) < 0.1


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
def test_like_another_tensor(draw: Draw, op: str) -> None:
    y = draw(op, np.zeros((3, 4), np.float64))
    assert (y.shape, y.dtype) == ((3, 4), np.float64)
    y = draw(op, np.zeros((3, 4), np.int32), dtype=TensorProto.FLOAT)
    assert (y.shape, y.dtype) == ((3, 4), np.float32)


@pytest.mark.parametrize("dtype", [None, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.UINT16, TensorProto.INT64])
@pytest.mark.parametrize("seed", [None, 7.0])
def test_bernoulli(draw: Draw, dtype: int | None, seed: float | None) -> None:
    chances = np.repeat(np.array([[0.0], [0.2], [0.9], [1.0]], np.float32), SIZE, axis=1)
    attributes = {k: v for k, v in {"dtype": dtype, "seed": seed}.items() if v is not None}
    y = draw("Bernoulli", chances, **attributes)
    assert y.dtype.name == onnx_name(TensorProto.FLOAT if dtype is None else dtype)
    assert np.abs(y.astype(float).mean(axis=1) - [0, 0.2, 0.9, 1]).max() < 0.02
    assert set(np.unique(y.astype(float))) == {0.0, 1.0}


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


def test_multinomial_draws_by_unnormalised_log_probability(draw: Draw) -> None:
    weights = np.array([[1.0, 2.0, 7.0], [5.0, 5.0, 0.0]])
    with np.errstate(divide="ignore"):
        logits = (np.log(weights) + 3).astype(np.float32)
    y = draw("Multinomial", logits, sample_size=SIZE)
    assert (y.shape, y.dtype) == ((2, SIZE), np.int32)
    for row, expected in zip(y, weights / weights.sum(axis=1, keepdims=True), strict=True):
        assert np.abs(np.bincount(row, minlength=3) / SIZE - expected).max() < 0.02
    assert draw("Multinomial", logits, dtype=TensorProto.INT64).dtype == np.int64


CASES: list[tuple[str, list[np.ndarray], dict[str, Any]]] = [
    ("RandomNormal", [], {"shape": [50]}),
    ("RandomUniform", [], {"shape": [50]}),
    ("RandomNormalLike", [np.zeros(50, np.float32)], {}),
    ("RandomUniformLike", [np.zeros(50, np.float32)], {}),
    ("Bernoulli", [np.full(50, 0.5, np.float32)], {}),
    ("Multinomial", [np.zeros((1, 9), np.float32)], {"sample_size": 50}),
]


@pytest.mark.parametrize("op,inputs,attributes", CASES, ids=[c[0] for c in CASES])
def test_a_seed_repeats(draw: Draw, op: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> None:
    assert np.array_equal(draw(op, *inputs, seed=3.0, **attributes), draw(op, *inputs, seed=3.0, **attributes))
    assert not np.array_equal(draw(op, *inputs, seed=3.0, **attributes), draw(op, *inputs, seed=4.0, **attributes))
    assert not np.array_equal(draw(op, *inputs, **attributes), draw(op, *inputs, **attributes))
