"""How far a training is from itself: it is started one bit off, several times, and its course is compared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onward.training.trainable import Trainable
from onward.training.verification.results import Check, Part
from onward.training.verification.source import Batches, Course, Draws, Source, one_bit_off
from onward.training.verification.steps import HOW, measured, parts, pooled, rounded_once_more
from onward.training.verification.targets import Exported
from onward.verification.compare import FEW, NOISE_FACTOR, QUIET, WIDEST, floor
from onward.verification.metrics import Error

OWN_DRAWS = 2
"""How often a framework is started one bit off, where it is not within the noise of ONNX Runtime."""
MOST = 10.0
"""How many times the noise of ONNX Runtime that of a framework may be: more is a defect, such as dropout that is on."""
Other = tuple[Trainable, Course]
"""Where a training started, and how it went."""
States = Mapping[int, Mapping[Part, Mapping[str, Error]]]


@dataclass(frozen=True)
class Noise:
    """Of a course of training."""

    losses: list[float]
    """The largest difference up to each step."""
    states: States
    """Of tensors after steps, and before."""
    draws: int
    how: str = HOW


@dataclass(frozen=True)
class Band:
    """How far losses may be off."""

    losses: Sequence[float]
    allowed: list[float]
    chaos: int | None = None
    """The first step at which noise is as large as the loss."""

    @classmethod
    def of(cls, losses: Sequence[float], noise: Noise) -> Band:
        factor = NOISE_FACTOR * math.sqrt(1 + FEW / noise.draws)
        largest = itertools.accumulate((abs(loss) for loss in losses), max)
        scales = [max(abs(loss), QUIET * most) for loss, most in zip(losses, largest, strict=True)]
        least = floor(np.dtype(np.float32))
        allowed = [max(least * scale, factor * own) for scale, own in zip(scales, noise.losses, strict=True)]
        beyond = (i for i, (a, scale) in enumerate(zip(allowed, scales, strict=True), 1) if not a <= WIDEST * scale)
        return cls(losses, allowed, next(beyond, None))

    @property
    def compared(self) -> int:
        return len(self.losses) if self.chaos is None else self.chaos - 1

    def check(self, step: int, loss: float) -> Check:
        error, allowed = abs(loss - self.losses[step - 1]), self.allowed[step - 1]
        if error <= allowed:
            return Check(step, "loss", "loss", "same", error, allowed)
        reason = f"{loss:.7g} instead of {self.losses[step - 1]:.7g}: off by {error:.2g} (allowed {allowed:.2g})"
        return Check(step, "loss", "loss", "different", error, allowed, reason)


def of_source(draws: Draws, trainable: Trainable, each: Sequence[Batches], course: Course) -> Noise:
    def run(source: Source, start: Trainable) -> Other:
        return start, source.course(start, each, list(course.states))

    others = (run(source, moved(trainable)) for source, moved in draws)
    return _noise(trainable, course, others, draws.count)


def of_target(
    exported: Exported, trainable: Trainable, each: Sequence[Batches], course: Course, source: Noise
) -> Noise:
    """That of ONNX Runtime or of a framework, whichever is larger."""

    def run(start: Trainable) -> Other:
        exported.put(start)
        found = Course()
        for number, batches in enumerate(each, 1):
            found.losses.append(exported.step(batches))
            if number in course.states:
                found.states[number] = exported.state()
        return start, found

    others = (run(one_bit_off(trainable, seed)) for seed in range(OWN_DRAWS))
    own = _noise(trainable, course, others, OWN_DRAWS)
    losses = [max(a, min(b, MOST * a)) for a, b in zip(source.losses, own.losses, strict=True)]
    states = {
        number: {
            part: {name: _wider(error, own.states[number][part].get(name)) for name, error in errors.items()}
            for part, errors in found.items()
        }
        for number, found in source.states.items()
    }
    return Noise(losses, states, source.draws, f"{HOW}, on both sides")


def _wider(source: Error, own: Error | None) -> Error:
    if own is None:
        return source
    return replace(
        source,
        worst=max(source.worst, min(own.worst, MOST * source.worst)),
        overall=max(source.overall, min(own.overall, MOST * source.overall)),
    )


def _noise(trainable: Trainable, course: Course, others: Iterable[Other], draws: int) -> Noise:
    differences = [0.0] * len(course.losses)
    states: dict[int, dict[Part, dict[str, Error]]] = {}
    for start, other in others:
        differences = [
            max(known, abs(a - b)) for known, a, b in zip(differences, course.losses, other.losses, strict=True)
        ]
        before: dict[Part, dict[str, Error]] = {}
        for number, state in course.states.items():
            expected = parts(trainable, state)
            rounded = rounded_once_more(trainable, expected, number)
            found = measured(expected, [parts(start, other.states[number]), rounded])
            before = pooled([before, found])
            states[number] = pooled([states.get(number, {}), before])
    return Noise(list(itertools.accumulate(differences, max)), states, draws)
