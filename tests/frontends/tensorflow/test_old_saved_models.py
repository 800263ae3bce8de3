"""SavedModels as TensorFlow 1 wrote them: variables and tables in the graph, tags, collections, assets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from test_battery import run  # noqa: E402

from onward.errors import OnwardError, UntrustedError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402
from onward.formats import open_artifact  # noqa: E402

v1 = tf.compat.v1
ROWS = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)


def checked(path: Path, arguments: dict[str, Any], signature: str | None = None) -> Any:
    """A SavedModel as ONNX, which computes what TensorFlow computes."""
    model = from_tensorflow(path, signature)
    assert [value.name for value in model.ir.graph.inputs] == sorted(arguments)
    found = run(model, tuple(arguments[name] for name in sorted(arguments)))
    if signature is None:
        wanted = open_artifact(path).run({name: np.asarray(array) for name, array in arguments.items()})
        for value, array in zip(model.ir.graph.outputs, found, strict=True):
            np.testing.assert_allclose(array, wanted[value.name or ""], rtol=1e-6)
    return model


@pytest.mark.parametrize("resource", [False, True], ids=["references", "resources"])
def test_simple_save(resource: bool, tmp_path: Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="rows")
        kernel = v1.get_variable("layer/kernel", initializer=WEIGHT, use_resource=resource)
        frozen = v1.get_variable(
            "layer/bias", initializer=np.ones(2, np.float32), trainable=False, use_resource=resource
        )
        y = tf.identity(x @ kernel + frozen, name="scores")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "net"), {"x": x}, {"y": y})
    model = checked(tmp_path / "net", {"x": ROWS})
    assert {"layer/kernel", "layer/bias"} <= set(model.ir.graph.initializers)
    assert str(model.ir.graph.inputs[0].shape[0]) == "batch"


def test_what_was_trained_is_what_is_saved(tmp_path: Path) -> None:
    """A variable that was assigned to; the ops that assign stay in the graph, where nothing needs them."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2, 3])
        kernel = v1.get_variable("kernel", initializer=np.zeros((3, 2), np.float32), use_resource=False)
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(x @ kernel))
        session.run(v1.global_variables_initializer())
        session.run(train, {x: ROWS})
        v1.saved_model.simple_save(session, str(tmp_path / "net"), {"x": x}, {"y": x @ kernel})
    (found,) = run(checked(tmp_path / "net", {"x": ROWS}), (ROWS,))
    np.testing.assert_allclose(found, -0.1 * ROWS @ ROWS.sum(0)[:, None] @ np.ones((1, 2)), rtol=1e-5, atol=1e-6)


def test_tags_and_signatures(tmp_path: Path) -> None:
    """Of the graph to train and the graph to serve, the second."""
    builder = v1.saved_model.Builder(str(tmp_path / "net"))
    for tags, factor in ((["train"], 5.0), (["serve"], 2.0)):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3])
            scale = v1.get_variable("scale", initializer=2.0, use_resource=False)
            session.run(v1.global_variables_initializer())
            signatures = {
                name: v1.saved_model.predict_signature_def({"x": x}, {"y": x * scale * factor + shift})
                for name, shift in (("serving_default", 0.0), ("shifted", 1.0))
            }
            if tags == ["train"]:
                builder.add_meta_graph_and_variables(session, tags, signatures)
            else:
                builder.add_meta_graph(tags, signatures)
    builder.save()
    (plain,) = run(checked(tmp_path / "net", {"x": ROWS}), (ROWS,))
    (shifted,) = run(checked(tmp_path / "net", {"x": ROWS}, "shifted"), (ROWS,))
    np.testing.assert_allclose(plain, ROWS * 4, rtol=1e-6)
    np.testing.assert_allclose(shifted, ROWS * 4 + 1, rtol=1e-6)
    with pytest.raises(OnwardError, match="no signature 'other'; it has serving_default, shifted"):
        from_tensorflow(tmp_path / "net", "other")


def test_tables_and_assets(tmp_path: Path) -> None:
    """A table that is filled from a file, which the SavedModel brings along."""
    words = tmp_path / "words.txt"
    words.write_text("cat\ndog\nbird\n")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, [None])
        from_file = v1.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        table = v1.lookup.StaticHashTable(from_file, -1)
        pairs = v1.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), tf.constant([1.0, 0.5, 0.25]))
        weights = v1.lookup.StaticHashTable(pairs, 0.0)
        places = table.lookup(x)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(str(tmp_path / "net"))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"place": places, "weight": weights.lookup(places)})
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()
    words.unlink()
    found = run(
        checked(tmp_path / "net", {"x": np.array(["dog", "cow", "cat"], object)}), (np.array(["dog", "cow", "cat"]),)
    )
    assert found[0].tolist() == [1, -1, 0]
    np.testing.assert_allclose(found[1], [0.5, 0.0, 1.0])


@tf.function
def made() -> Any:
    return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="words")


@tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.resource)])
def filled(path: Any, table: Any) -> Any:
    tf.raw_ops.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=-2, value_index=-1)
    return tf.constant(1)


@tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.resource)])
def passed_on(path: Any, table: Any) -> Any:
    return filled(path, table)


@tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.resource)])
def of_another_file(path: Any, table: Any) -> Any:
    return filled(tf.strings.join([path, ""]), table)


@tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.resource)])
def in_a_branch(path: Any, table: Any) -> Any:
    return tf.cond(tf.strings.length(path) > 0, lambda: filled(path, table), lambda: tf.constant(0))


def saved_with_a_table(folder: Path, fill: Any, is_asset: bool = True) -> None:
    """A table that functions make and fill, as a layer of TensorFlow 2 in a graph of TensorFlow 1 has it."""
    words = folder / "words.txt"
    words.write_text("cat\ndog\nbird\n")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, [None])
        table, path = made(), tf.constant(str(words))
        if is_asset:
            v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, path)
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, fill(path, table).op)
        default = tf.constant(-1, tf.int64)
        places = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=x, default_value=default)
        builder = v1.saved_model.Builder(str(folder / "net"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": v1.saved_model.predict_signature_def({"x": x}, {"place": places})},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()


@pytest.mark.parametrize("fill", [filled, passed_on])
def test_tables_that_functions_make_and_fill_from_assets(fill: Any, tmp_path: Path) -> None:
    saved_with_a_table(tmp_path, fill)
    (tmp_path / "words.txt").unlink()
    texts = np.array(["dog", "cow", "cat"], object)
    (places,) = run(checked(tmp_path / "net", {"x": texts}), (texts,))
    assert places.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("fill", "is_asset"), [(filled, False), (passed_on, False), (of_another_file, True), (in_a_branch, True)]
)
def test_tables_that_functions_fill_from_other_files_are_refused(fill: Any, is_asset: bool, tmp_path: Path) -> None:
    saved_with_a_table(tmp_path, fill, is_asset)
    with pytest.raises(UntrustedError, match="reads a file that is none of its assets"):
        from_tensorflow(tmp_path / "net")


def test_a_model_in_words(tmp_path: Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3])
        builder = v1.saved_model.Builder(str(tmp_path / "net"))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": x * 2})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save(as_text=True)
    assert (tmp_path / "net" / "saved_model.pbtxt").is_file()
    checked(tmp_path / "net", {"x": ROWS})


def test_a_model_without_its_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3])
        kernel = v1.get_variable("kernel", initializer=WEIGHT, use_resource=False)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "net"), {"x": x}, {"y": x @ kernel})
    for file in (tmp_path / "net" / "variables").iterdir():
        file.unlink()
    with pytest.raises(OnwardError, match="does not load this SavedModel"):
        from_tensorflow(tmp_path / "net")
