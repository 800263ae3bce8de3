"""`onward convert … --to onnx`, and from one framework to another through it."""

import runpy
from pathlib import Path

import numpy as np
import onnx
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from onward.cli import main  # noqa: E402


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network for images, as a .keras file."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2), name="image"),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3, name="scores"),
        ]
    )
    path = tmp_path_factory.mktemp("net") / "net.keras"
    model.save(path)
    return path


def test_keras_to_onnx(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "net.onnx"
    assert main(["convert", str(net), "--to", "onnx", "--out", str(out), "--opset", "18"]) == 0
    assert "verified: worst error" in capsys.readouterr().err
    model = onnx.load(out)
    assert model.opset_import[0].version == 18
    assert model.graph.input[0].name == "image"


def test_saved_model_to_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def doubled(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"twice": x * 2}

    module = tf.Module()
    module.f = doubled
    tf.saved_model.save(module, str(tmp_path / "net"), signatures={"serving_default": doubled, "other": doubled})
    out = tmp_path / "net.onnx"
    assert main(["convert", str(tmp_path / "net"), "--to", "onnx", "--out", str(out)]) == 0
    assert "verified" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "net"), "--to", "onnx", "--out", str(out), "--signature", "third"]) == 2
    assert "no signature 'third'; it has other, serving_default" in capsys.readouterr().err.replace("\n", " ")


def test_keras_to_pytorch(net: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert main(["convert", str(net), "--to", "torch", "--out", str(tmp_path / "net")]) == 0
    import torch

    made = runpy.run_path(str(tmp_path / "net" / "model.py"))["load"]()
    image = np.random.default_rng(0).standard_normal((2, 8, 8, 2)).astype(np.float32)
    wanted = keras.models.load_model(net)(image).numpy()
    np.testing.assert_allclose(made(torch.from_numpy(image)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_bad_input(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "net.onnx"
    broken = tmp_path / "broken.keras"
    broken.write_bytes(net.read_bytes()[:2000])
    for arguments in (
        [str(net), "--opset", "7"],
        [str(net), "--signature", "x"],
        [str(tmp_path / "missing.keras")],
        [str(broken)],
    ):
        assert main(["convert", *arguments, "--to", "onnx", "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith("onward: ")
        assert not out.exists()


def test_code_in_a_file_is_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = keras.Input((4,))
    keras.Model(x, keras.layers.Lambda(lambda t: t + 1)(x)).save(tmp_path / "net.keras")
    assert main(["convert", str(tmp_path / "net.keras"), "--to", "onnx", "--out", str(tmp_path / "net.onnx")]) == 2
    assert "a Lambda layer of it holds code" in capsys.readouterr().err
    trusted = ["convert", str(tmp_path / "net.keras"), "--to", "onnx", "--out", str(tmp_path / "net.onnx"), "--trust"]
    assert main(trusted) == 0
    assert "verified" in capsys.readouterr().err


def test_layers_beside_a_file_are_trusted_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "import keras\n\n\n@keras.saving.register_keras_serializable(package='own')\n"
    source += "class Doubled(keras.layers.Layer):\n    def call(self, x):\n        return x * 2\n"
    (tmp_path / "own_layers.py").write_text(source)
    layer = runpy.run_path(str(tmp_path / "own_layers.py"), run_name="own_layers")["Doubled"]
    x = keras.Input((4,))
    keras.Model(x, layer()(x)).save(tmp_path / "net.keras")
    keras.saving.get_custom_objects().clear()
    arguments = ["convert", str(tmp_path / "net.keras"), "--to", "onnx", "--out", str(tmp_path / "net.onnx")]
    assert main(arguments) == 2
    assert "own_layers.py beside it, which could execute anything" in capsys.readouterr().err.replace("\n", " ")
    assert main([*arguments, "--trust"]) == 0


def test_what_an_opset_cannot_say_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, ["n"]) for name in "aby"]
    joined = onnx.helper.make_node("StringConcat", ["a", "b"], ["y"], name="joined")
    graph = onnx.helper.make_graph([joined], "g", ends[:2], ends[2:])
    imports = [onnx.helper.make_opsetid("", 20)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=9), tmp_path / "strings.onnx")
    out = tmp_path / "old.onnx"
    assert main(["convert", str(tmp_path / "strings.onnx"), "--to", "onnx", "--opset", "17", "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert "Traceback" not in told and "StringConcat 'joined': opset 17 cannot say it" in told.replace("\n", " ")
    assert not out.exists()
