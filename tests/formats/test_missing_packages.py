"""What is said where the framework of a file is not installed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from onward.advice.extras import EXTRAS

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

found = {}
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
    words = [sys.executable, "-c", HIDE, json.dumps(files), json.dumps(hidden)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[tuple[int, str]]] = json.loads(done.stdout.splitlines()[-1])
    return found


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
