"""The guide to custom ops does what it says, line by line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_state import plugins_restored

from onward.cli import main
from onward.plugins import CustomOp, find, load
from onward.plugins.check import check
from onward.plugins.trial import model_of, trial

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/guide/custom-ops.md").read_text()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    with plugins_restored():
        yield tmp_path


def test_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (gelu,) = (op for op in load("examples/plugins/lab.py")[0].ops if op.name == "FancyGelu")
    model_of(gelu, trial(gelu)).save(folder / "build/gelu.onnx")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    assert (folder / "build/gelu/model.py").exists()


def test_python_runs(folder: Path) -> None:
    made: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "custom-ops.md", "exec"), made)
    solve = made["solve"]
    assert isinstance(solve, CustomOp)
    found = {finding.what: finding.ok for finding in check([solve])}
    assert found["gradient ↔ finite differences"] and found["numpy ↔ onnxruntime"] and found["inference"]
    assert False not in found.values()


def test_it_names_what_there_is() -> None:
    for name in re.findall(r"`@?op\.(\w+)", TEXT):
        assert hasattr(CustomOp, name), name
    shown = {
        domain
        for row in re.findall(r"^\| (`[^|]*`) \|", TEXT, re.MULTILINE)
        for domain in re.findall(r"`([\w.]+)`", row)
    }
    assert find.SHIPPED.keys() <= shown
