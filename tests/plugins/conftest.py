"""Plugins that tests load are unknown again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.plugins import Plugin, find, load, table

LAB = Path(__file__).parents[2] / "examples/plugins/lab.py"


@pytest.fixture(scope="module")
def lab() -> Iterator[Plugin]:
    """The example of the guide; what comes with Onward is loaded as well."""
    before, modules = set(table.ops()), dict(find._LOADED)
    load("qonnx.custom_op.general", "ai.onnx.contrib")
    shipped = set(table.ops()) - before
    yield load(str(LAB))[0]
    for op in set(table.ops()) - before - shipped:
        table.forget(op)
    find._LOADED.pop(str(LAB), None)
    assert modules.keys() <= find._LOADED.keys()
