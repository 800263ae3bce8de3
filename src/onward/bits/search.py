"""Which layers stay as they are, so that a model in fewer bits is as good as was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from onward.errors import OnwardError, VerificationError
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification.compare import measure

One = TypeVar("One")

LABELS = "labels"
"""The array in a file of samples that says what the right class of each row is."""


@dataclass(frozen=True)
class Judge:
    """How much worse a model is than the original: the share of rows that it gets wrong more, or the error of outputs.

    Losses are shares: 0.01 is one in a hundred.
    """

    samples: Sequence[Inputs]
    expected: Sequence[Outputs]
    labels: Sequence[Any] | None = None

    @property
    def what(self) -> str:
        return "accuracy" if self.labels is not None else "the outputs"

    def loss(self, run: Run) -> float:
        found = [run(inputs) for inputs in self.samples]
        if self.labels is not None:
            counts = [_right(outputs, self.labels) for outputs in (self.expected, found)]
            return (counts[0][0] - counts[1][0]) / max(counts[0][1], 1)
        return max(
            error.overall
            for one, other in zip(self.expected, found, strict=True)
            for error in measure(one, other).values()
        )


def accuracy(outputs: Sequence[Outputs], labels: Sequence[Any]) -> float:
    """The share of rows whose largest score is that of their label, in the first output that has scores."""
    right, rows = _right(outputs, labels)
    return right / max(rows, 1)


def _right(outputs: Sequence[Outputs], labels: Sequence[Any]) -> tuple[int, int]:
    """How many rows are right, and how many there are."""
    right = rows = 0
    for found, wanted in zip(outputs, labels, strict=True):
        scores = next((np.asarray(v) for v in found.values() if np.ndim(v) == 2 and len(v) == len(wanted)), None)
        if scores is None:
            raise OnwardError("no output has a row of scores for each label: labels are for models that classify rows")
        right += int(np.count_nonzero(scores.argmax(axis=1) == np.asarray(wanted).reshape(-1)))
        rows += len(scores)
    return right, rows


def fewest_left(ranked: Sequence[str], made: Callable[[Sequence[str]], float], most: float) -> tuple[list[str], float]:
    """The first layers of `ranked`, the most sensitive first, that have to stay for a loss of at most `most`.

    `made` says what is lost where these stay. The number is found by bisection, after doubling it until it is enough.
    """
    loss = made([])
    if loss <= most:
        return [], loss
    low, high = 0, 1
    while (loss := made(ranked[:high])) > most:
        if high >= len(ranked):
            raise VerificationError(
                f"even with all of its layers in floats {100 * loss:.3g} % are lost, and {100 * most:.3g} % allowed"
            )
        low, high = high, min(2 * high, len(ranked))
    best = loss
    while high - low > 1:
        middle = (low + high) // 2
        loss = made(ranked[:middle])
        low, high, best = (low, middle, loss) if loss <= most else (middle, high, best)
    return list(ranked[:high]), best


def ranked_by(layers: Iterable[One], loss: Callable[[One], float]) -> list[One]:
    """What loses most first."""
    return sorted(layers, key=lambda one: -loss(one))
