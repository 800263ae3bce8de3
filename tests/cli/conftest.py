"""What tests of the command line share."""

from collections.abc import Callable
from typing import Any

import pytest

from onward.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line; gives the exit code, what was printed, and what was printed as an error."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code: Any = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return call
