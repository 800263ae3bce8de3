"""A model that leaves the order of results open has one order wherever it runs."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onward
from onward.runners import prepare
from onward.runners.settled import settled

X = np.random.default_rng(0).standard_normal((2, 400)).astype(np.float32)


def top_k(**attributes: Any) -> onnx.ModelProto:
    """The largest of a row, their places, and a sum that weighs each by where it stands."""
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["best", "places"], **attributes),
        helper.make_node("MatMul", ["best", "weights"], ["weighed"]),
    ]
    ends = [("best", TensorProto.FLOAT), ("places", TensorProto.INT64), ("weighed", TensorProto.FLOAT)]
    graph = helper.make_graph(
        nodes,
        "top",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 400])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in ends],
        [
            helper.make_tensor("k", TensorProto.INT64, [1], [30]),
            helper.make_tensor("weights", TensorProto.FLOAT, [30, 1], np.linspace(-1, 1, 30)),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("runner", ["onnxruntime", "onnxruntime:unoptimized", "openvino", "reference"])
@pytest.mark.parametrize("largest", [0, 1])
def test_open_orders_are_sorted(runner: str, largest: int) -> None:
    if runner == "openvino":
        pytest.importorskip("openvino")
    open_, sorted_ = (onward.load(top_k(sorted=order, largest=largest)) for order in (0, 1))
    actual, expected = (prepare(runner, model)({"x": X}) for model in (open_, sorted_))
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)


def test_conversions_of_open_orders_are_verified() -> None:
    model = onward.load(top_k(sorted=0))
    report = onward.verify(model, "torch", inputs={"x": X})
    assert report.ok, report


def test_nothing_is_copied_without_need() -> None:
    model = onward.load(top_k())
    assert settled(model) is model
    assert onward.load(top_k(sorted=0)).ir.graph.node(0).attributes["sorted"].as_int() == 0
