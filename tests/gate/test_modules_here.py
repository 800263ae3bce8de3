"""Python files in the current folder take no part in anything, unless they are named."""

import subprocess
import sys
from pathlib import Path

import pytest

from onward.cli import main

SHADOWS = ("numpy", "onnx", "onnxruntime", "rich", "torch", "json", "argparse", "site_of_nobody")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    return tmp_path


def test_python_m_onward(here: Path) -> None:
    (here / "model.onnx").write_bytes(b"")
    done = subprocess.run([sys.executable, "-m", "onward", "inspect", "model.onnx"], capture_output=True, text=True)
    assert done.stderr == "onward: model.onnx: it is empty\n"
    assert not (here / "ran").exists()


def test_an_installed_module_comes_first(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "rich:thing", "--to", "onnx", "--out", "net.onnx"]) == 2
    assert "rich.py has the name of a module that comes first" in capsys.readouterr().err
    assert not (here / "ran").exists()


def test_a_file_comes_before_a_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "site_of_nobody:thing").write_bytes(b"")
    assert main(["convert", "site_of_nobody:thing", "--to", "onnx", "--out", "net.onnx"]) == 2
    assert not (here / "ran").exists()
    (here / "site_of_nobody:thing").unlink()
    assert main(["convert", "site_of_nobody:thing", "--to", "onnx", "--out", "net.onnx"]) == 2
    assert (here / "ran").exists()
