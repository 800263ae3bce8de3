"""ONNX's own suite on Octave: some of it, with the exceptions that are known."""

from __future__ import annotations

import pytest

from onward.advice.extras import is_installed
from onward.scoreboard import suite
from onward.scoreboard.exceptions import exceptions, sometimes

STEP = 9
"""Of so many cases one is run: all take minutes, and are measured by `python -m onward.scoreboard.suite matlab`."""


@pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
def test_suite() -> None:
    known = exceptions("matlab")
    assert known.keys() <= suite.cases().keys()
    names = sorted(suite.cases())[::STEP]
    failed = {r.name: r.message for r in suite.run("matlab", names, jobs=1) if r.outcome != "pass"}
    assert not {name: message for name, message in failed.items() if name not in known}
    expected = {name for name, reason in known.items() if name in names and reason not in sometimes("matlab")}
    assert expected <= failed.keys(), f"these pass now and should leave the table: {expected - failed.keys()}"
