"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from onward.backends.torch.convert import generate
from onward.model import load

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_generated_code_is_real() -> None:
    shown = [block for block in BLOCKS if block.startswith("class ")]
    assert len(shown) == 1 and shown[0] in generate(load(ROOT / "examples/digits/digits.onnx")).model


def test_python_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    shown = [block for block in BLOCKS if block.startswith("import onward")]
    assert len(shown) == 1
    made: dict[str, object] = {}
    exec(shown[0], made)
    assert (tmp_path / "build/copy.onnx").stat().st_size > 100_000
    assert [name for name, p in made["head"].named_parameters() if p.requires_grad] == ["head.weight", "head.bias"]
