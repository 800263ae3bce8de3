"""Gradients of reductions."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_op

X = np.random.default_rng(3).uniform(0.3, 2, (2, 3, 2))
OPS = ["Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSum", "LogSumExp", "Prod"]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("axes", "attributes"),
    [([1], {"keepdims": 0}), ([-1, 0], {}), (None, {"keepdims": 0}), (None, {"noop_with_empty_axes": 1})],
)
def test_reductions(op: str, axes: list[int] | None, attributes: dict[str, Any]) -> None:
    inputs = {"x": X} if axes is None else {"x": X, "axes": np.asarray(axes)}
    check_op(f"Reduce{op}", inputs, **attributes)


def test_a_product_with_zeros() -> None:
    x = X.copy()
    x[0, 0, 0] = x[1, 1, 0] = x[1, 1, 1] = 0
    check_op("ReduceProd", {"x": x, "axes": np.asarray([2])}, second=False)


def test_ties_share_the_gradient() -> None:
    x = np.asarray([[1.0, 2.0, 2.0], [3.0, 1.0, 2.0]])
    from gradient_checks import TARGET, by_autograd, close, run_torch, single, with_target

    from onward.training.autodiff.derivatives import gradient

    model = with_target(single("ReduceMax", {"x": x, "axes": np.asarray([1])}), {"x": x, "axes": np.asarray([1])})
    feeds = {"x": x, "axes": np.asarray([1])}
    found = run_torch(gradient(model, TARGET, ["x"]).to_proto(), feeds)
    close(found["x.grad"], by_autograd(model, feeds, ["x"])["x"], 1e-9, "the gradient at a tie")


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cumulative_sum(attributes: dict[str, Any]) -> None:
    check_op("CumSum", {"x": X, "axis": np.asarray(1)}, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cumulative_product(attributes: dict[str, Any]) -> None:
    """Zeros are no exception. ONNX Runtime has no kernel."""
    inputs = {"x": X, "axis": np.asarray(1)}
    check_op("CumProd", inputs, fixed=["axis"], opset=26, runtime=False, **attributes)
    check_op("CumProd", {**inputs, "axis": np.asarray(-1)}, opset=26, runtime=False, second=False, **attributes)
    inputs["x"] = np.where(X > 0.3, X, 0)
    check_op("CumProd", inputs, fixed=["axis"], opset=26, runtime=False, second=False, **attributes)
