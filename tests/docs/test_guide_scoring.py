"""The guide of batch scoring does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from onward.cli import parser

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/guide/scoring.md").read_text()


def test_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "scoring.md", "exec"), {})
    (scores,) = np.load("build/scored.npz").values()
    assert scores.shape == (1000, 10)


def test_commands_are_understood() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("onward run ")]
    assert len(lines) == 4
    for line in lines:
        assert parser("run").parse_args(shlex.split(line)[1:]).command == "run"
