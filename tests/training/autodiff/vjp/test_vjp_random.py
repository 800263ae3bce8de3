"""Gradients through random ops."""

from typing import Any

import numpy as np
import onnx
import pytest
from gradient_checks import run_onnxruntime, run_torch
from onnx import TensorProto, helper, numpy_helper

from onward.errors import OnwardError
from onward.scoreboard.suite import forget_shapes
from onward.training.autodiff.derivatives import gradient

X = np.random.default_rng(2).uniform(1, 2, (8, 9)).astype(np.float32)


def model(op: str, ratio: float | None, training: bool | None, switch: bool = False) -> onnx.ModelProto:
    """Random elements, of which the sum is the target; `switch`: training mode is an input."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    if switch:
        inputs.append(helper.make_tensor_value_info("training", TensorProto.BOOL, []))
    given: dict[str, Any] = {"ratio": None if ratio is None else np.float32(ratio), "training": training}
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in given.items() if v is not None]
    names = ["x", *(k if v is not None or (k == "training" and switch) else "" for k, v in given.items())]
    nodes = [
        helper.make_node(op, names if op == "Dropout" else ["x"], ["y"], name=op),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "total")]
    graph = helper.make_graph(nodes, op, inputs, outputs, weights if op == "Dropout" else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("run", [run_torch, run_onnxruntime])
@pytest.mark.parametrize("ratio", [0.25, None])
@pytest.mark.parametrize("known", [True, False])
def test_the_gradient_has_the_mask_of_the_result(run: Any, ratio: float | None, known: bool) -> None:
    made = model("Dropout", ratio, True)
    found = run(gradient(made if known else forget_shapes(made), "total", ["x"]).to_proto(), {"x": X})
    expected = np.where(found["y"] == 0, 0, 1 / (1 - (ratio or 0.5)))
    assert 0 < np.count_nonzero(expected) < X.size
    np.testing.assert_allclose(found["x.grad"], expected, rtol=1e-6)
    np.testing.assert_allclose(found["y"], X * found["x.grad"], rtol=1e-6)


@pytest.mark.parametrize("training", [None, False])
def test_nothing_is_dropped_at_inference(training: bool | None) -> None:
    found = run_onnxruntime(gradient(model("Dropout", 0.3, training), "total", ["x"]).to_proto(), {"x": X})
    np.testing.assert_array_equal(found["x.grad"], np.ones_like(X))


@pytest.mark.parametrize("training", [True, False])
def test_switched_by_an_input(training: bool) -> None:
    derived = gradient(model("Dropout", 0.3, None, switch=True), "total", ["x"]).to_proto()
    found = run_onnxruntime(derived, {"x": X, "training": np.asarray(training)})
    np.testing.assert_allclose(found["y"], X * found["x.grad"], rtol=1e-6)
    assert (found["x.grad"] == 1).all() != training


def test_all_is_dropped() -> None:
    found = run_torch(gradient(model("Dropout", 1.0, True), "total", ["x"]).to_proto(), {"x": X})
    np.testing.assert_array_equal(found["x.grad"], np.zeros_like(X))


@pytest.mark.parametrize("op", ["Bernoulli", "RandomNormalLike"])
def test_draws_have_no_gradient(op: str) -> None:
    with pytest.raises(OnwardError, match="does not depend on x"):
        gradient(model(op, None, None), "total", ["x"])
