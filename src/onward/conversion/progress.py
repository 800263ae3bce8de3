"""The steps of a conversion, and who is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from onward.gate.budget import within

if TYPE_CHECKING:
    from onward.conversion.sources import Original
    from onward.runners.calls import Run
    from onward.verification.check import Verdict
    from onward.verification.results import Report

STEPS = ("reading", "generating source", "verifying", "writing")


class Progress:
    """Is told which step a conversion is at, and what comes of it. This one tells nobody."""

    def step(self, number: int, seconds: float | None = None, what: str = "") -> AbstractContextManager[None]:
        """The step with this number, which may take so long, and `what` it does where that is not what it does else."""
        return limited(number, seconds, what)

    def read(self, original: Original) -> None:
        """The source, as ONNX."""

    def compared(self, report: Report, run: Run | None = None) -> None:
        """What a check found, and how the result that was checked is run, unless it is the ONNX model."""

    def found(self, verdict: Verdict, leg: str) -> None:
        """What a check came to, of one leg of the way: 'Keras model to ONNX', or '' where there is only one."""


@contextmanager
def limited(number: int, seconds: float | None, what: str = "") -> Iterator[None]:
    if seconds is None:
        yield
    else:
        with within(seconds, "it", titled(number, what)):
            yield


def titled(number: int, what: str = "") -> str:
    return f"step {number} of {len(STEPS)}: {what or STEPS[number - 1]}"
