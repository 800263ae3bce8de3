"""Models that take records of bytes take their features in ONNX; TensorFlow gets the records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

tf = pytest.importorskip("tensorflow")

from onward.cli import main  # noqa: E402
from onward.errors import UnsupportedError, VerificationError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402
from onward.formats import open_object, saved_model  # noqa: E402
from onward.formats.tensorflow_records import Records  # noqa: E402
from onward.runners.onnxruntime import prepare  # noqa: E402

FIXED = {
    "size": tf.io.FixedLenFeature([2, 3], tf.float32, default_value=[[7.0] * 3] * 2),
    "count": tf.io.FixedLenFeature([], tf.int64),
    "colour": tf.io.FixedLenFeature([2], tf.string),
}
FED = {
    "size": np.arange(24, dtype=np.float32).reshape(4, 2, 3),
    "count": np.array([2**53 + 1, -3, 0, 5]),
    "colour": np.array([["red", "grün"], ["blau", ""], ["red", "red"], ["x", "blau"]], object),
}
RECORDS = tf.TensorSpec([None], tf.string, name="examples")


class Shop(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        pairs = tf.lookup.KeyValueTensorInitializer(["red", "blau"], [3, 5], value_dtype=tf.int64)
        self.colours = tf.lookup.StaticHashTable(pairs, -1)
        self.weight = tf.Variable(np.linspace(-1, 1, 3, dtype=np.float32)[:, None])

    @tf.function(input_signature=[RECORDS])
    def serve(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.predict(tf.io.parse_example(examples, FIXED))

    @tf.function
    def predict(self, found: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {
            "price": (found["size"] @ self.weight)[..., 0],
            "number": self.colours.lookup(found["colour"]) + found["count"][:, None],
        }


def serialised(fed: dict[str, Any]) -> list[bytes]:
    """Records of TensorFlow's own making."""
    made = []
    for size, count, colour in zip(fed["size"], fed["count"], fed["colour"], strict=True):
        feature = {
            "size": tf.train.Feature(float_list=tf.train.FloatList(value=size.reshape(-1))),
            "count": tf.train.Feature(int64_list=tf.train.Int64List(value=[count])),
            "colour": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode() for text in colour])),
        }
        made.append(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return made


def test_the_features_of_a_served_model_are_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop()
    tf.saved_model.save(shop, str(tmp_path / "shop"), signatures=shop.serve)
    out = tmp_path / "shop.onnx"
    assert main(["convert", str(tmp_path / "shop"), "--to", "onnx", "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "verified" in said
    assert "input examples: its records are read by features, which are inputs now: colour, count, size" in said
    runtime = onnxruntime.InferenceSession(out)
    assert {i.name: (i.type, i.shape) for i in runtime.get_inputs()} == {
        "size": ("tensor(float)", ["batch", 2, 3]),
        "count": ("tensor(int64)", ["batch"]),
        "colour": ("tensor(string)", ["batch", 2]),
    }
    found = dict(zip(["number", "price"], runtime.run(["number", "price"], FED), strict=True))
    wanted = shop.serve(tf.constant(serialised(FED)))
    np.testing.assert_array_equal(found["number"], wanted["number"])
    np.testing.assert_allclose(found["price"], wanted["price"], rtol=1e-6)


def test_the_original_runs_on_records_of_the_features() -> None:
    shop = Shop()
    opened = open_object(shop.serve.get_concrete_function())
    assert [slot.name for slot in opened.inputs] == ["colour", "count", "size"]
    found, wanted = opened.run(FED), shop.serve(tf.constant(serialised(FED)))
    for name in ("number", "price"):
        np.testing.assert_array_equal(found[name], wanted[name])


def test_a_wrong_feature_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TensorFlow gets is what is compared: records with other counts give another result."""
    written = Records.written
    monkeypatch.setattr(Records, "written", lambda self, fed: written(self, {**fed, "count": fed["count"] + 1}))
    shop = Shop()
    with pytest.raises(VerificationError):
        from_tensorflow(shop.serve.get_concrete_function())


def v1(examples: Any) -> Any:
    dense = tf.raw_ops.ParseExample(
        serialized=examples,
        names=[],
        sparse_keys=[],
        dense_keys=["b", "a"],
        dense_defaults=[tf.constant([], tf.float32), tf.constant([9], tf.int64)],
        sparse_types=[],
        dense_shapes=[[3], [1]],
    ).dense_values
    return dense[0] * tf.cast(dense[1], tf.float32)


def single(example: Any) -> Any:
    found = tf.raw_ops.ParseSingleExample(
        serialized=example,
        dense_defaults=[tf.constant([], tf.float32)],
        num_sparse=0,
        sparse_keys=[],
        dense_keys=["a"],
        sparse_types=[],
        dense_shapes=[[2, 2]],
    )
    return found.dense_values[0] * 2


def one_of_v2(example: Any) -> Any:
    return tf.io.parse_single_example(example, {"a": tf.io.FixedLenFeature([3], tf.int64)})["a"] * 2


@pytest.mark.parametrize(
    ("serve", "dims", "inputs"),
    [
        (v1, [None], {"b": ["batch", 3], "a": ["batch", 1]}),
        (v1, [5], {"b": [5, 3], "a": [5, 1]}),
        (single, [], {"a": [2, 2]}),
        (one_of_v2, [], {"a": [3]}),
    ],
)
def test_every_op_that_reads_records(serve: Callable[..., Any], dims: list[Any], inputs: dict[str, Any]) -> None:
    model = from_tensorflow(serve, [tf.TensorSpec(dims, tf.string)])  # which runs it beside TensorFlow
    assert {value.name: list(value.shape or ()) for value in model.ir.graph.inputs} == inputs


def test_a_graph_of_tensorflow_1(tmp_path: Path) -> None:
    old = tf.compat.v1
    with tf.Graph().as_default(), old.Session() as session:
        x = old.placeholder(tf.string, [None], "x")
        found = old.parse_example(tf.identity(x), {"a": tf.io.FixedLenFeature([2], tf.float32)})["a"]
        old.saved_model.simple_save(session, str(tmp_path / "net"), {"x": x}, {"y": found * 3})
    model = from_tensorflow(tmp_path / "net")
    assert [(value.name, list(value.shape or ())) for value in model.ir.graph.inputs] == [("a", ["batch", 2])]


VARIABLE = {"words": tf.io.VarLenFeature(tf.string), "counts": tf.io.VarLenFeature(tf.int64), **FIXED}
SPARSE = {
    "words": np.array([["a", "b", "c"], ["d", "", ""], ["", "", ""], ["e", "f", ""]], object),
    "words_length": np.array([3, 1, 0, 2]),
    "counts": np.array([[4, 9], [5, 6], [7, 9], [9, 9]]),
    "counts_length": np.array([1, 2, 1, -1]),
    **FED,
}


def sparse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
    found = tf.io.parse_example(examples, VARIABLE)
    words, counts = found["words"], found["counts"]
    return {
        "texts": tf.sparse.to_dense(words, ""),
        "places": words.indices,
        "shape": counts.dense_shape,
        "sums": tf.sparse.reduce_sum(counts, axis=1) + found["count"],
    }


def test_features_of_any_length_are_inputs_with_their_lengths() -> None:
    """As many as the longest record has, and how many are in each record."""
    concrete = tf.function(sparse, input_signature=[RECORDS]).get_concrete_function()
    model = from_tensorflow(concrete)  # which runs it beside TensorFlow
    inputs = {value.name: list(value.shape or ()) for value in model.ir.graph.inputs}
    assert inputs["words"] == ["batch", "words_width"] and inputs["words_length"] == ["batch"]
    assert {*inputs} == {*SPARSE}
    found = prepare(model, "")(SPARSE)
    records = []
    for record, words, counts in zip(
        serialised(FED), [["a", "b", "c"], ["d"], [], ["e", "f"]], [[4], [5, 6], [7], []], strict=True
    ):
        example = tf.train.Example.FromString(record)
        example.features.feature["words"].bytes_list.value.extend(word.encode() for word in words)
        example.features.feature["counts"].int64_list.value.extend(counts)
        records.append(example.SerializeToString())
    wanted = sparse(tf.constant(records))
    assert found["texts"].tolist() == [[word.decode() for word in row] for row in wanted["texts"].numpy().tolist()]
    for name in ("places", "shape", "sums"):
        np.testing.assert_array_equal(found[name], wanted[name])
    again = open_object(concrete).run(SPARSE)
    np.testing.assert_array_equal(again["sums"], wanted["sums"])


def test_sparse_features_of_the_first_op_that_reads_records() -> None:
    def serve(examples: tf.Tensor) -> Any:
        found = tf.raw_ops.ParseExample(
            serialized=examples,
            names=[],
            sparse_keys=["b", "a"],
            dense_keys=["c"],
            dense_defaults=[tf.constant([], tf.float32)],
            sparse_types=[tf.float32, tf.int64],
            dense_shapes=[[1]],
        )
        sums = tf.sparse.reduce_sum(tf.sparse.SparseTensor(*(part[0] for part in found[:3])), axis=1)
        return sums + found.dense_values[0][:, 0], found.sparse_values[1]

    model = from_tensorflow(serve, [tf.TensorSpec([None], tf.string)])
    assert [value.name for value in model.ir.graph.inputs] == ["c", "b", "b_length", "a", "a_length"]


@pytest.mark.parametrize(
    "feature",
    [
        tf.io.RaggedFeature(tf.int64),
        tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    ],
    ids=["ragged", "padded"],
)
def test_features_of_any_length_are_refused_by_name(feature: Any) -> None:
    def serve(examples: tf.Tensor) -> Any:
        found = tf.io.parse_example(examples, {"tags": feature, "x": tf.io.FixedLenFeature([1], tf.float32)})
        return found["x"] * 2, tf.identity(getattr(found["tags"], "values", found["tags"]))

    concrete = tf.function(serve, input_signature=[RECORDS]).get_concrete_function()
    with pytest.raises(UnsupportedError, match=r"'examples' hold features of any length.*: 'tags'; convert what takes"):
        from_tensorflow(concrete)
    assert [slot.name for slot in open_object(concrete).inputs] == ["examples"]  # which can be run as it is


def twice(examples: tf.Tensor) -> Any:
    return [tf.io.parse_example(examples, {key: tf.io.FixedLenFeature([1], tf.float32)})[key] for key in "ab"]


def handed_out(examples: tf.Tensor) -> Any:
    return tf.io.parse_example(examples, {"a": tf.io.FixedLenFeature([1], tf.float32)})["a"], tf.identity(examples)


def counted(examples: tf.Tensor) -> Any:
    found = tf.io.parse_example(examples, {"a": tf.io.FixedLenFeature([1], tf.float32)})["a"]
    return found, tf.shape(examples)


@tf.function
def parsed(examples: tf.Tensor) -> Any:
    return tf.io.parse_example(examples, {"a": tf.io.FixedLenFeature([1], tf.float32)})["a"]


def called_twice(examples: tf.Tensor) -> Any:
    return parsed(examples) + parsed(examples)


def handed_on(examples: tf.Tensor) -> Any:
    return parsed(tf.strings.join([examples, ""]))


@pytest.mark.parametrize("serve", [twice, handed_out, counted, called_twice, handed_on])
def test_records_that_are_read_otherwise_too_are_refused(serve: Callable[..., Any]) -> None:
    concrete = tf.function(serve, input_signature=[RECORDS]).get_concrete_function()
    assert saved_model.records_of(concrete) == {}
    with pytest.raises(UnsupportedError, match=r"ParseExampleV2 .*: it reads records of bytes.*: convert what takes"):
        from_tensorflow(concrete)


def test_a_feature_with_the_name_of_another_input_is_refused() -> None:
    @tf.function(input_signature=[RECORDS, tf.TensorSpec([None, 1], name="a")])
    def serve(examples: tf.Tensor, a: tf.Tensor) -> Any:
        return tf.io.parse_example(examples, {"a": tf.io.FixedLenFeature([1], tf.float32)})["a"] + a

    with pytest.raises(UnsupportedError, match="it reads records of bytes"):
        from_tensorflow(serve)
