"""The tour of data processing: its commands and its code run, from top to bottom."""

import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")
pytest.importorskip("xgboost")

from onward.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/guide/data-processing.md", ROOT / "docs/reference/columns.md"]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    word, *arguments = shlex.split(line, comments=True)
    if word == "python":
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        assert word == "onward"
        assert main(arguments) == 0, line


def test_the_tour_and_the_contract_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = [block for page in PAGES for block in BLOCK.findall(page.read_text())]
    assert len(blocks) > 10
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, "tour", "exec"), names)
        else:
            for line in text.splitlines():
                run_command(line, monkeypatch)
    for made in ("features.onnx", "prep.onnx", "all.onnx", "model.onnx", "all/model.py"):
        assert (tmp_path / "build" / made).exists(), made
