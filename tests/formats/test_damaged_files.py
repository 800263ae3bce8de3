"""Whatever is damaged in a file of a framework, its reader gets one line that blames the file; nothing else happens."""

from __future__ import annotations

import io
import json
import random
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onward.cli import main
from onward.errors import InvalidModelError, OnwardError
from onward.formats.pt2 import read_program

COUNT = 24
"""Damaged files of each format."""
SEED = 7
ROWS = np.random.default_rng(SEED).normal(size=(40, 4))
CLASSES = (ROWS[:, 0] > 0).astype(int)
VALUES: list[Any] = [None, 0, -1, 10**20, 1.5, "", "x", [], {}, [None], True, "a.b"]


def a_program(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    dims = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(torch.nn.Linear(4, 3), (torch.ones(3, 4),), dynamic_shapes=dims)
    torch.export.save(program, folder / "net.pt2")
    return folder / "net.pt2"


def an_estimator(folder: Path) -> Path:
    from sklearn import linear_model, pipeline, preprocessing

    model = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    pytest.importorskip("skops.io").dump(model.fit(ROWS, CLASSES), folder / "net.skops")
    return folder / "net.skops"


def a_saved_model(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    module = tf.Module()
    module.weight = tf.Variable(np.ones((4, 3), np.float32))
    rows = [tf.TensorSpec([None, 4], tf.float32, "x")]
    module.call = tf.function(lambda x: tf.nn.relu(x @ module.weight), input_signature=rows)
    tf.saved_model.save(module, str(folder / "net"))
    return folder / "net"


def a_graph(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    rows = [tf.TensorSpec([None, 4], tf.float32, "x")]
    function = tf.function(lambda x: tf.nn.relu(x @ np.ones((4, 3), np.float32)), input_signature=rows)
    content = function.get_concrete_function().graph.as_graph_def().SerializeToString()
    (folder / "net.pb").write_bytes(content)
    return folder / "net.pb"


def a_tflite_file(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    rows = [tf.TensorSpec([1, 4], tf.float32)]
    function = tf.function(lambda x: tf.nn.relu(x @ np.ones((4, 3), np.float32)), input_signature=rows)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (folder / "net.tflite").write_bytes(converter.convert())
    return folder / "net.tflite"


def a_keras_file(folder: Path) -> Path:
    keras = pytest.importorskip("keras")
    keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, "relu")]).save(folder / "net.keras")
    return folder / "net.keras"


def trees_in(suffix: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        xgboost = pytest.importorskip("xgboost")
        model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(ROWS, CLASSES)
        model.get_booster().save_model(folder / f"net.{suffix}")
        return folder / f"net.{suffix}"

    return made


def trees_as_text(folder: Path) -> Path:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(ROWS, CLASSES)
    model.booster_.save_model(folder / "net.txt")
    return folder / "net.txt"


FORMATS: dict[str, Callable[[Path], Path]] = {
    "skops": an_estimator,
    "SavedModel": a_saved_model,
    "GraphDef": a_graph,
    "TensorFlow Lite": a_tflite_file,
    "Keras": a_keras_file,
    "XGBoost, JSON": trees_in("json"),
    "XGBoost, UBJSON": trees_in("ubj"),
    "LightGBM": trees_as_text,
}


def flipped(content: bytes, dice: random.Random) -> bytes:
    """Bits changed, a part made zero or left out, or the end cut off."""
    data = bytearray(content)
    if not data:
        return content
    start, length = dice.randrange(len(data)), dice.choice([1, 4, 64])
    match dice.choice("bbzlc"):
        case "b":
            for _ in range(dice.choice([1, 1, 8])):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        case "z":
            data[start : start + length] = bytes(len(data[start : start + length]))
        case "l":
            del data[start : start + length]
        case "c":
            del data[start:]
    return bytes(data)


def with_another_field(content: bytes, dice: random.Random) -> bytes:
    """JSON in which a field is missing, or has a value of another type."""
    whole = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            places.append((part, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(whole)
    part, key = dice.choice(places)
    if dice.random() < 0.4:
        del part[key]
    else:
        part[key] = dice.choice(VALUES)
    return json.dumps(whole).encode()


def with_other_parts(content: bytes, dice: random.Random) -> bytes:
    """An archive of which a part is damaged, missing, there twice, or in the place of another."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = [(info, archive.read(info)) for info in archive.infolist()]
    index = dice.randrange(len(parts))
    info, data = parts[index]
    texts = [i for i, (info, _) in enumerate(parts) if info.filename.endswith(".json")]
    match dice.choice("jjjdmts"):
        case "j" if texts:
            index = dice.choice(texts)
            parts[index] = (parts[index][0], with_another_field(parts[index][1], dice))
        case "m":
            del parts[index]
        case "t":
            parts.append((info, data))
        case "s":
            parts[index], parts[0] = (info, parts[0][1]), (parts[0][0], data)
        case _:
            parts[index] = (info, flipped(data, dice))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info, data in parts:
            archive.writestr(info, data)
    return made.getvalue()


def damaged(sample: Path, folder: Path, dice: random.Random) -> Path:
    path = folder / sample.name
    if sample.is_dir():
        shutil.copytree(sample, path)
        file = dice.choice(sorted(part for part in path.rglob("*") if part.is_file()))
        file.write_bytes(flipped(file.read_bytes(), dice))
        return path
    content = sample.read_bytes()
    if zipfile.is_zipfile(sample) and dice.random() < 0.7:
        content = with_other_parts(content, dice)
    elif sample.suffix == ".json" and dice.random() < 0.6:
        content = with_another_field(content, dice)
    else:
        content = flipped(content, dice)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_one_line(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sample = FORMATS[name](tmp_path)
    codes = []
    for number in range(COUNT):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = damaged(sample, folder, random.Random(f"{name} {SEED} {number}"))
        capfd.readouterr()
        codes.append(main(["convert", str(path), "--to", "onnx", "--out", str(folder / "o.onnx"), "--no-verify"]))
        error = capfd.readouterr().err
        assert "defect" not in error and "Traceback" not in error, f"{path}: {error}"
        assert codes[-1] == 0 or sum(line.startswith("onward: ") for line in error.splitlines()) == 1
    assert set(codes) <= {0, 2} and 2 in codes


def test_a_damaged_program_is_one_line(tmp_path: Path) -> None:
    sample = a_program(tmp_path)
    refused = 0
    for number in range(3 * COUNT):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = damaged(sample, folder, random.Random(f"pt2 {SEED} {number}"))
        try:
            read_program(path)
        except OnwardError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused > COUNT


def test_what_a_framework_raises_is_the_files_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that PyTorch opens, and cannot trace: a weight in it has another shape than the op takes."""
    sample = a_program(tmp_path)
    path = tmp_path / "wrong.pt2"
    with zipfile.ZipFile(sample) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("models/model.json"):
                content = content.replace(b'"as_int": 4', b'"as_int": 5')
            new.writestr(name, content)
    assert main(["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "o.onnx")]) == 2
    error = capsys.readouterr().err
    assert "defect" not in error and error.count("onward: ") == 1


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr("net/models/model.json", "[1")
    with pytest.raises(InvalidModelError, match=r"net\.pt2"):
        read_program(path)
