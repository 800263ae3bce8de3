"""Anything that can execute an ONNX model, behind one small interface.

A runner is named `NAME` or `NAME:MODE`, such as `torch`, `torch:compile`, `onnxruntime:unoptimized`. Each has a file
here that registers it; a backend of another package registers its own the same way.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onward.errors import UnsupportedError
from onward.model import Model
from onward.registry import Registry

Inputs = dict[str, Any]
"""By input name: an array, a list of arrays for a sequence, None for an optional that is left out."""
Outputs = Mapping[str, Any]
"""By output name: an array, a list for a sequence, a dict for a map, None for an empty optional."""
Run = Callable[[Inputs], Outputs]


@dataclass(frozen=True)
class Runner:
    """A way to execute models."""

    name: str
    about: str
    """One line for a list of runners."""
    package: str
    """What has to be installed, as it is imported."""
    prepare: Callable[[Model, str], Run]
    """The model, and the mode or '', to a function that runs it; raises `UnsupportedError` for what it cannot run."""
    modes: Mapping[str, str]
    """The modes it knows, each with one line about it; any mode is let through where there is '*'."""

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


RUNNERS: Registry[Runner] = Registry("runner")


def find(name: str) -> tuple[Runner, str]:
    """The runner and mode that `name` stands for, or an error that lists what there is."""
    load_all()
    kind, _, mode = name.partition(":")
    runner = RUNNERS.get(kind)
    if runner is None:
        raise UnsupportedError(f"there is no runner {kind!r}; there are {', '.join(RUNNERS)}")
    if mode and mode not in runner.modes and "*" not in runner.modes:
        raise UnsupportedError(f"{kind} has no mode {mode!r}; it has {', '.join(runner.modes) or 'none'}")
    if not runner.installed:
        raise UnsupportedError(f"the runner {kind!r} needs the package {runner.package}, which is not installed")
    return runner, mode


def prepare(name: str, model: Model) -> Run:
    """A function that runs `model` on the named runner."""
    runner, mode = find(name)
    return runner.prepare(model, mode)


def load_all() -> None:
    """Import the files of this folder, which register what they define; none of them imports its framework yet."""
    from onward.verify.runners import onnxruntime, openvino, reference, torch  # noqa: F401
