"""The guide of JAX: its code runs, from top to bottom."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guide/from-jax.md"


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    names: dict[str, Any] = {}
    for text in blocks:
        exec(compile(text, "guide", "exec"), names)
    assert (tmp_path / "net.onnx").exists()
    (line,) = re.findall(r"print\(.*\)  # (.*)", PAGE.read_text())
    assert capsys.readouterr().out.strip() == line
