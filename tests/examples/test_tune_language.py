"""The sample of a language model: both trainings learn, and what is tuned keeps its bits."""

from pathlib import Path

import numpy as np
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
    from preferences import main as prefer

    losses = prefer(["--model", str(tmp_path / "bits.onnx"), "--steps", "5"])
    assert losses[0] == pytest.approx(np.log(2), abs=0.02)  # nothing is preferred yet
    assert losses[-1] < 0.9 * losses[0]
