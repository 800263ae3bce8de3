"""The example of the guide, and what comes with Onward, for a whole file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_state import plugins_restored

from onward.plugins import Plugin, load

LAB = Path(__file__).parents[2] / "examples/plugins/lab.py"


@pytest.fixture(scope="module")
def lab() -> Iterator[Plugin]:
    with plugins_restored():
        load("qonnx.custom_op.general", "ai.onnx.contrib")
        yield load(str(LAB))[0]
