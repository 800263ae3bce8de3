"""The tour of JAX does what it says, line by line."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from onward.backends.jax.convert import generate
from onward.cli import main
from onward.model import load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/guide/to-jax.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SHOWN, EXECUTED = ([block for block in BLOCKS if block.startswith("def ") == wanted] for wanted in (True, False))
GLOBAL = "jax.config.update"
"""What would change JAX for the tests that follow."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_generated_code_is_real() -> None:
    assert len(SHOWN) == 1 and SHOWN[0] in generate(load(ROOT / "examples/digits/digits.onnx")).model


def test_python_runs(folder: Path) -> None:
    made: dict[str, object] = {}
    for block in EXECUTED:
        if not block.startswith(GLOBAL):
            exec(compile(block, "to-jax.md", "exec"), made)
    assert float(made["value"]) < 1  # type: ignore[arg-type]
    assert (folder / "build/digits/constants.safetensors").exists() and (folder / "build/checkpoint").is_dir()


def test_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    assert (folder / "build/digits.mlir").exists()
