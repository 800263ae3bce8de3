"""Gradients of gathering and scattering."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import TARGET, check_op, close, differences, run_torch, single, with_target

from onward.training.autodiff.derivatives import gradient


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[2, 0, 2], [[1, -1], [0, 0]], 1])
def test_gather(axis: int, indices: Any) -> None:
    check_op("Gather", {"x": normal(3, 4, 3), "i": np.asarray(indices)}, axis=axis)


def test_gather_by_small_integers() -> None:
    check_op("Gather", {"x": normal(3, 4), "i": np.asarray([2, 0], np.int32)})


def test_gather_elements() -> None:
    check_op("GatherElements", {"x": normal(3, 4), "i": np.asarray([[0, 1, 1, -1], [2, 2, 0, 1]])}, axis=0)


@pytest.mark.parametrize(
    ("indices", "batch"), [([[0, 1], [1, -1], [0, 1]], 0), ([[0], [1]], 0), ([[[1], [1]], [[0], [2]]], 1)]
)
def test_gather_nd(indices: Any, batch: int) -> None:
    check_op("GatherND", {"x": normal(2, 3, 2), "i": np.asarray(indices)}, batch_dims=batch)


@pytest.mark.parametrize(
    ("op", "indices"), [("Gather", [[1, 0], [1, 1]]), ("GatherND", [[0, 1], [0, 1], [1, 2]]), ("GatherND", [[1], [1]])]
)
def test_rows_that_meet_are_added_one_after_the_other(op: str, indices: Any) -> None:
    """ONNX Runtime's ScatterND adds in several threads at once, and loses some of them."""
    feeds = {"x": normal(2, 3, 2), "i": np.asarray(indices)}
    check_op(op, feeds)
    graph = gradient(with_target(single(op, feeds), feeds), TARGET, ["x"]).ir.graph
    assert "ScatterND" not in {node.op_type for node in graph}


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_elements(reduction: str) -> None:
    unique = np.asarray([[0, 2, 1], [1, 0, 2]])
    feeds = {"x": normal(3, 3), "i": unique, "u": normal(2, 3)}
    check_op("ScatterElements", feeds, axis=0, reduction=reduction)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    check_op("ScatterND", {"x": normal(4, 3), "i": np.asarray([[3], [1]]), "u": normal(2, 3)}, reduction=reduction)


def test_scattering_twice_to_one_place() -> None:
    check_op("ScatterND", {"x": normal(4, 3), "i": np.asarray([[1], [1]]), "u": normal(2, 3)}, reduction="add")


@pytest.mark.parametrize("attributes", [{}, {"axis": 0, "largest": 0}])
def test_top_k(attributes: dict[str, Any]) -> None:
    check_op("TopK", {"x": normal(3, 4), "k": np.asarray([2])}, outputs=2, **attributes)


@pytest.mark.parametrize("axis", [None, 1])
def test_compress(axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    check_op("Compress", {"x": normal(2, 4), "c": np.asarray([True, False, True, True])}, **attributes)


def test_one_hot() -> None:
    feeds = {"i": np.asarray([[1, 0], [2, 1]]), "d": np.asarray(3), "v": np.asarray([0.5, 2.0])}
    check_op("OneHot", feeds, axis=-1)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode: str) -> None:
    start = np.asarray([1, 2 if mode == "linear" else 3])
    check_op("TensorScatter", {"p": normal(2, 1, 4, 2), "u": normal(2, 1, 2, 2), "i": start}, opset=24, mode=mode)
    check_op("TensorScatter", {"p": normal(2, 4, 2), "u": normal(2, 2, 2)}, opset=24, axis=1, mode=mode)


@pytest.mark.parametrize("axis", [None, 0])
def test_unique(axis: int | None) -> None:
    """PyTorch has no derivative of it."""
    x = normal(3, 2)
    model = with_target(single("Unique", {"x": x}, **({} if axis is None else {"axis": axis})), {"x": x})
    found = run_torch(gradient(model, TARGET, ["x"]).to_proto(), {"x": x})
    close(found["x.grad"], differences(model, {"x": x}, ["x"], TARGET)["x"], 1e-6, "the gradient")


def test_products_with_zeros() -> None:
    """One zero among the factors of an element leaves the product of the others to it; two leave nothing."""
    feeds = {"x": normal(3), "i": np.asarray([0, 0, 1, 1, 1, 2]), "u": np.asarray([0.0, 2, 0, 0, 3, 1.5])}
    check_op("ScatterElements", feeds, axis=0, reduction="mul", second=False)
