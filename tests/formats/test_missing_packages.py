"""What is said where the framework of a file is not installed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from onward.advice.extras import EXTRAS

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
HIDE = """
import contextlib, importlib.abc, io, json, sys

class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

files, hidden = json.loads(sys.argv[1]), set(json.loads(sys.argv[2]))
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in hidden else real(name, package)
sys.meta_path.insert(0, Hide())
from onward.cli import main
import onward

found = {}
for call in json.loads(sys.argv[3]):
    try:
        eval(call)
    except BaseException as error:
        found[call] = f"{type(error).__name__}: {error}"
for file in files:
    for words in (["convert", file, "--to", "onnx", "--out", "out.onnx"], ["verify", file, file]):
        with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.redirect_stdout(io.StringIO()):
            code = main(words)
        found.setdefault(file, []).append([code, told.getvalue()])
print(json.dumps(found))
"""
ARCHIVES = {
    "net.keras": ["config.json", "metadata.json"],
    "forest.skops": ["schema.json"],
    "net.pt2": ["net/archive_format"],
    "module.pt": ["module/data.pkl"],
}
CONTENT = {
    "net.tflite": b"\x00\x00\x00\x00TFL3" + bytes(64),
    "trees.json": b'{"learner": {}}',
    "trees.txt": b"tree\nversion=v4\n",
    "old.h5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "net.pkl": b"\x80\x04N.",
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A file of each kind: only as much of it as it is recognised by."""
    for name, members in ARCHIVES.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, "pt2" if "pt2" in name else "{}")
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/saved_model.pb").write_bytes(b"")
    return [*ARCHIVES, *CONTENT, "saved"]


def said(folder: Path, files: list[str], hidden: list[str]) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = without(hidden, folder, files, [])
    return found


def without(hidden: list[str], folder: Path, files: list[str], calls: list[str]) -> Any:
    """What commands say of files, and calls of functions, where packages are not installed."""
    words = [sys.executable, "-c", HIDE, json.dumps(files), json.dumps(hidden), json.dumps(calls)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


CALLS = {
    "onward.from_torch('net.pt2')": "torch",
    "onward.from_torch(object(), (1,))": "torch",
    "onward.from_torch(object(), (1,), 'cross_entropy')": "torch",
    "onward.from_keras('net.keras')": "tensorflow",
    "onward.from_keras(object())": "tensorflow",
    "onward.from_keras('net.keras', training=True)": "tensorflow",
    "onward.from_tensorflow('saved')": "tensorflow",
    "onward.from_tensorflow(print, [])": "tensorflow",
    "onward.from_tflite('net.tflite')": "tensorflow",
    "onward.from_sklearn('forest.skops')": "sklearn",
    "onward.from_sklearn(object())": "sklearn",
    "onward.from_xgboost('trees.json')": "boosting",
    "onward.from_xgboost(object())": "boosting",
    "onward.from_lightgbm('trees.txt')": "boosting",
    "onward.from_lightgbm(object())": "boosting",
    f"onward.to_torch({str(DIGITS)!r})": "torch",
    f"onward.to_tensorflow({str(DIGITS)!r})": "tensorflow",
    f"onward.to_savedmodel({str(DIGITS)!r}, 'out')": "tensorflow",
    f"onward.to_tflite({str(DIGITS)!r}, 'out.tflite')": "tensorflow",
    f"onward.to_keras({str(DIGITS)!r})": "tensorflow",
    f"onward.verify({str(DIGITS)!r}, 'torch')": "torch",
    f"onward.verify({str(DIGITS)!r}, 'openvino')": "openvino",
    "onward.inspect('net.tflite')": "tensorflow",
    f"onward.convert({str(DIGITS)!r}, to='torch', out='out')": "torch",
    "onward.training.from_torch(object(), (1,))": "torch",
    "onward.training.from_keras(object())": "tensorflow",
    "onward.training.from_tensorflow(print, [])": "tensorflow",
}
"""Every public function that needs a framework, and what brings it."""


def test_every_function_says_what_to_install(tmp_path: Path, files: list[str]) -> None:
    told = without(list(EXTRAS), tmp_path, [], list(CALLS))
    wrong = {call: told.get(call) for call, extra in CALLS.items() if f"onward[{extra}]" not in told.get(call, "")}
    assert not wrong


def test_every_kind_of_file_says_what_to_install(tmp_path: Path, files: list[str]) -> None:
    for file, ways in said(tmp_path, files, list(EXTRAS)).items():
        for code, told in ways:
            assert code == 2 and "is not installed: pip install 'onward[" in told, (file, told)
            assert "defect" not in told and "damaged" not in told and told.count("\n") == 1, (file, told)


def test_one_package_of_several(tmp_path: Path, files: list[str]) -> None:
    """TensorFlow may be there without Keras, and scikit-learn without skops."""
    found = said(tmp_path, ["net.keras", "forest.skops"], ["keras", "skops"])
    assert all("onward[tensorflow]" in told for _, told in found["net.keras"])
    assert all("skops is not installed: pip install 'onward[sklearn]'" in told for _, told in found["forest.skops"])
