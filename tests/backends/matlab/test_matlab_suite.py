"""ONNX's own suite on Octave: some of it, with the exceptions that are known."""

from __future__ import annotations

from pathlib import Path

import matlab_rules
import pytest

from onward.advice.extras import is_installed
from onward.backends.matlab import run
from onward.backends.matlab.package import MatlabSource, write_files
from onward.scoreboard import suite
from onward.scoreboard.exceptions import exceptions, sometimes

octave = pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
STEP = 9
"""Of so many cases one is run: all take minutes, and are measured by `python -m onward.scoreboard.suite matlab`."""
STRICT_STEP = 53
"""Of so many cases one is run by MATLAB's rules."""


@octave
def test_suite() -> None:
    known = exceptions("matlab")
    assert known.keys() <= suite.cases().keys()
    names = sorted(suite.cases())[::STEP]
    failed = {r.name: r.message for r in suite.run("matlab", names, jobs=1) if r.outcome != "pass"}
    assert not {name: message for name, message in failed.items() if name not in known}
    expected = {name for name, reason in known.items() if name in names and reason not in sometimes("matlab")}
    assert expected <= failed.keys(), f"these pass now and should leave the table: {expected - failed.keys()}"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source is written as always, and then held to MATLAB's rules."""

    def write(source: MatlabSource, folder: Path, package: str) -> None:
        write_files(source, folder, package)
        matlab_rules.hold(folder, package)

    monkeypatch.setattr(run, "write_files", write)


@octave
def test_classes_are_joined_as_matlab_allows(held: None) -> None:
    names = [name for name in sorted(suite.cases())[::STRICT_STEP] if name not in exceptions("matlab")]
    failed = {r.name: r.message for r in suite.run("matlab", names, jobs=1) if r.outcome != "pass"}
    assert not failed


@octave
def test_the_rules_are_kept(tmp_path: Path) -> None:
    """What Octave computes and MATLAB does not is an error."""
    from onward.backends.matlab.octave.process import process
    from onward.errors import RunFailure

    folder = tmp_path / "+strict"
    folder.mkdir()
    (folder / "add.m").write_text("function y = add(a, b)\ny = a + b;\nend\n")
    (folder / "run.m").write_text("function run(n)\nstrict.add(int32([1, 2]), ones(1, n));\nend\n")
    matlab_rules.hold(folder, "strict")
    process().do("addpath", str(tmp_path))
    process().do("eval", "strict.run(1)")
    with pytest.raises(RunFailure, match=r"MATLAB has no plus of int32 \[1 2\] and double \[1 2\]"):
        process().do("eval", "strict.run(2)")
