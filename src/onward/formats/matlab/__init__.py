"""A package of MATLAB source that Onward wrote, run by GNU Octave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.formats import Kind, Opened, register
from onward.formats.matching import Declared
from onward.formats.matlab import matfile
from onward.gate import foreign, is_trusted, opens, ordinary, own_source
from onward.runners.calls import Inputs, Outputs

INTERFACE = "interface.json"
LARGEST = 1 << 22
"""Bytes of an interface that are read."""


def recognise(path: Path) -> bool:
    """Whether a folder is a package that Onward wrote."""
    return path.is_dir() and all((path / name).is_file() for name in ("model.m", "load.m", "params.mat", INTERFACE))


def dangers(path: Path) -> Iterator[str]:
    """A package is MATLAB code: nothing is known of what it does, unless Onward wrote it."""
    yield from matfile.dangers(path / "params.mat")
    for source in sorted(path.rglob("*")):
        if source.suffix.lower() not in ("", ".mat", ".json", ".md"):
            yield from foreign(source, "MATLAB")
    for folder in path.rglob("*"):
        if folder.is_dir() and folder.name != "+ops":
            yield f"has a folder {folder.name!r}, of which nothing is known"


def _sources(folder: Path) -> list[Path]:
    """The files that the model is computed by."""
    return [folder / "model.m", folder / "load.m", *sorted((folder / "+ops").glob("*.m"))]


@opens(dangers)
def open_matlab(path: Path) -> Opened:
    from onward.backends.matlab.run import Net, alone

    said = interface(path)
    folder = path.absolute()
    if not folder.name.startswith("+"):
        raise InvalidModelError(f"{path}: the folder of a MATLAB package is named + and what the package is called")
    package = folder.name[1:]
    if is_trusted():
        net = Net(folder.parent, package, said["inputs"], said["outputs"])
    else:  # what lies beside a package, MATLAB and Octave take for functions
        sources = {file.relative_to(folder): own_source(file, "MATLAB") for file in _sources(folder)}
        net = alone(package, sources, folder / "params.mat", said["inputs"], said["outputs"])
    takes = [Declared(s.name, _dtype(s.dtype)) for s in net.inputs]
    names = [side.name for side in net.outputs]

    def run(inputs: Inputs) -> Outputs:
        found = net.values([inputs.get(side.name) for side in net.inputs])
        return dict(zip(names, found, strict=True))

    return Opened(run, takes, names)


def _dtype(name: str) -> ir.DataType | None:
    return None if name == "UNDEFINED" else ir.DataType[name]


def interface(path: Path) -> dict[str, Any]:
    """What a package takes and gives."""
    try:
        with ordinary(path / INTERFACE).open("rb") as file:
            said = json.loads(file.read(LARGEST))
        for side in (*said["inputs"], *said["outputs"]):
            _dtype(side["dtype"])
            if not isinstance(side["name"], str) or side["kind"] not in ("tensor", "sequence", "optional"):
                raise ValueError(side["name"])
            if side["shape"] is not None and not isinstance(side["shape"], list):
                raise ValueError(side["shape"])
        return said  # type: ignore[no-any-return]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidModelError(f"{path / INTERFACE}: it does not say what the package takes and gives") from error


register(Kind("generated MATLAB package", ("octave",), recognise, open_matlab, "a folder with model.m and params.mat"))
