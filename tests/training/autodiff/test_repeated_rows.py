"""Sums over repeated indices are whole, however many threads add: ONNX Runtime's ScatterND would lose some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onward.frontends.runtime_kernels import keep_sums
from onward.model import load
from onward.training.recipe.losses import MeanSquaredError
from onward.training.trainable import prepare

ROWS, COLUMNS, UPDATES, THREADS = 50, 64, 20_000, 4


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], *weights: Any) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def value(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def data() -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(0)
    places = np.stack([draw.integers(-5, 5, UPDATES), draw.integers(0, 5, UPDATES)], 1)
    updates = draw.integers(1, 4, (UPDATES, COLUMNS)).astype(np.float32)  # whole numbers: any order has the same sum
    return draw.integers(0, 9, (10, 5, COLUMNS)).astype(np.float32), places, updates


def added(start: Any, places: Any, updates: Any) -> Any:
    total = start.copy()
    np.add.at(total, tuple(places.T), updates)
    return total


def test_scatter_elements_adds_all() -> None:
    start, places, updates = data()
    flat = (places[:, 0] % 10) * 5 + places[:, 1]
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add")
    inputs = [value("x", [ROWS, COLUMNS]), value("i", ["n", COLUMNS], TensorProto.INT64), value("u", ["n", COLUMNS])]
    made = session(model_of([node], inputs, [value("y", [ROWS, COLUMNS])]))
    numbers = np.repeat(flat[:, None], COLUMNS, 1)
    for _ in range(3):
        found = made.run(None, {"x": start.reshape(ROWS, COLUMNS), "i": numbers, "u": updates})[0]
        np.testing.assert_array_equal(found, added(start, places, updates).reshape(ROWS, COLUMNS))


@pytest.mark.parametrize("reduction", ["add", "max"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_scatter_into_several_axes_is_rewritten(depth: int, reduction: str) -> None:
    start, places, updates = data()
    if depth == 1:
        start, places = start.reshape(ROWS, COLUMNS), (places[:, :1] % 10) * 5 + places[:, 1:]
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], name="scatter", reduction=reduction)
    shape = ["rows", *start.shape[1:]]
    inputs = [value("x", shape), value("i", ["n", depth], TensorProto.INT64), value("u", ["n", COLUMNS])]
    model = load(model_of([node], inputs, [value("y", shape)]))
    keep_sums(model.ir)
    assert "ScatterND" not in {node.op_type for node in model.ir.graph}
    onnx.checker.check_model(model.to_proto(), full_check=True)
    found = session(model.to_proto()).run(None, {"x": start, "i": places, "u": updates})[0]
    wanted = start.copy()
    getattr(np, "add" if reduction == "add" else "maximum").at(wanted, tuple(places.T), updates)
    np.testing.assert_array_equal(found, wanted)


GATHERS: dict[str, Any] = {
    "Gather": ([helper.make_node("Gather", ["w", "i"], ["y"])], ["n"], ["n", 5, COLUMNS], [10]),
    "GatherND": ([helper.make_node("GatherND", ["w", "i"], ["y"])], ["n", 2], ["n", COLUMNS], [10, 5]),
    "batches": ([helper.make_node("GatherND", ["w", "i"], ["y"], batch_dims=1)], [10, 300, 1], [10, 300, COLUMNS], [5]),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gradients_of_gathers_are_whole(name: str) -> None:
    """The gradient of a sum of squares that are all alike counts how often each row is read."""
    nodes, indices, shape, sizes = GATHERS[name]
    weight = onnx.numpy_helper.from_array(np.ones((10, 5, COLUMNS), np.float32), "w")
    model = model_of(nodes, [value("i", indices, TensorProto.INT64)], [value("y", shape)], weight)
    made = prepare(model, MeanSquaredError("sum"), "sgd")
    kinds = {node.op_type for node in made.gradients.graph}
    assert "ScatterND" not in kinds and "ScatterElements" in kinds
    draw = np.random.default_rng(1)
    size = [5000 if dim == "n" else dim for dim in indices]
    places = np.stack([draw.integers(0, high, size[:-1] if len(size) > 1 else size) for high in sizes], -1)
    if name == "Gather":
        places = places[:, 0]
    wanted = np.zeros((10, 5, COLUMNS), np.float32)
    if name == "batches":
        np.add.at(wanted, (np.arange(10)[:, None], places[..., 0]), 2)
    else:
        np.add.at(wanted, tuple(places.T) if places.ndim > 1 else places, 2)
    labels = np.zeros([5000 if dim == "n" else dim for dim in shape], np.float32)
    found = dict(
        zip(
            [output.name for output in made.gradients.graph.outputs],
            session(onnx_of(made)).run(None, {"i": places, "labels": labels, "w": np.ones_like(wanted)}),
            strict=True,
        )
    )
    np.testing.assert_array_equal(found["w.grad"], wanted)


def onnx_of(made: Any) -> onnx.ModelProto:
    import onnx_ir as ir

    return ir.to_proto(made.gradients)
