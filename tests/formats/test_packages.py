"""Packages are Python code: without `--trust`, only what Onward wrote on this machine is executed."""

import os
import py_compile
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from messages import problem
from onnx import TensorProto, helper, numpy_helper

from onward.cli import main
from onward.gate import is_written, remember

pytest.importorskip("torch")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and a package converted from it that has both model.py and ops.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    nodes = [
        helper.make_node("Add", ["x", "w"], ["y"]),
        helper.make_node("Resize", ["y", "", "scales"], ["z"], mode="cubic", antialias=1),
    ]
    weights = [
        numpy_helper.from_array(np.ones(4, np.float32), "w"),
        numpy_helper.from_array(np.array([1, 0.5], np.float32), "scales"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "net.onnx")
    assert main(["convert", "net.onnx", "--to", "torch", "--out", "net"]) == 0
    assert (tmp_path / "net" / "ops.py").is_file()
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 2
    error = problem(capsys.readouterr().err)
    assert "--trust" in error
    return error


def test_what_was_written_here_is_opened(here: Path) -> None:
    assert main(["verify", "net.onnx", "net"]) == 0
    assert main(["verify", "net.onnx", "net", "--isolate"]) == 0
    shutil.copytree("net", "copy")
    assert main(["verify", "net.onnx", "copy"]) == 0


@pytest.mark.parametrize("name", ["model.py", "ops.py"])
@pytest.mark.parametrize("isolate", [[], ["--isolate"]])
def test_what_was_changed_is_refused(
    name: str, isolate: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = here / "net" / name
    source.write_text(f"open({str(here / 'ran')!r}, 'w')\n{source.read_text()}")
    assert f"net: {name} is Python code" in refused(capsys, "verify", "net.onnx", "net", *isolate)
    assert f"net: {name} is Python code" in refused(capsys, "convert", "net", "--to", "onnx", "--out", "new.onnx")
    assert not (here / "ran").exists()
    assert main(["verify", "net.onnx", "net", "--trust", *isolate]) == 0
    assert (here / "ran").exists()


def test_bytecode_beside_the_source_is_not_executed(here: Path) -> None:
    source = here / "net" / "model.py"
    seen = source.stat()
    other = here / "other.py"
    other.write_text(f"open({str(here / 'ran')!r}, 'w')\n".ljust(seen.st_size - 1, "#") + "\n")
    os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    cached = here / "net" / "__pycache__"
    for level in ("", "opt-1.", "opt-2."):
        py_compile.compile(str(other), str(cached / f"model.{sys.implementation.cache_tag}.{level}pyc"))
    assert main(["verify", "net.onnx", "net"]) == 0
    assert not (here / "ran").exists()


def test_nothing_else_of_the_folder_is_imported(here: Path) -> None:
    for name in ("torch", "safetensors", "os", "math"):
        (here / "net" / f"{name}.py").write_text(f"open({str(here / 'ran')!r}, 'w')\n")
    assert main(["verify", "net.onnx", "net"]) == 0
    assert not (here / "ran").exists()


def test_a_list_that_others_can_write_counts_for_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = here / "data" / "onward" / "written"
    assert [oct(path.stat().st_mode & 0o777) for path in (place.parent, place)] == ["0o700", "0o600"]
    for path, mode in ((place, 0o666), (place.parent, 0o777)):
        before = path.stat().st_mode
        path.chmod(mode)
        refused(capsys, "verify", "net.onnx", "net")
        path.chmod(before)
        assert main(["verify", "net.onnx", "net"]) == 0


def test_no_place_to_keep_the_list(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "file"))
    assert main(["convert", "net.onnx", "--to", "torch", "--out", "new"]) == 0
    refused(capsys, "verify", "net.onnx", "new")
    assert main(["verify", "net.onnx", "new", "--trust"]) == 0


def test_sources_are_remembered_once(here: Path) -> None:
    place = here / "data" / "onward" / "written"
    remember("one\n")
    before = place.read_text()
    remember(b"one\n")
    assert place.read_text() == before
    assert is_written("one\n")
    assert not is_written("one")
