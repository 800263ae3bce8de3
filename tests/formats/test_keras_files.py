"""Files of Keras: without `--trust` they name parts of Keras that compute, and nothing else."""

import copy
import importlib
import inspect
import io
import json
import os
import pkgutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import problem

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")

import onward  # noqa: E402
from onward.cli import main  # noqa: E402
from onward.errors import UntrustedError  # noqa: E402
from onward.formats.keras import parts  # noqa: E402
from onward.formats.keras.dangers import dangers  # noqa: E402

DENSE = 1
"""Which of the layers is changed."""


def network() -> Any:
    x = keras.Input((4,), name="x")
    net = keras.Model(x, keras.layers.Dense(3, activation="relu", name="d")(x))
    net.compile("adam", "mse", metrics=["accuracy"])
    return net


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    network().save(folder / "net.keras")
    network().save(folder / "net.h5")
    assert main(["convert", str(folder / "net.keras"), "--to", "onnx", "--out", str(folder / "net.onnx")]) == 0
    return folder


def rewritten(source: Path, path: Path, change: Callable[[dict[str, Any]], None], **more: bytes) -> None:
    """A .keras file with another configuration, and with other members."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            data = before.read(name)
            if name == "config.json":
                config = json.loads(data)
                change(config)
                data = json.dumps(config).encode()
            if name not in more:
                after.writestr(name, data)
        for name, data in more.items():
            after.writestr(name, data)


def layer(**entries: Any) -> Callable[[dict[str, Any]], None]:
    """Replaces the layer by another class."""
    return lambda config: config["config"]["layers"][DENSE].update(entries)


def option(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Gives the layer another option."""
    return lambda config: config["config"]["layers"][DENSE]["config"].update({name: value})


def compiled(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config["compile_config"].update({name: value})


def named(name: str, module: str = "builtins", registered: str | None = None) -> dict[str, Any]:
    return {"class_name": "function", "module": module, "config": name, "registered_name": registered or name}


CODE = ["4wEAAAAAAAAAAAAAAAEAAAABAAAA", None, None]
HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "Lambda": (layer(class_name="Lambda", config={"name": "d", "function": named("relu")}), "a Lambda layer"),
    "stored code": (option("activation", {"class_name": "__lambda__", "config": {"value": CODE}}), "a Lambda layer"),
    "any module": (layer(class_name="Popen", module="subprocess", registered_name="Popen"), "'Popen' of 'subprocess'"),
    "a module of Keras": (layer(class_name="Progbar", module="keras.utils", registered_name=None), "'Progbar'"),
    "download": (option("activation", named("get_file", "keras.utils")), "'get_file'"),
    "another name": (option("activation", named("relu", "builtins", "keras.utils.get_file")), "'relu'"),
    "another class": (layer(class_name="Dense", module="keras.utils", registered_name="get_file"), "'Dense'"),
    "SavedModel": (layer(class_name="TFSMLayer", config={"name": "d", "filepath": "/tmp/x"}), "'TFSMLayer'"),
    "PyTorch": (layer(class_name="TorchModuleWrapper", config={"name": "d"}), "'TorchModuleWrapper'"),
    "JAX": (layer(class_name="JaxLayer", config={"name": "d"}), "'JaxLayer'"),
    "type": (option("units", {"class_name": "__typespec__", "spec_name": "x", "config": []}), "'__typespec__'"),
    "vocabulary": (
        layer(class_name="StringLookup", config={"name": "d", "vocabulary": "/etc/passwd"}),
        "it reads its vocabulary from another file, '/etc/passwd'",
    ),
    "nested": (option("kernel_initializer", {"a": [{"class_name": "Popen", "module": "subprocess"}]}), "'Popen'"),
    "op of TensorFlow": (layer(class_name="TensorFlowOpLayer", module=None), "'TensorFlowOpLayer'"),
    "function of TensorFlow": (
        layer(class_name="TFOpLambda", module=None, config={"name": "d", "function": "io.write_file"}),
        "it calls tf.io.write_file",
    ),
    "not a name": (layer(class_name=["Dense"]), "['Dense'] of"),
    "not a function": (option("activation", {"class_name": "function", "config": {"a": 1}}), "function {'a': 1}"),
}


def refused(capsys: pytest.CaptureFixture[str], path: Path, words: str, saved: Path) -> None:
    """By every command that opens it, in one line."""
    for arguments in (
        ["convert", str(path), "--to", "onnx", "--out", str(path.parent / "new.onnx")],
        ["verify", str(saved / "net.onnx"), str(path)],
        ["verify", str(path), str(saved / "net.onnx")],
        ["train", "prepare", str(path), "--out", str(path.parent / "new.onnx")],
    ):
        capsys.readouterr()
        assert main(arguments) == 2
        error = problem(capsys.readouterr().err)
        assert words in error
        assert "--trust opens it" in error


@pytest.mark.parametrize("name", HOSTILE)
def test_what_else_a_configuration_names(
    name: str, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, words = HOSTILE[name]
    rewritten(saved / "net.keras", tmp_path / "bad.keras", change)
    if name in ("Lambda", "any module"):
        refused(capsys, tmp_path / "bad.keras", words, saved)
    else:
        assert words in next(iter(dangers(tmp_path / "bad.keras")))
    with pytest.raises(UntrustedError):
        onward.from_keras(tmp_path / "bad.keras")


COMPILED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "loss": (compiled("loss", named("system", "os")), "'system'"),
    "optimizer": (
        compiled("optimizer", {"class_name": "Popen", "module": "subprocess", "config": {"args": ["touch", "ran"]}}),
        "'Popen'",
    ),
}


@pytest.mark.parametrize("name", COMPILED)
def test_how_a_model_was_compiled_is_looked_at_only_by_training(
    name: str, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    change, words = COMPILED[name]
    monkeypatch.chdir(tmp_path)
    rewritten(saved / "net.keras", tmp_path / "own.keras", change)
    assert main(["convert", "own.keras", "--to", "onnx", "--out", "new.onnx"]) == 0
    capsys.readouterr()
    assert main(["train", "prepare", "own.keras", "--out", "trainable.onnx"]) == 2
    assert words in problem(capsys.readouterr().err)
    assert not (tmp_path / "ran").exists()


def test_what_else_an_hdf5_file_names(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.h5"
    path.write_bytes((saved / "net.h5").read_bytes())
    with h5py.File(path, "a") as file:
        config = json.loads(file.attrs["model_config"])
        config["config"]["layers"][DENSE]["class_name"] = "Popen"
        file.attrs["model_config"] = json.dumps(config)
    refused(capsys, path, "its part 'Popen'", saved)


def test_how_a_model_in_hdf5_was_compiled(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "own.h5", str(tmp_path / "new.onnx")
    path.write_bytes((saved / "net.h5").read_bytes())
    with h5py.File(path, "a") as file:
        config = json.loads(file.attrs["training_config"])
        config["optimizer_config"]["class_name"] = "Popen"
        file.attrs["training_config"] = json.dumps(config)
    assert main(["convert", str(path), "--to", "onnx", "--out", out]) == 0
    capsys.readouterr()
    assert main(["train", "prepare", str(path), "--out", out]) == 2
    assert "its part 'Popen'" in problem(capsys.readouterr().err)


def linked(file: Any, place: Path) -> str:
    del file["model_weights/d"]
    file["model_weights/d"] = h5py.ExternalLink(str(place), "/model_weights/d")
    return "'d' is a link"


def stored_elsewhere(file: Any, place: Path) -> str:
    place.write_bytes(bytes(64))
    file["model_weights"].create_dataset("more", (4, 3), "f4", external=[(str(place), 0, 48)])
    return "'more' is stored in another file"


def virtual(file: Any, place: Path) -> str:
    layout = h5py.VirtualLayout((4, 3), "f4")
    layout[:] = h5py.VirtualSource(str(place), "x", (4, 3))
    file["model_weights"].create_virtual_dataset("more", layout)
    return "'more' is stored in another file"


@pytest.mark.parametrize("change", [linked, stored_elsewhere, virtual])
def test_weights_in_other_files(change: Callable[[Any, Path], str], saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.h5"
    path.write_bytes((saved / "net.h5").read_bytes())
    with h5py.File(path, "a") as file:
        words = change(file, tmp_path / "other")
    assert words in next(iter(dangers(path)))
    inside = io.BytesIO(path.read_bytes())
    rewritten(saved / "net.keras", tmp_path / "bad.keras", lambda config: None, **{"model.weights.h5": inside.read()})
    assert words in next(iter(dangers(tmp_path / "bad.keras")))


def test_members_that_keras_does_not_write(saved: Path, tmp_path: Path) -> None:
    rewritten(saved / "net.keras", tmp_path / "bad.keras", lambda config: None, **{"model.weights.npz": b""})
    assert "'model.weights.npz'" in next(iter(dangers(tmp_path / "bad.keras")))


def test_code_beside_a_file(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewritten(
        saved / "net.keras",
        tmp_path / "bad.keras",
        layer(class_name="Own", module="own_layers", registered_name="own>Own", config={"name": "d"}),
    )
    (tmp_path / "own_layers.py").write_text(
        f"import keras\nopen({str(tmp_path / 'ran')!r}, 'w')\n"
        "@keras.saving.register_keras_serializable('own')\nclass Own(keras.layers.Layer):\n"
        "    def call(self, x):\n        return x[:, :3]\n"
    )
    refused(capsys, tmp_path / "bad.keras", "layers of it are defined in own_layers.py beside it", saved)
    with pytest.raises(UntrustedError):
        onward.from_keras(tmp_path / "bad.keras")
    with pytest.raises(UntrustedError):
        onward.verify(saved / "net.onnx", tmp_path / "bad.keras")
    assert not (tmp_path / "ran").exists()
    made = onward.from_keras(tmp_path / "bad.keras", trust=True)
    assert (tmp_path / "ran").exists()
    keras.saving.get_custom_objects().clear()
    assert onward.verify(made, tmp_path / "bad.keras", trust=True).status == "same"
    keras.saving.get_custom_objects().clear()


def test_classes_that_a_program_registered(tmp_path: Path) -> None:
    @keras.saving.register_keras_serializable("registered")  # type: ignore[untyped-decorator]
    class Doubled(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * 2

    x = keras.Input((4,))
    keras.Model(x, Doubled()(x)).save(tmp_path / "net.keras")
    assert list(dangers(tmp_path / "net.keras")) == []
    assert "Doubled" in next(iter(dangers(tmp_path / "net.keras", "tf_keras")))
    onward.from_keras(tmp_path / "net.keras")
    keras.saving.get_custom_objects().clear()
    with pytest.raises(UntrustedError):
        onward.from_keras(tmp_path / "net.keras")


def test_what_was_converted_here_is_opened(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new.keras"
    assert main(["convert", str(saved / "net.onnx"), "--to", "keras", "--out", str(out)]) == 0
    keras.saving.get_custom_objects().clear()
    assert main(["verify", str(saved / "net.onnx"), str(out)]) == 0


DENIED = {"FlaxLayer", "Input", "InputSpec", "JaxLayer", "Lambda", "TFSMLayer", "TorchModuleWrapper"}


@pytest.mark.parametrize(
    "module", ["layers", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers"]
)
def test_every_class_of_keras_is_judged(module: str) -> None:
    """Each is known to compute, or is one that does more."""
    names = {name for name in dir(getattr(keras, module)) if name[0].isupper()}
    assert names - parts.CLASSES <= DENIED
    assert not DENIED & parts.CLASSES


def test_layers_of_its_applications() -> None:
    from keras.src import applications

    files = [
        importlib.import_module(f"{applications.__name__}.{m.name}")
        for m in pkgutil.iter_modules(applications.__path__)
    ]
    layers = {
        name
        for file in files
        for name, one in vars(file).items()
        if inspect.isclass(one) and issubclass(one, keras.Layer)
    }
    assert layers >= {"LayerScale", "StochasticDepth"}
    assert layers <= parts.CLASSES


def test_a_model_of_keras_2_with_functions_of_tensorflow(tmp_path: Path) -> None:
    old = pytest.importorskip("tf_keras")
    import tensorflow as tf

    x = old.Input((4, 4, 3))
    y = tf.concat([tf.nn.relu6(x * 2 - 1), tf.math.reduce_mean(x, 3, keepdims=True)], 3)[:, ::2]
    for name in ("net.h5", "net.keras"):
        old.Model(x, tf.image.resize(tf.cast(y, tf.float32), [8, 8])).save(tmp_path / name)
        assert list(dangers(tmp_path / name)) == []
        assert list(dangers(tmp_path / name, "tf_keras")) == []


def test_nothing_of_keras_own_is_refused(tmp_path: Path) -> None:
    """Layers with parts of every kind, nested; ops; a compiled model."""
    x = keras.Input((6, 4))
    y = keras.layers.Bidirectional(keras.layers.LSTM(3, kernel_regularizer="l2", return_sequences=True))(x)
    y = keras.layers.TimeDistributed(keras.layers.Dense(4, keras.activations.gelu, kernel_constraint="max_norm"))(y)
    y = keras.layers.MultiHeadAttention(2, 2)(y, y)
    y = keras.layers.RNN(keras.layers.StackedRNNCells([keras.layers.GRUCell(2), keras.layers.LSTMCell(3)]))(y)
    net = keras.Model(x, keras.Sequential([keras.layers.Dense(2, dtype="mixed_float16")])(y))
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    net.compile(keras.optimizers.AdamW(schedule), keras.losses.Huber(), [keras.metrics.AUC(), "mae"])
    for name in ("net.keras", "net.h5"):
        net.save(tmp_path / name)
        assert list(dangers(tmp_path / name)) == []
    keras.Model(x, keras.ops.sin(x[:, ::-1]) * np.float32(2)).save(tmp_path / "net.keras")
    assert list(dangers(tmp_path / "net.keras")) == []


def test_damaged_files_are_refused(saved: Path, tmp_path: Path) -> None:
    """A configuration may be nested as deep as it likes, or be no configuration at all."""
    for config in (b"[" * 100_000, b"{", b"\xff"):
        rewritten(saved / "net.keras", tmp_path / "bad.keras", lambda config: None, **{"config.json": config})
        with pytest.raises(onward.OnwardError, match="damaged"):
            onward.from_keras(tmp_path / "bad.keras")
    deep: Any = {}
    for _ in range(900):
        deep = {"config": copy.copy(deep)}
    rewritten(saved / "net.keras", tmp_path / "bad.keras", option("more", deep))
    assert list(dangers(tmp_path / "bad.keras")) == []
