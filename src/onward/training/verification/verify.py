"""Proves that a training goes on elsewhere as on ONNX Runtime: the same start and data, compared step by step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onward.advice.nearest import meant
from onward.errors import MissingPackageError, OnwardError, UnsupportedError
from onward.training.recipe.optimizers import Clipped
from onward.training.recipe.schedules import Table, is_own
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable
from onward.training.verification.chance import without_chance
from onward.training.verification.data import batches as batches_of
from onward.training.verification.noise import Band, Noise, of_source, of_target
from onward.training.verification.results import Check, SideResult, TrainingReport
from onward.training.verification.source import Batches, Course, Draws, Source
from onward.training.verification.steps import OneStep, first_wrong, judged, parts
from onward.training.verification.targets import TARGETS, Exported, Target
from onward.verification.environment import environment

Progress = Callable[[str], None]
DRAWS = 4
"""How often training is started one bit off."""
ROOM = 1 << 28
"""Bytes that the states of a course may take; where they take more, they are looked at after fewer steps."""
TRIED = 4
"""Single steps that are compared, between two that were looked at, to find the one that differs."""
SOURCE = "onnxruntime"


def verify(
    model: str | os.PathLike[str] | Trainable | Trainer,
    on: str | Iterable[str] = "torch",
    *,
    steps: int = 50,
    data: Any = None,
    batch: int = 32,
    seed: int = 0,
    index: int | None = None,
    progress: Progress = lambda words: None,
) -> TrainingReport:
    """Train on ONNX Runtime and, from the same start and on the same batches, in the frameworks `on`, and compare.

    `model` is a trainable file, what `prepare` made, or a trainer as it is now. `on` names frameworks: torch, keras,
    tensorflow, jax. Each runs what `onward train export` writes for it, in a process of its own. `data` are arrays by
    name, an .npz file or anything that `fit` takes, cut into batches of `batch`; without it data are made up that fit
    the graph.

    Losses are compared after every step, and weights and states as well, unless they are large. In the first step all
    outputs, gradients and updates are compared. How far anything may be off follows from the noise of the training: how
    far it is from itself if it starts one bit off. Where a framework differs, both are given the same weights and state
    before the first step that does, and the part and the tensor that part first are named.
    """
    names = [name for name in ([on] if isinstance(on, str) else on) if name != SOURCE]
    _check(names, steps)
    began = time.perf_counter()
    given = _read(model, index)
    trainable, notes = without_chance(given)
    if trainable.schedule is not None and is_own(trainable.schedule):
        trainable = replace(trainable, schedule=Table.of(trainable.schedule, trainable.step + steps))
        notes.append("the schedule is a function of your own: the frameworks were given a list of what it gives")
    source = Source(trainable)
    needed = steps * trainable.accumulate
    found, where = batches_of(source.trainer, data, needed, batch, seed)
    each = [found[i : i + trainable.accumulate] for i in range(0, needed, trainable.accumulate)]
    report = TrainingReport(_name(model), steps, where, notes=notes, environment=dict(environment()))
    progress("training on onnxruntime")
    points = _points(trainable, steps)
    course = source.course(trainable, each, points)
    progress("measuring the noise of the training")
    draws = Draws(source, DRAWS)
    noise = of_source(draws, trainable, each, course)
    report.losses, report.noise = course.losses, noise.losses
    band = Band.of(course.losses, noise)
    report.chaos = band.chaos
    if report.chaos is not None:
        report.notes.append(
            f"from step {report.chaos} on, the noise of training is as large as its loss: it is compared up to there"
        )
    for name in names:
        progress(f"training on {name}")
        report.sides.append(_Comparison(source, draws, each, course, noise).of(TARGETS[name]))
    report.seconds = time.perf_counter() - began
    return report


def _check(names: Sequence[str], steps: int) -> None:
    for name in names:
        if name not in TARGETS:
            known = ", ".join([SOURCE, *TARGETS])
            raise OnwardError(f"a training is not exported to {name!r}; there are {known}{meant(name, TARGETS)}")
    if not names:
        raise OnwardError(f"there is nothing to compare with: name a framework beside {SOURCE}, such as torch")
    if steps < 1:
        raise OnwardError(f"steps is {steps}: give at least 1")


def _read(model: Any, index: int | None) -> Trainable:
    if isinstance(model, Trainer):
        return replace(model.continued(), optimizer=_with_rate(model.trainable.optimizer, model.lr))
    if isinstance(model, Trainable):
        return model
    from onward.training.info.read import load

    return load(model, index=index)


def _with_rate(optimizer: Any, lr: float) -> Any:
    if optimizer.lr == lr:
        return optimizer
    if isinstance(optimizer, Clipped):
        return replace(optimizer, inner=_with_rate(optimizer.inner, lr))
    return replace(optimizer, lr=lr)


def _name(model: Any) -> str:
    return Path(model).name if isinstance(model, str | os.PathLike) else "the training"


def _points(trainable: Trainable, steps: int) -> list[int]:
    """After which steps states are looked at: all, or 1, 2, 4 … and the last."""
    groups = (trainable.parameters, trainable.buffers, trainable.state)
    size = sum(array.nbytes for group in groups for array in group.values())
    if size * steps <= ROOM:
        return list(range(1, steps + 1))
    powers = [1 << i for i in range(steps.bit_length()) if 1 << i < steps]
    room = max(2, ROOM // max(size, 1))
    return sorted({*powers[: room - 1], steps})


class _Comparison:
    """Of the training in one framework with that on ONNX Runtime."""

    def __init__(self, source: Source, draws: Draws, each: Sequence[Batches], course: Course, noise: Noise) -> None:
        self._source, self._trainable, self._each = source, source.trainable, each
        self._course, self._noise = course, noise
        self._one_step = OneStep(source, draws)

    def of(self, target: Target) -> SideResult:
        began = time.perf_counter()
        result = SideResult(target.name)
        exported: Exported | None = None
        try:
            exported = Exported(target, self._trainable)
            result = self._compared(exported, target)
        except MissingPackageError:
            raise
        except OnwardError as error:
            result = replace(result, failure=str(error), refused=isinstance(error, UnsupportedError))
        finally:
            if exported is not None:
                exported.close()
        return replace(result, seconds=time.perf_counter() - began)

    def _compared(self, exported: Exported, target: Target) -> SideResult:
        checks, loss = self._one_step(exported, self._trainable, self._each[0])
        found = Course([loss], {1: exported.state()})
        wrong = first_wrong(checks)
        for number, batches in enumerate(self._each[1:], 2):
            found.losses.append(exported.step(batches))
            if number in self._course.states:
                found.states[number] = exported.state()
        noise = self._noise
        own, parted = self._judged(found, noise)
        if parted is not None and wrong is None:
            noise = of_target(exported, self._trainable, self._each, found, noise)
            own, parted = self._judged(found, noise)
        band = Band.of(self._course.losses, noise)
        if wrong is not None:
            parted = 1
        elif parted is not None:
            wrong = self._located(exported, parted, own)
        return SideResult(
            target.name, tuple(found.losses), tuple(band.allowed), (*checks, *own), parted, wrong, noise=noise.how
        )

    def _judged(self, found: Course, noise: Noise) -> tuple[list[Check], int | None]:
        """The loss of each step, and the worst tensor after each that was looked at; the first step that is beyond."""
        band = Band.of(self._course.losses, noise)
        checks: list[Check] = []
        for number, loss in enumerate(found.losses[: band.compared], 1):
            checks.append(band.check(number, loss))
            if checks[-1].status != "different" and number in found.states and number in self._course.states:
                expected = parts(self._trainable, self._course.states[number])
                actual = parts(self._trainable, found.states[number])
                tensors = judged(number, expected, actual, noise.states[number])
                worst = first_wrong(tensors) or max(tensors, key=lambda check: check.closeness, default=None)
                checks += [] if worst is None else [worst]
            if checks[-1].status == "different":
                return checks, number
        return checks, None

    def _located(self, exported: Exported, parted: int, checks: Sequence[Check]) -> Check:
        """The part of a single step that differs, both sides having the same weights and state before it."""
        last = max((point for point in self._course.states if point < parted), default=0)
        between = parted - last
        tried = sorted({last + i * between // TRIED for i in range(TRIED)} | {parted - 1})
        for done in tried:
            start = self._at(done)
            found, _ = self._one_step(exported, start, self._each[done])
            if wrong := first_wrong(found):
                return replace(wrong, step=done + 1)
        seen = next(check for check in reversed(checks) if check.status == "different")
        why = "each single step agrees, but together they part by more than the noise of the training"
        return replace(seen, part="course", reason=f"{seen.reason}; {why}")

    def _at(self, done: int) -> Trainable:
        """The training on ONNX Runtime after so many of the steps."""
        if not done:
            return self._trainable
        known = max((point for point in self._course.states if point <= done), default=0)
        made = self._trainable.step
        start = self._source.at(self._course.states[known], made + known) if known else self._trainable
        if known < done:
            self._source.course(start, self._each[known:done], ())
            start = self._source.at(self._source.state(), made + done)
        return start
