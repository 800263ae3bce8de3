"""Models of frameworks, as files or folders, that can be run beside an ONNX model.

Each kind has a file here. A kind is recognised by what is in the file, not by how it is called.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.registry import Registry
from onward.verification.artifacts.matching import Declared, Pairing
from onward.verification.isolate import Isolated
from onward.verification.runners import Inputs, Outputs, Run, failures
from onward.verification.sizes import Slot, slots


@dataclass(frozen=True)
class Opened:
    """A model that was read: how it is run, under its own names, and what it says about itself."""

    run: Run
    inputs: list[Declared]
    outputs: list[str] | None = None
    """None where they have no names; they are called '0', '1' and so on then."""


@dataclass(frozen=True)
class Kind:
    """A format."""

    name: str
    packages: tuple[str, ...]
    """What runs it, as they are imported; one of them has to be installed."""
    recognise: Callable[[Path], bool]
    """Whether a file or folder, which exists, is of this kind; nothing is executed."""
    open: Callable[[Path], Opened]


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
    """What was done to inputs to fit, such as 'the input x is fed channels-last'; filled in by running it."""


def register(kind: Kind) -> Kind:
    return KINDS.register(kind.name)(kind)


def kind_of(path: Path) -> Kind | None:
    from onward.verification.artifacts import keras, package, pt2, saved_model, tflite  # noqa: F401

    if not path.exists():
        return None
    return next((kind for name in KINDS if (kind := KINDS.get(name)) and kind.recognise(path)), None)


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
            raise InvalidModelError(f"{path}: there is no such file or folder")
        raise InvalidModelError(f"{path}: it is none of the kinds of model that can be run: {', '.join(KINDS)}")
    if not any(map(importlib.util.find_spec, kind.packages)):
        needed = " or ".join(kind.packages)
        raise UnsupportedError(f"{path}: to run this {kind.name}, the package {needed} has to be installed")
    if isolate or seconds is not None or memory is not None:
        process = Isolated(partial(_open, kind, path.absolute()), seconds=seconds, memory=memory)
        opened = Opened(process, *process.facts)
    else:
        run, facts = _open(kind, path)
        opened = Opened(run, *facts)
    notes: list[str] = []
    return Artifact(str(path), kind.name, _Matched(opened, notes), declared_slots(opened.inputs), opened.outputs, notes)


def _open(kind: Kind, path: Path) -> tuple[Run, tuple[list[Declared], list[str] | None]]:
    """How to run it, and what it says about itself."""
    with failures(kind.name):
        opened = kind.open(path)

    def run(inputs: Inputs) -> Outputs:
        with failures(kind.name):
            return opened.run(inputs)

    return run, (opened.inputs, opened.outputs)


class _Matched:
    """A run under the names of another model."""

    def __init__(self, opened: Opened, notes: list[str]) -> None:
        self._opened, self._notes = opened, notes

    def __call__(self, inputs: Inputs) -> Outputs:
        pairing = Pairing(self._opened.inputs, inputs)
        self._notes += [note for note in pairing.notes if note not in self._notes]
        return self._opened.run(pairing.inputs)

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
