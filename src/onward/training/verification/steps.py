"""One step on both sides from the same weights and state, compared part by part; and what noise allows there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.training.trainable import Trainable
from onward.training.verification.results import Check, Part
from onward.training.verification.source import Array, Batches, Draws, Passed, Source, Tensors
from onward.training.verification.targets import Exported
from onward.verification.compare import compare, is_drowned, measure
from onward.verification.metrics import Error

HOW = "training started one bit off"
MORE = 16
"""How often a step that seems to differ is made once more, one bit off: a number beside an edge, such as that of Relu,
comes to its other side only now and then, and with it come gradients."""
Parts = dict[Part, Tensors]
Errors = Mapping[Part, Mapping[str, Error]]


def parts(before: Trainable, after: Mapping[str, Array], passed: Passed | None = None) -> Parts:
    """What a course of training, or a step of which the passes are known, comes to: of weights, how far they moved."""
    found: Parts = {}
    if passed is not None:
        found = {
            "forward": dict(passed.outputs),
            "loss": {"loss": np.asarray(passed.loss, _dtype(before))},
            "gradient": dict(reversed(passed.gradients.items())),
        }
    found["statistics"] = {name: after[name] for name in before.buffers if name in after}
    found["state"] = {name: after[name] for name in before.state if name in after}
    found["update"] = {name: after[name] - array for name, array in before.parameters.items()}
    order: list[Part] = ["forward", "statistics", "loss", "gradient", "state", "update"]
    return {part: found[part] for part in order if part in found}


def _dtype(trainable: Trainable) -> np.dtype[Any]:
    return next((array.dtype for array in trainable.parameters.values()), np.dtype(np.float32))


def measured(expected: Parts, others: Iterable[Parts]) -> dict[Part, dict[str, Error]]:
    """The noise of each tensor: how far runs that ought to be equal are apart."""
    found: dict[Part, dict[str, Error]] = {part: {} for part in expected}
    for other in others:
        for part, tensors in expected.items():
            for name, error in measure(tensors, other[part]).items():
                found[part][name] = found[part].get(name, Error(how=HOW)) | error
    return found


def rounded_once_more(before: Trainable, expected: Parts, steps: int = 1) -> Parts:
    """The same step, or steps, whose weights are off by a unit in the last place: of a small step from a large weight,
    there is no more in the weight that comes of it, in whichever order it is computed. Units of several steps are of
    either sign."""
    draw = np.random.default_rng(0)
    moved = {}
    for name, update in expected["update"].items():
        unit = np.spacing(np.abs(before.parameters[name])) * math.ceil(math.sqrt(steps))
        moved[name] = update + draw.integers(-1, 2, update.shape, np.int8) * unit
    return {**expected, "update": moved}


def pooled(found: Iterable[Errors]) -> dict[Part, dict[str, Error]]:
    """The largest of each."""
    largest: dict[Part, dict[str, Error]] = {}
    for one in found:
        for part, errors in one.items():
            own = largest.setdefault(part, {})
            for name, error in errors.items():
                own[name] = own.get(name, Error(how=HOW)) | error
    return largest


def judged(step: int, expected: Parts, actual: Parts, noise: Errors) -> list[Check]:
    """Each tensor of each part, in the order of computation."""
    checks = []
    for part, tensors in expected.items():
        own = {name: actual[part][name] for name in tensors if name in actual[part]}
        for result in compare({name: tensors[name] for name in own}, own, noise.get(part)):
            status = "failed" if is_drowned(result) else result.status
            figures = result.metrics.worst, result.tolerance.worst
            if result.metrics.overall * result.tolerance.worst > result.metrics.worst * result.tolerance.overall:
                figures = result.metrics.overall, result.tolerance.overall
            checks.append(Check(step, part, result.name, status, *figures, result.reason))
    return checks


@dataclass
class OneStep:
    """Compares single steps."""

    source: Source
    draws: Draws

    def __call__(self, exported: Exported, start: Trainable, batches: Batches) -> tuple[list[Check], float]:
        """All tensors of the step after `start`, and its loss there; the package is then one step further."""
        number, first = start.step + 1, batches[0]
        expected, noise = self._known(start, batches)
        exported.put(start)
        passed = exported.passed(first, expected["forward"])
        loss = exported.step(batches)
        actual = parts(start, exported.state(), passed)
        checks = judged(number, expected, actual, noise)
        if first_wrong(checks) is not None:
            more = (self._run(source, moved(start), batches) for source, moved in self.draws.more(MORE))
            checks = judged(number, expected, actual, pooled([noise, measured(expected, more)]))
        return checks, loss

    def _known(self, start: Trainable, batches: Batches) -> tuple[Parts, Errors]:
        """What ONNX Runtime makes of a step, and the noise of that."""
        expected = self._run(self.source, start, batches)
        others = [self._run(source, moved(start), batches) for source, moved in self.draws]
        return expected, measured(expected, [*others, rounded_once_more(start, expected)])

    def _run(self, source: Source, start: Trainable, batches: Batches) -> Parts:
        passed = source.passed(start, batches[0])
        source.put(start)
        source.step(batches)
        return parts(start, source.state(), passed)


def first_wrong(checks: Iterable[Check]) -> Check | None:
    return next((check for check in checks if check.status == "different"), None)
