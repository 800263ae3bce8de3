"""The sample of a language model: both trainings learn, and what is tuned keeps its bits."""

from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).parents[2]


def test_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples/language")
    from tune import main

    found = main(["--out", str(tmp_path), "--steps", "30"])
    for first, last in found.values():
        assert last < 0.8 * first
    before, after = (
        {tensor.name: tensor for tensor in onnx.load(tmp_path / name).graph.initializer}
        for name in ("bits.onnx", "tuned.onnx")
    )
    codes = [name for name in before if name.endswith("_Q4")]
    assert codes and all(before[name].SerializeToString() == after[name].SerializeToString() for name in codes)
