"""What every export of a training ends with: whether it is still the same training."""

from __future__ import annotations

from typing import Any

from onward.errors import RunFailure, UnsupportedError
from onward.training.runtime.divergence import DivergedError
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable
from onward.training.verification.results import verdict
from onward.training.verification.verify import Progress, verify
from onward.verification.check import Verdict

STEPS = 3


def proven(
    trainable: Trainable | Trainer,
    to: str,
    *,
    steps: int = STEPS,
    data: Any = None,
    batch: int = 32,
    progress: Progress = lambda words: None,
) -> Verdict:
    """Whether the training in a framework goes on as on ONNX Runtime, for a few steps."""
    try:
        report = verify(trainable, to, steps=steps, data=data, batch=batch, progress=progress)
    except (UnsupportedError, DivergedError, RunFailure) as error:
        return Verdict("not verified", str(error))
    side = report.sides[0]
    if side.failure and side.refused:
        raise UnsupportedError(side.failure)
    words = f"{side.name} differs from onnxruntime: " if side.status == "different" else ""
    words = f"{words}{verdict(side, report)}" + "".join(f"; {note}" for note in report.notes)
    if report.status == "same":
        return Verdict("verified", words)
    unknown = side.status == "same"  # the noise of training is as large as its loss from the first step on
    return Verdict("not verified" if unknown else "different", words)
