"""A part of a model as a model of its own: it computes what the whole computes there, with all that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_samples import trained, with_body, with_function
from graphs import model

import onward
from onward.errors import LeftOutWarning, OnwardError
from onward.model import Model
from onward.training.info.check import check
from onward.training.info.read import load as load_training

X = np.array([[1.0, -4.0, 0.5], [2.0, 0.0, -1.0]], np.float32)


def run(made: Model, **feeds: Any) -> dict[str, Any]:
    proto = made.to_proto()
    onnx.checker.check_model(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds), strict=True))


@pytest.mark.parametrize("sign", [1, -1])
def test_bodies_keep_what_they_capture(sign: int) -> None:
    """`r` is read by nothing but a branch, so it has to be given; `x` and `w` are read inside and outside."""
    whole = with_body()
    x = sign * np.abs(X)
    part = onward.extract(whole, inputs=["x", "r"], outputs="y")
    assert [value.name for value in part.ir.graph.inputs] == ["x", "r"]
    assert "Relu" not in [node.op_type for node in part.ir.graph]
    np.testing.assert_array_equal(run(part, x=x, r=np.maximum(x, 0))["y"], run(whole, x=x)["y"])


def test_what_only_a_body_reads_is_missed_by_name() -> None:
    with pytest.raises(OnwardError, match="'chosen' cannot be computed from 'positive' alone, only with 'x' and 'r'"):
        onward.extract(with_body(), inputs="positive", outputs="chosen")


def test_functions_come_along() -> None:
    whole = with_function()
    part = onward.extract(whole, outputs="h")
    assert {name for _, name, _ in part.ir.functions} == {"once", "twice"}
    np.testing.assert_array_equal(run(part, x=X)["h"], np.maximum(X, 0))
    rest = onward.extract(whole, inputs="h")
    assert not rest.ir.functions
    assert [str(value.shape) for value in rest.ir.graph.inputs] == ["[n,3]"]  # inferred through the call


def test_a_weight_may_be_an_input() -> None:
    part = onward.extract(with_body(), inputs=["x", "w"], outputs="product")
    w = np.array([5, 6, 7], np.float32)
    np.testing.assert_array_equal(run(part, x=X, w=w)["product"], X * w)
    assert not part.ir.graph.initializers


def test_patterns_take_what_is_needed() -> None:
    part = onward.extract(with_body(), inputs=["[prc]*"], outputs="y")
    assert sorted(value.name or "" for value in part.ir.graph.inputs) == ["chosen", "product"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ("", "sun", "no value 'sun'; did you mean sum"),
        ("nobody*", "y", r"no value 'nobody\*'"),
        ("x", "relu", "'relu' is a node, and parts begin and end at values: it gives 'r'"),
        ("r", "product", "nothing on the way to 'product' reads 'r'"),
        ("y", "y", "'y' is where the part begins and where it ends"),
        ("", "w", "'w' is a weight of the model: nothing computes it"),
        ("product", "y", "'y' cannot be computed from 'product' alone, only with 'chosen'"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_name(inputs: str, outputs: str, words: str) -> None:
    with pytest.raises(OnwardError, match=words):
        onward.extract(with_body(), inputs=inputs or (), outputs=outputs)


def test_training_comes_along_where_all_of_it_is_there() -> None:
    whole = trained()
    whole.ir.graph.outputs.append(next(v for n in whole.ir.graph for v in n.outputs if v.name == "t"))
    part = onward.extract(whole, outputs="y")
    assert check(part) == []
    made, known = load_training(part), load_training(trained())
    assert made.parameters.keys() == known.parameters.keys()
    assert made.optimizer == known.optimizer


def test_training_of_weights_that_are_gone_is_left_out_with_a_word() -> None:
    whole = trained()
    with pytest.warns(LeftOutWarning, match="its algorithm needs 'b.bias'"):
        part = onward.extract(whole, outputs="t")
    assert not any(info.algorithm.node for info in part.training_info)
    assert check(part) == []
    assert not [key for key in part.ir.metadata_props if key.startswith("onward.training.")]


def test_external_data_stays_external(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((3, 2000)).astype(np.float32)
    whole = model("g (float[n, 3] x) => (float[n, 2000] y) { p = MatMul(x, w) y = Relu(p) }", w=weights)
    whole.save(tmp_path / "whole.onnx", external_data=True)
    onward.extract(tmp_path / "whole.onnx", outputs="p").save(tmp_path / "part.onnx")
    assert (tmp_path / "part.onnx.data").exists()
    found = onnxruntime.InferenceSession(tmp_path / "part.onnx").run(["p"], {"x": X})[0]
    np.testing.assert_allclose(found, X @ weights, rtol=1e-5, atol=1e-5)


def test_metadata_stays_and_the_original_is_as_it_was() -> None:
    whole = with_body()
    whole.ir.metadata_props["author"] = "me"
    before = whole.to_proto().SerializeToString()
    part = onward.extract(whole, inputs=["x", "w"], outputs="y")
    assert part.ir.metadata_props["author"] == "me"
    assert whole.to_proto().SerializeToString() == before


def test_a_part_that_begins_at_one_of_the_results_of_a_node() -> None:
    """The node stays for the other result, and what is given is taken all the same."""
    whole = model(
        "g (float[4] x) => (float[m] y, float[k] z) { a, b = Split<axis=0>(x, sizes) y = Neg(a) z = Abs(b) }",
        sizes=np.array([2, 2]),
    )
    part = onward.extract(whole, inputs=["x", "b"])
    assert [value.name for value in part.ir.graph.inputs] == ["x", "b"]
    given = np.float32([0, -1])
    np.testing.assert_array_equal(run(part, x=np.arange(4, dtype=np.float32), b=given)["z"], np.abs(given))
