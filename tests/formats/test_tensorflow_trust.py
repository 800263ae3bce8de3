"""Without trust no op in a file of TensorFlow reaches out of the model: not for files, nor for Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from onward.cli import main  # noqa: E402
from onward.errors import UntrustedError  # noqa: E402
from onward.formats import open_artifact  # noqa: E402
from onward.formats.graph_def import graph_function  # noqa: E402
from onward.formats.saved_model import signature_of  # noqa: E402
from onward.formats.tensorflow_ops import reaches_out  # noqa: E402
from onward.formats.tflite import flex_nodes, open_tflite  # noqa: E402
from onward.gate import trusting  # noqa: E402

MARK = "executed"


def written(x: Any) -> Any:
    with tf.control_dependencies([tf.io.write_file(MARK, "1")]):
        return x * 2


def in_a_branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: written(x), lambda: x)


def read(x: Any) -> Any:
    return x + tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32)


def mapped(x: Any) -> Any:
    return x + tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[3], memory_region_name="/etc/hostname")


def of_python(x: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(lambda x: x, [x], tf.float32), [None, 3])


def printed(x: Any) -> Any:
    tf.print(x, output_stream=f"file://{MARK}")
    return x * 2


def listed(x: Any) -> Any:
    return x + tf.cast(tf.size(tf.io.matching_files("/*")), tf.float32)


def from_a_dataset(x: Any) -> Any:
    lines = tf.data.TextLineDataset("/etc/hostname").reduce(0, lambda n, _: n + 1)
    return x + tf.cast(lines, tf.float32)


FUNCTIONS: dict[Callable[[Any], Any], str] = {
    written: "WriteFile",
    in_a_branch: "WriteFile",
    read: "ReadFile",
    mapped: "ImmutableConst",
    of_python: "PyFunc",
    printed: "prints to",
    listed: "MatchingFiles",
    from_a_dataset: "Dataset",
}
ROWS = [tf.TensorSpec([None, 3], tf.float32, "x")]


def saved(function: Callable[[Any], Any], path: Path, module: Any = None) -> Path:
    module = module or tf.Module()
    module.call = tf.function(function, input_signature=ROWS)
    tf.saved_model.save(module, str(path))
    return path


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_ops_that_reach_out_are_refused_by_name(
    function: Callable[[Any], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(function, tmp_path / "model.onnx")
    with pytest.raises(UntrustedError, match=FUNCTIONS[function]):
        open_artifact(path)
    for extra in ([], ["--no-verify"]):
        assert main(["convert", str(path), "--to", "onnx", "--out", "out.onnx", *extra]) == 2
        assert FUNCTIONS[function] in capsys.readouterr().err
    graph = tf.function(function, input_signature=ROWS).get_concrete_function().graph.as_graph_def()
    (tmp_path / "graph.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(UntrustedError, match=FUNCTIONS[function]):
        graph_function(tmp_path / "graph.pb")
    assert not Path(MARK).exists()


def test_a_trusted_model_runs_as_tensorflow_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(written, tmp_path / "model")
    with trusting(True):
        open_artifact(path).run({"x": np.ones((1, 3), np.float32)})
    assert Path(MARK).exists()


def test_nothing_runs_on_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    from tensorflow.python.trackable.resource import TrackableResource

    class Evil(TrackableResource):  # type: ignore[misc]
        def _create_resource(self) -> Any:
            return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

        def _initialize(self) -> None:
            tf.io.write_file(MARK, "1")

    module = tf.Module()
    module.evil = Evil()
    path = saved(lambda x: x * 2, tmp_path / "model", module)
    Path(MARK).unlink(missing_ok=True)
    with pytest.raises(UntrustedError, match="WriteFile"):
        signature_of(path)
    assert not Path(MARK).exists()
    with trusting(True):
        signature_of(path)
    assert Path(MARK).exists()


@pytest.mark.parametrize("collection", ["table_initializer", "saved_model_main_op"])
def test_what_tensorflow_1_runs_on_loading(
    collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a graph calls the op that writes, or has it save: it is found."""
    monkeypatch.chdir(tmp_path)
    v1 = tf.compat.v1
    for op in ("WriteFile", "SaveV2"):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3], name="x")
            weight = v1.get_variable("weight", initializer=2.0)
            y = x * weight
            if op == "WriteFile":
                made = v1.raw_ops.WriteFile(filename=MARK, contents="1")
            else:
                made = v1.raw_ops.SaveV2(prefix=MARK, tensor_names=["x"], shape_and_slices=[""], tensors=[y])
            v1.add_to_collection(collection, made)
            session.run(v1.global_variables_initializer())
            inputs = {"x": v1.saved_model.build_tensor_info(x)}
            outputs = {"y": v1.saved_model.build_tensor_info(y)}
            signature = v1.saved_model.build_signature_def(inputs, outputs, "tensorflow/serving/predict")
            builder = v1.saved_model.Builder(str(tmp_path / op))
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
            builder.save()
        with pytest.raises(UntrustedError, match=op):
            signature_of(tmp_path / op)
    assert not list(tmp_path.glob(f"{MARK}*"))


class Words(tf.Module):  # type: ignore[misc]
    """Variables, and tables of constants and of a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        whole, line = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(str(file), tf.string, whole, tf.int64, line)
        self.words = tf.lookup.StaticHashTable(words, -1)
        self.few = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
        self.weight = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])  # type: ignore[untyped-decorator]
    def __call__(self, words: Any) -> Any:
        tf.print("looked up", words)
        return tf.cast(self.words.lookup(words) + tf.cast(self.few.lookup(words), tf.int64), tf.float32) * self.weight


def vocabulary(tmp_path: Path) -> Path:
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    tf.saved_model.save(Words(tmp_path / "words.txt"), str(tmp_path / "model"))
    (tmp_path / "words.txt").unlink()
    return tmp_path / "model"


def test_tables_and_variables_are_the_models_own(tmp_path: Path) -> None:
    path = vocabulary(tmp_path)
    found = open_artifact(path).run({"words": np.array(["c", "a"], object)})
    np.testing.assert_allclose(found["output_0"], [2.0, 14.0])


def test_assets_are_in_the_model(tmp_path: Path) -> None:
    path = vocabulary(tmp_path)
    asset = path / "assets" / "words.txt"
    asset.rename(tmp_path / "elsewhere.txt")
    asset.symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(UntrustedError, match=r"words\.txt in it is a link out of it"):
        open_artifact(path)
    content = path / "saved_model.pb"
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString(content.read_bytes())
    asset.unlink()
    model.meta_graphs[0].asset_file_def[0].filename = "../../elsewhere.txt"
    content.write_bytes(model.SerializeToString())
    with pytest.raises(UntrustedError, match="is outside of it"):
        open_artifact(path)


def test_tables_are_filled_from_assets_alone(tmp_path: Path) -> None:
    """A function that fills a table may name a file itself, or be bound to a text that names one."""
    path = vocabulary(tmp_path)
    content = path / "saved_model.pb"
    from tensorflow.core.protobuf import saved_model_pb2

    for change in ("constant", "bound"):
        model = saved_model_pb2.SavedModel.FromString(content.read_bytes())
        graph = model.meta_graphs[0]
        for function in graph.graph_def.library.function:
            node = next((node for node in function.node_def if node.op.startswith("InitializeTableFromText")), None)
            if node is not None and change == "constant":
                constant = function.node_def.add(name="file", op="Const")
                constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto("/etc/hostname"))
                constant.attr["dtype"].type = tf.string.as_datatype_enum
                node.input[1] = "file:output:0"
            elif node is not None:
                bound = graph.object_graph_def.concrete_functions[function.signature.name].bound_inputs
                for i, number in enumerate(bound):
                    if graph.object_graph_def.nodes[number].HasField("asset"):
                        bound[i] = next(
                            n for n, one in enumerate(graph.object_graph_def.nodes) if one.HasField("constant")
                        )
        changed = tmp_path / change
        changed.mkdir()
        (changed / "saved_model.pb").write_bytes(model.SerializeToString())
        with pytest.raises(UntrustedError, match="reads a file that is none of its assets"):
            signature_of(changed)


def test_links_of_a_cache_are_followed(tmp_path: Path) -> None:
    path = saved(lambda x: x * 2, tmp_path / "snapshots" / "1", tf.Module())
    (tmp_path / "blobs").mkdir()
    for file in (path / "variables").iterdir():
        moved = file.rename(tmp_path / "blobs" / file.name)
        file.symlink_to(moved)
    open_artifact(path).run({"x": np.ones((1, 3), np.float32)})


@pytest.mark.parametrize(
    "op",
    [
        *("SaveV2", "RestoreV2", "RemoteCall", "RpcCall", "TFRecordReaderV2", "CreateSummaryFileWriter", "EagerPyFunc"),
        *("DebugIdentityV2", "XlaLaunch", "XlaCallModule", "TPUExecute", "IteratorV2", "LMDBReader", "LoadDataset"),
        *("CollectiveReduceV2", "FixedUnigramCandidateSampler", "GenerateVocabRemapping", "DumpTensor", "RecordInput"),
    ],
)
def test_ops_that_reach_out(op: str) -> None:
    assert reaches_out(op)


@pytest.mark.parametrize(
    "op",
    [
        *(
            "MatMul",
            "Placeholder",
            "VarHandleOp",
            "AssignVariableOp",
            "HashTableV2",
            "LookupTableFindV2",
            "While",
            "Empty",
        ),
        *("TensorArrayV3", "TensorListReserve", "RandomUniform", "StatefulPartitionedCall", "Assert", "RngReadAndSkip"),
        *("RegexReplace", "ResourceGather", "ResourceApplyAdam", "StringSplitV2", "MutableDenseHashTableV2", "InTopK"),
    ],
)
def test_ops_that_compute(op: str) -> None:
    assert not reaches_out(op)


def test_ops_of_tensorflow_in_a_tflite_file(tmp_path: Path) -> None:
    """What runs is what the options say, whatever the op is called."""
    import flatbuffers
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.lite.python import schema_py_generated as schema

    function = tf.function(tf.strings.as_string, input_signature=[tf.TensorSpec([2], tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.SELECT_TF_OPS]
    data = converter.convert()
    assert "AsString" in {node.op for node in flex_nodes(data)}
    (tmp_path / "model.tflite").write_bytes(data)
    open_tflite(tmp_path / "model.tflite")

    from flatbuffers import flexbuffers

    options = flexbuffers.Builder()
    with options.Vector():
        options.String("AsString")
        options.String(node_def_pb2.NodeDef(name="x", op="WriteFile").SerializeToString().decode())
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    model.subgraphs[0].operators[-1].customOptions = list(options.Finish())
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    (tmp_path / "evil.tflite").write_bytes(builder.Output())
    with pytest.raises(UntrustedError, match="WriteFile"):
        open_artifact(tmp_path / "evil.tflite")
