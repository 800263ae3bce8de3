"""Inputs and outputs are called as the signature says, from TensorFlow to ONNX and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

import onward
from onward.backends.tensorflow.convert import generate
from onward.backends.tensorflow.saved_model import signature_names, write_saved_model
from onward.backends.tensorflow.tflite import generate_for_tflite, write_tflite
from onward.formats import open_artifact
from onward.formats.saved_model import open_function

NAMES = [("CDR1", "HLA"), ("HLA", "CDR3.b"), ("z/A", "a-B"), ("1st", ".B")]
X, Y = np.full((2, 3), 1.0, np.float32), np.full((2, 3), 5.0, np.float32)


def saved(path: Path, first: str, second: str) -> Path:
    """Of both inputs, and the second."""
    specs = [tf.TensorSpec([None, 3], tf.float32, name) for name in (first, second)]
    module: Any = tf.Module()
    module.call = tf.function(lambda a, b: {"Out.1": a - 2 * b, "B": b + 1}, autograph=False, input_signature=specs)
    tf.saved_model.save(module, str(path), signatures=module.call)
    return path


@pytest.mark.parametrize("names", NAMES)
def test_names_of_a_signature_are_kept_both_ways(names: tuple[str, str], tmp_path: Path) -> None:
    fed = dict(zip(names, (X, Y), strict=True))
    expected = {"Out.1": X - 2 * Y, "B": Y + 1}
    model = onward.from_tensorflow(saved(tmp_path / "net", *names))
    model.save(tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    assert {value.name for value in session.get_inputs()} == set(names)
    found = dict(zip([value.name for value in session.get_outputs()], session.run(None, fed), strict=True))
    np.testing.assert_equal(found, expected)
    write_saved_model(generate(model), model.ir.graph, tmp_path / "back")
    signature = tf.saved_model.load(str(tmp_path / "back")).signatures["serving_default"]
    again = signature(**{name: tf.constant(array) for name, array in fed.items()})
    np.testing.assert_equal({name: tensor.numpy() for name, tensor in again.items()}, expected)
    for path in (tmp_path / "net", tmp_path / "back"):
        opened = open_artifact(path)
        assert {one.name for one in opened.inputs or ()} == set(names)
        np.testing.assert_equal(opened.run(fed), expected)


def test_names_of_tensorflow_lite_are_kept_both_ways(tmp_path: Path) -> None:
    model = onward.from_tensorflow(saved(tmp_path / "net", "HLA", "CDR3.b"))
    path = write_tflite(generate_for_tflite(model), model.ir.graph, tmp_path / "net.tflite")
    signatures = tf.lite.Interpreter(str(path)).get_signature_list()
    assert signatures == {"serving_default": {"inputs": ["CDR3.b", "HLA"], "outputs": ["B", "Out.1"]}}
    again = onward.from_tflite(path).ir.graph
    assert {value.name for value in again.inputs} == {"HLA", "CDR3.b"}
    assert {value.name for value in again.outputs} == {"B", "Out.1"}


def test_names_of_a_function_are_kept() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 3])])
    def difference(CDR1: Any, HLA: Any) -> Any:
        return CDR1 - 2 * HLA

    assert [value.name for value in onward.from_tensorflow(difference).ir.graph.inputs] == ["CDR1", "HLA"]
    opened = open_function(difference.get_concrete_function())
    np.testing.assert_equal(list(opened.run({"CDR1": X, "HLA": Y}).values()), [X - 2 * Y])


def test_outputs_that_are_called_as_ops_are() -> None:
    keys = ["Identity", "Identity_2", "Identity_3", "x"]
    function = tf.function(lambda x: {key: x + i for i, key in enumerate(keys)})
    model = onward.from_tensorflow(function, signature=[tf.TensorSpec([3], name="y")])
    assert [value.name for value in model.ir.graph.outputs] == keys


def test_names_of_tensorflow_1_are_kept(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        a, b = (tf.compat.v1.placeholder(tf.float32, [None, 3], name) for name in "ab")
        ends = {"My in": a, "1.HLA": b}, {"Out put": a - 2 * b, "B/c": b + 1}
        signature = tf.compat.v1.saved_model.predict_signature_def(*ends)
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "net"))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    graph = onward.from_tensorflow(tmp_path / "net").ir.graph
    assert {value.name for value in graph.inputs} == {"My in", "1.HLA"}
    assert {value.name for value in graph.outputs} == {"Out put", "B/c"}
    np.testing.assert_equal(
        open_artifact(tmp_path / "net").run({"My in": X, "1.HLA": Y}), {"B/c": Y + 1, "Out put": X - 2 * Y}
    )


HARD = ["a", "A", "a.b", "a_b", "a/b", "self", "class", "my in", "_x", "ü", "-y", "1", "arg_1", ""]


def test_names_that_tensorflow_cannot_take_differ_as_little_as_can_be(tmp_path: Path) -> None:
    """And are told apart, where TensorFlow would take two for one."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in HARD[:-1]]
    total = onnx.helper.make_tensor_value_info("total", onnx.TensorProto.FLOAT, [2, 3])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Sum", HARD[:-1], ["total"])], "g", values, [total])
    model = onward.load(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]))
    write_saved_model(generate(model), model.ir.graph, tmp_path / "net")
    names = signature_names(HARD[:-1])
    found = open_artifact(tmp_path / "net")
    assert {one.name for one in found.inputs or ()} == set(names.values())
    assert [name for name in names if names[name] == name] == ["a", "a.b", "1"]
    np.testing.assert_equal(found.run(dict.fromkeys(names.values(), X)), {"total": X * len(names)})
