"""`onward inspect` takes a model of any framework, as `onward convert` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onward
from onward.cli import main
from onward.errors import OnwardError, UntrustedError

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(40, 3)).astype(np.float32), RNG.integers(0, 2, 40)


def keras_net() -> Any:
    keras = pytest.importorskip("keras")
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])


def tflite(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    function = tf.function(lambda x: tf.matmul(x, tf.ones((3, 2))) + 1.0)
    concrete = function.get_concrete_function(tf.TensorSpec((1, 3)))
    (folder / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert())
    return folder / "net.tflite"


def keras(folder: Path) -> Path:
    keras_net().save(folder / "net.keras")
    return folder / "net.keras"


def hdf5(folder: Path) -> Path:
    keras_net().save(folder / "net.h5")
    return folder / "net.h5"


def saved_model(folder: Path) -> Path:
    keras_net().export(folder / "net", verbose=False)
    return folder / "net"


def program(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),)), folder / "net.pt2")
    return folder / "net.pt2"


def skops(folder: Path) -> Path:
    io = pytest.importorskip("skops.io")
    linear = pytest.importorskip("sklearn.linear_model")
    io.dump(linear.LogisticRegression().fit(ROWS, LABELS), folder / "net.skops")
    return folder / "net.skops"


def xgboost(folder: Path) -> Path:
    trees = pytest.importorskip("xgboost")
    trees.train({"max_depth": 2}, trees.DMatrix(ROWS, LABELS), 2).save_model(folder / "net.json")
    return folder / "net.json"


def lightgbm(folder: Path) -> Path:
    trees = pytest.importorskip("lightgbm")
    trees.train({"verbose": -1}, trees.Dataset(ROWS, LABELS), 2).save_model(folder / "net.txt")
    return folder / "net.txt"


FORMATS: dict[str, tuple[Callable[[Path], Path], str, set[str]]] = {
    "tflite": (tflite, "TensorFlow Lite model", {"MatMul", "Gemm"}),
    "keras": (keras, "Keras model", {"MatMul", "Gemm"}),
    "h5": (hdf5, "Keras model", {"MatMul", "Gemm"}),
    "savedmodel": (saved_model, "SavedModel", {"MatMul", "Gemm"}),
    "pt2": (program, "exported PyTorch program", {"MatMul", "Gemm"}),
    "skops": (skops, "scikit-learn estimator", {"MatMul", "Gemm"}),
    "xgboost": (xgboost, "XGBoost model", {"TreeEnsemble", "TreeEnsembleRegressor"}),
    "lightgbm": (lightgbm, "LightGBM model", {"TreeEnsemble", "TreeEnsembleRegressor"}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_a_framework(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, kind, telling = FORMATS[name]
    path = make(tmp_path)
    capsys.readouterr()
    assert main(["inspect", str(path), "--json", "--weights"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["format"]) == (str(path), kind)
    assert found["size"]["file"] >= found["size"]["weights"] / 4 > 0
    assert telling & {op["op"] for op in found["ops"]}
    assert len(found["inputs"]) == 1 and found["outputs"] and found["weights"]
    assert found["inputs"][0]["shape"][-1] == 3
    assert main(["inspect", str(path)]) == 0
    assert kind in capsys.readouterr().out


@pytest.mark.parametrize("to", ["torch", "tensorflow"])
def test_a_package_of_source_is_told_by_its_weights_and_not_executed(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(to)
    onward.convert(DIGITS, to=to, out=tmp_path / "net", verify=False)
    with (tmp_path / "net/model.py").open("a") as source:
        source.write("\nraise SystemExit('executed')\n")
    found = onward.inspect(tmp_path / "net", weights=True)
    assert found["format"] == f"generated {'PyTorch' if to == 'torch' else 'TensorFlow'} package"
    assert found["parameters"] == sum(int(np.prod(weight["shape"])) for weight in found["weights"]) >= 43418
    assert {"name": "head.bias", "dtype": "float", "shape": [10], "bytes": 40} in found["weights"]
    assert "weights" not in onward.inspect(tmp_path / "net")
    assert main(["inspect", str(tmp_path / "net"), "--weights"]) == 0
    assert "head.bias" in capsys.readouterr().out
    weights = tmp_path / "net/weights.safetensors"
    weights.write_bytes(b"\xff" * 8 + weights.read_bytes()[8:])
    with pytest.raises(OnwardError, match=r"it is damaged, or is not a file of safetensors: .*header"):
        onward.inspect(tmp_path / "net")


def test_objects_in_memory() -> None:
    assert onward.inspect(keras_net())["format"] == "Keras model"
    assert onward.inspect(onward.load(DIGITS))["format"] == "ONNX"


def test_what_cannot_be_inspected_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pickle

    (tmp_path / "net.onnx").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(UntrustedError):
        onward.inspect(tmp_path / "net.onnx")
    (tmp_path / "net.txt").write_text("no model")
    for words, message in (
        ([str(tmp_path / "net.onnx")], "--trust opens it"),
        ([str(tmp_path / "net.txt")], "net.txt"),
        ([str(tmp_path / "none.tflite")], "none.tflite"),
        ([str(DIGITS), "--signature", "serve"], "--signature"),
    ):
        assert main(["inspect", *words]) == 2
        said = capsys.readouterr().err
        assert message in said and len(said.splitlines()) == 1
