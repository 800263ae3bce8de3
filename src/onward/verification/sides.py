"""What can be verified: a model on a runner, or a file of a framework."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from onward import runners
from onward.errors import OnwardError
from onward.formats import is_artifact, open_artifact
from onward.graph.slots import slots
from onward.model import Model, load
from onward.runners import isolated
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.chain import is_chain, prepare_chain
from onward.runners.files import load_to_run

Source: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | Model


@dataclass(frozen=True)
class Options:
    """How models are fed, run and judged; `onward.verify` says what each option means."""

    dims: Mapping[str, int] | None = None
    seed: int = 0
    regimes: Sequence[str] = ("random", "zeros")
    hard: bool = False
    atol: float | None = None
    rtol: float | None = None
    isolate: bool = False
    timeout: float | None = None
    memory: int | None = None
    quick: bool = False
    arbitrate: bool = True

    def __post_init__(self) -> None:
        for name, value in (("atol", self.atol), ("rtol", self.rtol), ("seed", self.seed)):
            if value is not None and not value >= 0:
                raise OnwardError(f"{name} cannot be {value}: give a number that is not negative")
        for name, value in (("timeout", self.timeout), ("memory", self.memory)):
            if value is not None and not value > 0:
                raise OnwardError(f"{name} cannot be {value}: give a number above 0")

    @property
    def is_isolated(self) -> bool:
        """Whether runners are to have processes of their own, as asked for or needed to keep a limit."""
        return self.isolate or self.timeout is not None or self.memory is not None

    def prepare(self, runner: str, model: Model) -> Run:
        """`model` on a runner."""
        if self.is_isolated:
            return isolated(runner, model, seconds=self.timeout, memory=self.memory)
        return runners.prepare(runner, model)


@dataclass(frozen=True)
class Side:
    """Something that can be run."""

    name: str
    run: Run
    model: Model | None = None
    """The ONNX model, for a side that has one: it can be cut into pieces."""
    runner: str = ""
    slots: Sequence[Any] = ()
    """The inputs of a side that has no ONNX model."""
    notes: Sequence[str] = ()
    """What was done to the inputs to fit."""
    seconds: float = 0.0
    """Spent preparing."""
    plainly: Side | None = None
    """The same without the kernels that a framework accelerates it by, where it has others."""

    def __call__(self, inputs: Inputs) -> Outputs:
        return self.run(inputs)

    def close(self) -> None:
        """End its process, if it has one."""
        if close := getattr(self.run, "close", None):
            close()


def read(model: Source) -> Model | str | os.PathLike[str]:
    """An ONNX model, loaded; a file or folder of a framework as it was given."""
    if not isinstance(model, str | os.PathLike):
        return load(model)
    return model if is_artifact(model) or is_chain(Path(model)) else load_to_run(model)


def open_side(
    model: Source, runner: str, how: Options, name: str = "", prepared: Callable[[], Run] | None = None
) -> Side:
    """An ONNX model on a runner, or a file or folder of a framework, ready to run; called `name` in the report.

    `prepared` ends what was begun before to prepare it.
    """
    began = time.perf_counter()
    given = read(model)
    if not isinstance(given, Model):
        if is_chain(Path(given)):
            return _chain(Path(given), how)
        found = open_artifact(given, isolate=how.isolate, seconds=how.timeout, memory=how.memory)
        return Side(
            f"{found.name} ({found.kind})",
            found.run,
            slots=found.inputs,
            notes=found.notes,
            seconds=time.perf_counter() - began,
        )
    run = how.prepare(runner, given) if prepared is None else prepared()
    return Side(name or runner, run, given, runner, seconds=time.perf_counter() - began)


def _chain(path: Path, how: Options) -> Side:
    """A model in parts, run as one."""
    began = time.perf_counter()
    chain, models, run = prepare_chain(path, how.prepare)
    taken = {slot.name: slot for model in reversed(models) for slot in slots(model.ir)}
    declared = [taken[name] for name in chain.inputs if name in taken]
    where = ", ".join(dict.fromkeys(link.runner for link in chain.links))
    return Side(f"{path} (parts on {where})", run, slots=declared, seconds=time.perf_counter() - began)


def label(model: object) -> str:
    """A model's name in a report: its path as it was given, or what is known of it."""
    if isinstance(model, Side):
        return model.name
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    return model.name if isinstance(model, Model) else "the model given"
