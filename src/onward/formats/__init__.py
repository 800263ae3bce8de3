"""Models of frameworks, as files or folders, that can be run beside an ONNX model.

Each kind has a file here. A kind is recognised by what is in the file, not by how it is called, and objects in memory
by their class, which is not imported to tell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onward.advice.extras import is_installed, missing, require
from onward.errors import InvalidModelError, UnsupportedError
from onward.formats.matching import Declared, Pairing, Steps
from onward.gate import is_trusted, ordinary, trusting
from onward.gate.files import absent
from onward.graph.slots import Slot, slots
from onward.registry import Registry, import_files
from onward.runners.calls import Inputs, Outputs, Run, failures, plainly
from onward.runners.isolate import Isolated


@dataclass(frozen=True)
class Opened:
    """A model that was read: how it is run, under its own names, and what it says about itself."""

    run: Run
    inputs: list[Declared]
    outputs: list[str] | None = None
    """None where they have no names; they are called '0', '1' and so on then."""
    notes: list[str] = field(default_factory=list)
    """What a reader of a report should know, such as which ops are computed in other dtypes."""
    steps: Mapping[str, Steps] = field(default_factory=dict)
    """Outputs that are integers which stand for numbers."""


@dataclass(frozen=True)
class Kind:
    """A format."""

    name: str
    packages: tuple[str, ...]
    """What runs it, as they are imported; one of them has to be installed."""
    recognise: Callable[[Path], bool]
    """Whether a file or folder, which exists, is of this kind; nothing is executed."""
    open: Callable[[Path], Opened]
    sign: str
    """What it is recognised by, in a few words."""
    classes: Mapping[str, Callable[[Any, Sequence[Declared]], Opened]] = field(default_factory=dict)
    """By the full name of a class: how an object of it is opened, given what the user says of its inputs."""
    needs: tuple[str, ...] = ()
    """What else has to be installed to read a file of it."""

    def check_installed(self, path: Path) -> None:
        """Fail with a word on what to install where a file of it cannot be read for want of that."""
        if not any(map(is_installed, self.packages)):
            raise missing(self.packages[-1], str(path))
        require(*self.needs, what=str(path))


KINDS: Registry[Kind] = Registry("kind of model")


@dataclass(frozen=True)
class Artifact:
    """A model of a framework, ready to run."""

    name: str
    kind: str
    run: Run
    """Takes inputs under the names of another model, in its order: matched by name where names agree, else by place.

    Has a `close` where it runs in a process of its own.
    """
    inputs: list[Slot]
    """What it declares to take; empty where it does not say."""
    outputs: list[str] | None
    """None where they have no names; they are called '0', '1' and so on then."""
    notes: list[str] = field(default_factory=list)
    """What it says about itself, and what was done to inputs to fit, such as 'the input x is fed channels-last'; the
    latter is filled in by running it."""


def register(kind: Kind) -> Kind:
    return KINDS.register(kind.name)(kind)


def kinds() -> list[Kind]:
    """All there are."""
    import_files(__name__)
    return [kind for name in KINDS if (kind := KINDS.get(name))]


def kind_of(path: Path) -> Kind | None:
    if not path.exists():
        return None
    ordinary(path)
    return next((kind for kind in kinds() if kind.recognise(path)), None)


def kind_of_object(model: Any) -> Kind | None:
    """The kind that an object is of, by the nearest of its classes."""
    return next((kind for name in _class_names(model) for kind in kinds() if name in kind.classes), None)


def class_name(model: Any) -> str:
    return _class_names(model)[0]


def _class_names(model: Any) -> list[str]:
    """Of its class and those it is derived from, the nearest first."""
    return [f"{base.__module__}.{base.__qualname__}" for base in type(model).__mro__]


def opened_object(model: Any, inputs: Sequence[Declared] = ()) -> Opened:
    """An object of a framework, under its own names; `inputs` are what the user says that it takes."""
    kind = kind_of_object(model)
    if kind is None:
        raise UnsupportedError(f"Onward does not recognise an object of {class_name(model)} as a model")
    open_it = next(kind.classes[name] for name in _class_names(model) if name in kind.classes)
    with failures(kind.name):
        opened = open_it(model, inputs)
    return replace(opened, run=_Guarded(kind.name, opened.run))


def open_object(model: Any, inputs: Sequence[Declared] = ()) -> Artifact:
    """As `open_artifact`, for an object in memory."""
    kind = kind_of_object(model)
    return as_artifact(type(model).__name__, "" if kind is None else kind.name, opened_object(model, inputs))


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Whether it is a model of a framework that `open_artifact` knows."""
    return kind_of(Path(path)) is not None


def open_artifact(
    path: str | os.PathLike[str], *, isolate: bool = False, seconds: float | None = None, memory: int | None = None
) -> Artifact:
    """Read a model of a framework; in a process of its own when asked, or needed to keep a limit, see `isolate`."""
    path = Path(path)
    kind = kind_of(path)
    if kind is None:
        if not path.exists():
            raise InvalidModelError(absent(path))
        raise InvalidModelError(f"{path}: Onward does not recognise this file; it can run: {', '.join(KINDS)}")
    kind.check_installed(path)
    if isolate or seconds is not None or memory is not None:
        process = Isolated(partial(_open, kind, path.absolute(), is_trusted()), seconds=seconds, memory=memory)
        opened = Opened(process, *process.facts)
    else:
        run, facts = _open(kind, path, is_trusted())
        opened = Opened(run, *facts)
    return as_artifact(str(path), kind.name, opened)


def as_artifact(name: str, kind: str, opened: Opened) -> Artifact:
    """What was opened, so that it takes inputs under the names of another model."""
    notes = list(opened.notes)
    return Artifact(name, kind, _Matched(opened, notes), declared_slots(opened.inputs), opened.outputs, notes)


def in_numbers(artifact: Artifact) -> Run:
    """How a model is run that is to give numbers, where its outputs are integers which stand for such.

    It takes numbers in any case, and gives integers unless it was given numbers for integers of its inputs.
    """
    return artifact.run.in_numbers() if isinstance(artifact.run, _Matched) else artifact.run


def _open(kind: Kind, path: Path, trusted: bool) -> tuple[Run, tuple[Any, ...]]:
    """How to run it, and what it says about itself; whether it is trusted has to reach a process of its own."""
    with failures(kind.name), trusting(trusted):
        opened = kind.open(path)
    return _Guarded(kind.name, opened.run), (opened.inputs, opened.outputs, opened.notes, opened.steps)


@dataclass(frozen=True)
class _Guarded:
    """A run whose failures say what kind of model it is of."""

    kind: str
    run: Run

    def __call__(self, inputs: Inputs) -> Outputs:
        with failures(self.kind):
            return self.run(inputs)

    @property
    def plainly(self) -> Run | None:
        run = plainly(self.run)
        return None if run is None else _Guarded(self.kind, run)


class _Matched:
    """A run under the names of another model."""

    def __init__(self, opened: Opened, notes: list[str], in_numbers: bool = False) -> None:
        self._opened, self._notes, self._in_numbers = opened, notes, in_numbers

    def __call__(self, inputs: Inputs) -> Outputs:
        pairing = Pairing(self._opened.inputs, inputs)
        self._notes += [note for note in pairing.notes if note not in self._notes]
        found = self._opened.run(pairing.inputs)
        if not (pairing.in_steps or self._in_numbers):
            return found
        steps = self._opened.steps
        return {name: steps[name].numbers(value) if name in steps else value for name, value in found.items()}

    def in_numbers(self) -> _Matched:
        return _Matched(self._opened, self._notes, in_numbers=True)

    @property
    def plainly(self) -> Run | None:
        run = plainly(self._opened.run)
        return None if run is None else _Matched(replace(self._opened, run=run), self._notes, self._in_numbers)

    def close(self) -> None:
        if isinstance(self._opened.run, Isolated):
            self._opened.run.close()


def declared_slots(inputs: list[Declared]) -> list[Slot]:
    """What data is made for; nothing unless every input says what it takes."""
    values: list[ir.Value] = []
    for one in inputs:
        if one.dtype is None or one.dims is None:
            return []
        values.append(ir.Value(name=one.name, type=ir.TensorType(one.dtype), shape=ir.Shape(one.dims)))
    return slots(ir.Model(ir.Graph(values, [], nodes=[], opset_imports={"": 18}), ir_version=10))


def named(values: Any, names: list[str] | None = None) -> dict[str, Any]:
    """Outputs by name, or by their place."""
    several = list(values) if isinstance(values, list | tuple) else [values]
    return dict(zip(names or map(str, range(len(several))), several, strict=True))
