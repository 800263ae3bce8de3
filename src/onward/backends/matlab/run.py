"""Runs packages of generated MATLAB source in Octave."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onward.backends.matlab import matfile
from onward.backends.matlab.octave.process import COUNT, Process, State, process
from onward.backends.matlab.package import MatlabSource, write_files
from onward.backends.matlab.values import Cells, from_octave, read, to_octave


@dataclass(frozen=True)
class Side:
    """An input or output: its name in the file, and what is known of its type."""

    name: str
    dtype: str
    rank: int | None
    kind: str = "tensor"
    is_squeezed: bool = False
    """Whether it has no dimension of 1, which MATLAB's own arrays do not tell."""


class Net:
    """A package of generated source, with its parameters loaded in Octave."""

    def __init__(self, place: Path, package: str, inputs: Sequence[dict[str, Any]], outputs: Sequence[dict[str, Any]]):
        self.place = place
        self.package = package
        self.inputs = [_side(side) for side in inputs]
        self.outputs = [_side(side) for side in outputs]
        self._octave: Process | None = None
        self._id = f"net{next(COUNT)}"

    def __call__(self, *arguments: Any) -> list[Any]:
        octave = self._ready()
        given, found = octave.folder / f"{self._id}.mat", octave.folder / f"{self._id}.out"
        with given.open("wb") as file:
            matfile.write(file, {"given": list(arguments)})
        try:
            octave.do("onward_run", self._id, str(given), str(found), len(self.outputs))
            with found.open("rb") as file:
                return [read(file) for _ in self.outputs]
        finally:
            given.unlink(missing_ok=True)
            found.unlink(missing_ok=True)

    def values(self, arguments: Sequence[Any]) -> list[Any]:
        """The outputs as the file has them, of inputs as it has them."""
        found = self(*(to_octave(value, None) for value in arguments))
        return [_value(value, side) for value, side in zip(found, self.outputs, strict=True)]

    def _ready(self) -> Process:
        """The process of Octave in which the parameters are."""
        if self._octave is None or not self._octave.is_alive:
            state = _state(self.place / f"+{self.package}")
            self._octave = process(self.package, state)
            self._octave.packages[self.package] = state
            self._octave.do("onward_load", self._id, str(self.place), self.package)
            weakref.finalize(self, self._octave.unread.append, self._id)
        return self._octave


def _state(folder: Path) -> State:
    """Which files a package consists of, and when each was written: Octave may keep what it has read of others."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)


def _side(said: dict[str, Any]) -> Side:
    rank = None if said["shape"] is None else len(said["shape"])
    return Side(said["name"], said["dtype"], rank, said["kind"], said.get("squeezed", False))


def _value(value: Any, side: Side) -> Any:
    if (
        side.kind == "optional"
        and isinstance(value, np.ndarray)
        and value.dtype == np.float64
        and value.shape == (0, 0)
    ):
        return None
    is_nested = isinstance(value, Cells) and (side.dtype != "STRING" or any(isinstance(item, Cells) for item in value))
    if side.kind == "sequence" or is_nested:
        return [from_octave(item, side.dtype, side.rank) for item in value]
    found = from_octave(value, side.dtype, None if side.is_squeezed else side.rank)
    return found.squeeze() if side.is_squeezed else found


def alone(
    package: str, sources: Mapping[Path, bytes], params: Path, inputs: Sequence[dict[str, Any]], outputs: Sequence[Any]
) -> Net:
    """A package in a folder of its own, that has nothing beside it; the parameters stay where they are."""
    place = Path(tempfile.mkdtemp(prefix="onward-"))
    for name, source in sources.items():
        file = place / f"+{package}" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(source)
    try:
        (place / f"+{package}" / params.name).symlink_to(params)
    except OSError:  # Windows keeps links for administrators
        shutil.copyfile(params, place / f"+{package}" / params.name)
    net = Net(place, package, inputs, outputs)
    weakref.finalize(net, shutil.rmtree, place, ignore_errors=True)
    return net


def in_memory(source: MatlabSource) -> Net:
    """The model of a source, in a folder that goes with it."""
    package = next(name for n in COUNT if not re.search(rf"\b{(name := f'net{n}')}\b", source.template))
    place = Path(tempfile.mkdtemp(prefix="onward-"))
    (place / f"+{package}").mkdir()
    write_files(source, place / f"+{package}", package)
    net = Net(place, package, source.inputs, source.outputs)
    weakref.finalize(net, shutil.rmtree, place, ignore_errors=True)
    return net
