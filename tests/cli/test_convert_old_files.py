"""`onward convert` on files that earlier versions of TensorFlow and Keras wrote, and on damaged ones."""

import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from google.protobuf import text_format  # noqa: E402

from onward.cli import main  # noqa: E402

v1 = tf.compat.v1
ROWS = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def graph() -> Any:
    """A graph with a branch, a variable that was frozen, and two results."""
    was_on = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        kernel = v1.get_variable("layer/kernel", initializer=np.eye(3, 2, dtype=np.float32) + 1, use_resource=False)
        hidden = tf.nn.relu(x @ kernel, name="hidden")
        tf.identity(v1.cond(tf.reduce_sum(x) > 0, lambda: hidden * 2, lambda: hidden - 1), name="scores")
        session.run(v1.global_variables_initializer())
        frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["scores"])
    if was_on:
        v1.enable_control_flow_v2()
    return frozen


@pytest.fixture
def frozen(graph: Any, tmp_path: Path) -> Path:
    path = tmp_path / "frozen.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def converted(*arguments: object) -> int:
    return main(["convert", *map(str, arguments)])


@pytest.mark.parametrize("in_words", [False, True], ids=["binary", "in words"])
def test_a_frozen_graph(in_words: bool, graph: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "graph", tmp_path / "new" / "net.onnx"
    path.write_bytes(text_format.MessageToBytes(graph) if in_words else graph.SerializeToString())
    assert converted(path, "--to", "onnx", "--out", out) == 0
    assert "verified: worst error" in capsys.readouterr().err
    model = onnx.load(out)
    assert [value.name for value in model.graph.input] == ["x"]
    assert [value.name for value in model.graph.output] == ["scores"]
    assert "layer/kernel" in {tensor.name for tensor in model.graph.initializer}
    assert main(["verify", str(out), str(path)]) == 0


def test_between_tensors_of_a_graph(frozen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "net.onnx"
    arguments = ["--input", "x:float32[batch,3]", "--output", "hidden:0", "--output", "scores"]
    assert converted(frozen, *arguments, "--to", "onnx", "--out", out) == 0
    assert "verified" in capsys.readouterr().err
    assert [value.name for value in onnx.load(out).graph.output] == ["hidden", "scores"]
    assert converted(frozen, "--input", "hidden", "--output", "scores", "--to", "onnx", "--out", out) == 2
    assert "the outputs need more than these inputs: x" in capsys.readouterr().err
    assert converted(frozen, "--input", "MatMul", "--output", "hidden", "--to", "onnx", "--out", out) == 2
    assert "there is no tensor 'MatMul' in the graph" in capsys.readouterr().err
    assert (
        converted(
            frozen, "--input", "layer/kernel/read", "--input", "x", "--output", "hidden", "--to", "onnx", "--out", out
        )
        == 0
    )
    assert [value.name for value in onnx.load(out).graph.input] == ["layer/kernel/read", "x"]


def test_a_frozen_graph_to_pytorch(frozen: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    assert converted(frozen, "--to", "torch", "--out", tmp_path / "net") == 0
    made = runpy.run_path(str(tmp_path / "net" / "model.py"))["load"]()
    hidden = np.maximum(ROWS @ (np.eye(3, 2) + 1), 0)
    wanted = hidden * 2 if ROWS.sum() > 0 else hidden - 1
    np.testing.assert_allclose(made(torch.from_numpy(ROWS)).detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def refused(words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: object) -> None:
    """One line, exit code 2, nothing written."""
    out = tmp_path / "refused.onnx"
    capsys.readouterr()
    assert converted(*arguments, "--to", "onnx", "--out", out) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("onward: ") == 1
    assert error.splitlines()[-1].startswith("onward: step 1 of 4: reading: ")
    assert not out.exists()


def test_damaged_graphs(graph: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = graph.SerializeToString()
    cut = tmp_path / "cut.pb"
    cut.write_bytes(whole[: len(whole) // 2])
    refused("cut.pb: the graph is damaged or cut off", capsys, tmp_path, cut)
    words = tmp_path / "cut.pbtxt"
    words.write_text(text_format.MessageToString(graph)[:500])
    refused("cut.pbtxt: the graph is damaged or cut off", capsys, tmp_path, words)
    odd = v1.GraphDef.FromString(whole)
    odd.node[-1].op = "NoSuchOp"
    (tmp_path / "odd.pb").write_bytes(odd.SerializeToString())
    refused("TensorFlow does not take this graph", capsys, tmp_path, tmp_path / "odd.pb")
    refused("there is no tensor 'nowhere'", capsys, tmp_path, tmp_path / "odd.pb", "--output", "nowhere")


def test_damaged_saved_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tf.Module()
    module.weight = tf.Variable(tf.ones([3, 2]))
    module.f = tf.function(lambda x: x @ module.weight, input_signature=[tf.TensorSpec([None, 3], name="x")])
    tf.saved_model.save(module, str(tmp_path / "net"), signatures={"serving_default": module.f})
    refused("no signature 'other'; it has serving_default", capsys, tmp_path, tmp_path / "net", "--signature", "other")
    for name, damage, words in (
        ("graph", "saved_model.pb", "the SavedModel is damaged or cut off"),
        ("values", "variables/variables.data-00000-of-00001", "TensorFlow does not load this SavedModel"),
    ):
        shutil.copytree(tmp_path / "net", tmp_path / name)
        file = tmp_path / name / damage
        file.write_bytes(file.read_bytes()[:10])
        refused(words, capsys, tmp_path, tmp_path / name)
    shutil.copytree(tmp_path / "net", tmp_path / "no_values")
    shutil.rmtree(tmp_path / "no_values" / "variables")
    refused("TensorFlow does not load this SavedModel", capsys, tmp_path, tmp_path / "no_values")


def test_code_in_hdf5_is_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = keras.Input((4,))
    keras.Model(x, keras.layers.Lambda(lambda t: t + 1)(x)).save(tmp_path / "net.h5")
    refused("a Lambda layer of it holds code", capsys, tmp_path, tmp_path / "net.h5")
    assert converted(tmp_path / "net.h5", "--trust", "--to", "onnx", "--out", tmp_path / "net.onnx") == 0


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_layers_that_nobody_knows(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Unknown(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * 2

    x = keras.Input((4,))
    keras.Model(x, Unknown()(x)).save(tmp_path / f"net.{suffix}")
    refused("'Unknown'", capsys, tmp_path, tmp_path / f"net.{suffix}")


def test_cut_off_hdf5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(tmp_path / "net.h5")
    cut = tmp_path / "cut.h5"
    cut.write_bytes((tmp_path / "net.h5").read_bytes()[:3000])
    refused("the HDF5 file is damaged", capsys, tmp_path, cut)


def test_a_file_of_keras_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras 3 does not know an argument that Keras 2 wrote for transposed convolutions."""
    old = pytest.importorskip("tf_keras")
    layers = [old.layers.Conv2DTranspose(2, 3, input_shape=(4, 4, 3)), old.layers.LSTM(5, return_sequences=True)]
    layers.insert(1, old.layers.Reshape((6, 12)))
    old.Sequential(layers).save(tmp_path / "net.h5")
    assert converted(tmp_path / "net.h5", "--to", "onnx", "--out", tmp_path / "net.onnx") == 0
    assert "verified" in capsys.readouterr().err
    monkeypatch.setattr("onward.formats.keras.keras_2.PACKAGE", "tf_keras_is_not_installed")
    refused("pip install --no-deps tf_keras", capsys, tmp_path, tmp_path / "net.h5")


def test_code_in_a_file_of_keras_2_is_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = pytest.importorskip("tf_keras")
    layers = [old.layers.Conv2DTranspose(2, 3, input_shape=(4, 4, 3)), old.layers.Lambda(lambda t: t + 1)]
    old.Sequential(layers).save(tmp_path / "net.h5")
    refused("a Lambda layer of it holds code", capsys, tmp_path, tmp_path / "net.h5")


def test_open_dimensions_have_names(tmp_path: Path) -> None:
    """Those that the model gives, or readable ones: the batch, and for others the input and the axis."""
    x, y = keras.Input((None, 3), name="words"), keras.Input((3,), name="context")
    model = keras.Model([x, y], keras.layers.GlobalAveragePooling1D()(x) + y)
    model.save(tmp_path / "net.keras")
    model.export(tmp_path / "net", verbose=False)
    for source in ("net.keras", "net"):
        out = tmp_path / "net.onnx"
        assert converted(tmp_path / source, "--to", "onnx", "--out", out) == 0
        dims = {
            value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
            for value in onnx.load(out).graph.input
        }
        if source == "net.keras":
            assert dims == {"words": ["batch", "words_dim1", 3], "context": ["batch", 3]}
        else:
            assert dims == {"words": ["words_dim0", "words_dim1", 3], "context": ["context_dim0", 3]}
