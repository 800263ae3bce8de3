"""Gradient and the optimizers of ai.onnx.preview.training, expanded to what ONNX Runtime runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onward.model import Model, load
from onward.scoreboard.suite import cases, data_sets
from onward.spec.training import TRAINING
from onward.training.info.preview_ops import expand, uses_training_ops

SUITE = [
    "test_gradient_of_add",
    "test_gradient_of_add_and_mul",
    "test_adagrad",
    "test_adagrad_multiple",
    "test_adam",
    "test_adam_multiple",
    "test_momentum",
    "test_momentum_multiple",
    "test_nesterov_momentum",
]


def run(model: Any, feeds: list[Any]) -> list[Any]:
    expanded = expand(load(model))
    assert not uses_training_ops(expanded.graph)
    session = onnxruntime.InferenceSession(Model(expanded).to_proto().SerializeToString())
    named = dict(zip([value.name for value in session.get_inputs()], feeds, strict=True))
    found: list[Any] = session.run(None, named)
    return found


@pytest.mark.parametrize("name", SUITE)
def test_the_suite_passes_on_onnx_runtime(name: str) -> None:
    case = cases()[name]
    model = case.model or onnx.load(f"{case.model_dir}/model.onnx")
    for inputs, outputs in data_sets(case):
        for found, expected in zip(run(model, inputs), outputs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=case.rtol, atol=case.atol)


def model_of(nodes: list[onnx.NodeProto], inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
    values = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in names] for names in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *values)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def gradient(inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Gradient", inputs, outputs, domain=TRAINING, **attributes)


A, B = np.array([2, 3], np.float32), np.array([5, -1], np.float32)


def test_of_second_order() -> None:
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["aa"]),
        helper.make_node("Mul", ["aa", "a"], ["y"]),
        gradient(["a"], ["dy"], xs=["a"], y="y"),
        gradient(["a"], ["ddy"], xs=["a"], y="dy"),
    ]
    first, second = run(model_of(nodes, ["a"], ["dy", "ddy"]), [A])
    np.testing.assert_allclose(first, 3 * A * A)
    np.testing.assert_allclose(second, 6 * A)


def test_at_another_value_and_a_result_in_between() -> None:
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["h"]),
        helper.make_node("Mul", ["h", "h"], ["hh"]),
        helper.make_node("Mul", ["hh", "a"], ["y"]),
        gradient(["b", "a"], ["there"], xs=["a"], zs=["b"], y="y"),
        gradient(["h", "a"], ["dh", "da"], xs=["h", "a"], y="y"),
        gradient(["a", "h"], ["fixed"], xs=["a"], zs=["h"], y="y"),
    ]
    there, dh, da, fixed = run(model_of(nodes, ["a", "b"], ["there", "dh", "da", "fixed"]), [A, B])
    np.testing.assert_allclose(there, 3 * B * B * A * A)  # a and b are exchanged
    np.testing.assert_allclose(dh, 2 * A * B * A)
    np.testing.assert_allclose(da, (A * B) ** 2)
    np.testing.assert_allclose(fixed, (A * B) ** 2)


def test_gradient_before_what_it_is_about_and_of_nothing() -> None:
    nodes = [
        gradient(["a", "b"], ["da", "db"], xs=["a", "b"], y="y"),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    da, db = run(model_of(nodes, ["a", "b"], ["da", "db"]), [A, B])
    np.testing.assert_allclose(da, np.exp(A), rtol=1e-6)
    np.testing.assert_allclose(db, 0 * B)
