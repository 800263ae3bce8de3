"""Cells of MATLAB, whose program is no Python package, and whose folders begin with a plus."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoo_models import net

from onward.advice.extras import is_installed
from onward.zoo.conversions import conversion
from onward.zoo.work import packages


@pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
def test_a_model_becomes_a_package(tmp_path: Path) -> None:
    assert "octave" in packages("matlab", "onnx")
    found = conversion(net(tmp_path / "net.onnx"), "matlab", tmp_path, 120)
    assert found.verdict == "same", found.message
    assert (tmp_path / "+result" / "model.m").exists()
