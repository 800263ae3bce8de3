"""A package of generated source of any backend: model.py, weights.safetensors and perhaps ops.py."""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from onward.backends.backend import Backend, backends
from onward.backends.emit.safetensors import bits_of, dtype_of
from onward.errors import InvalidModelError
from onward.formats import Kind, Opened, named, register
from onward.formats.matching import Declared
from onward.gate import foreign, harmless, is_trusted, opens, ordinary, run_source
from onward.runners.calls import Inputs, Outputs

_COUNT = itertools.count(1)
SIGN = "a folder with model.py and weights.safetensors"
TITLE = re.compile(r'""".*: a (.+) model[.,]')
"""Of a generated model.py: its first line says what it is for, after a name that is the file's."""
MODULES = ("ops", "model")
"""In the order in which they are executed."""
TENSORS = ("weights", "constants")


def is_package(path: Path) -> bool:
    return (path / "model.py").is_file() and (path / "weights.safetensors").is_file()


def recognise(path: Path, one: Backend) -> bool:
    """Whether a folder is a package of generated source of this backend, which its title says."""
    if not is_package(path):
        return False
    source = (path / "model.py").read_text(encoding="utf-8", errors="replace")
    title = TITLE.match(source)
    if title is not None and title[1] in {other.title for other in backends()}:
        return title[1] == one.title
    imported = [
        other for other in backends() if re.search(rf"^import {re.escape(other.package)}\b", source, re.MULTILINE)
    ]
    return one in imported or (not imported and one.takes_untitled)


def dangers(path: Path) -> Iterator[str]:
    """A package is Python code: nothing is known of what it does, unless Onward wrote it."""
    for file in _weights(path):
        ordinary(file)
    for source in _sources(path):
        yield from foreign(source)


def _weights(path: Path) -> list[Path]:
    """Of its files of tensors those that are there."""
    return [file for name in TENSORS if (file := path / f"{name}.safetensors").exists()]


def _sources(path: Path) -> list[Path]:
    """Of its modules those that are there."""
    return [source for name in MODULES if (source := path / f"{name}.py").exists()]


@opens(dangers)
def open_package(path: Path, one: Backend) -> Opened:
    net = load_package(path, one)
    names = one.argument_names(net)

    def run(inputs: Inputs) -> Outputs:
        found = one.call(net, [one.to_framework(inputs[name], None) for name in names], ())[0]
        several = found if isinstance(found, tuple) else (found,)
        return named(tuple(one.to_numpy(value, None) for value in several))

    return Opened(run, [Declared(name) for name in names], notes=_casts(path))


def _casts(path: Path) -> list[str]:
    """What the title of the generated source says to be computed in other dtypes than those of the original."""
    title = ast.get_docstring(ast.parse((path / "model.py").read_text(encoding="utf-8"))) or ""
    return [f"cast: {line.removeprefix('- ')}" for line in title.splitlines() if line.startswith("- ")]


@opens(harmless)
def weights_in(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The title of a package, and its weights one by one: nothing of it is executed."""
    from safetensors import SafetensorError, safe_open

    found: list[dict[str, Any]] = []
    for file in map(ordinary, _weights(path)):
        try:
            with safe_open(file, framework="numpy") as opened:
                found += [_weight(name, opened.get_slice(name)) for name in opened.offset_keys()]
        except SafetensorError as error:
            raise InvalidModelError(f"{file}: it is damaged, or is not a file of safetensors: {error}") from error
    first = (path / "model.py").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    return first.strip('"'), found


def _weight(name: str, entry: Any) -> dict[str, Any]:
    code, shape = entry.get_dtype(), entry.get_shape()
    return {"name": name, "dtype": dtype_of(code), "shape": shape, "bytes": math.prod(shape) * bits_of(code) // 8}


@opens(dangers)
def load_package(path: Path, one: Backend | None = None) -> Any:
    """The model of a package, with its weights, as its backend opens it."""
    module = import_package(path)
    if not callable(getattr(module, "load", None)):
        raise InvalidModelError(f"{path / 'model.py'}: it has no function load()")
    return module.load(path) if one is None else one.opened(module, path)


def import_package(path: Path) -> ModuleType:
    """Its model.py, under a name that no other module has, so that any number can be open at once.

    Where the package is trusted, it may import whatever else is in its folder, else only what Onward wrote.
    """
    name = f"onward_package_{next(_COUNT)}"
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(path.absolute())] if is_trusted() else []
    if is_trusted():
        return importlib.import_module(f"{name}.model")
    for source in _sources(path):
        setattr(package, source.stem, run_source(source.absolute(), f"{name}.{source.stem}"))
    return sys.modules[f"{name}.model"]


def _reader(one: Backend) -> tuple[Callable[[Path], bool], Callable[[Path], Opened]]:
    """How a package of a backend is recognised and opened; both can be sent to another process."""
    opener: Any = partial(open_package, one=one)
    opener.dangers = dangers
    return partial(recognise, one=one), opener


for _backend in backends():
    if _backend.writes_packages:
        register(Kind(f"generated {_backend.title} package", (_backend.package,), *_reader(_backend), SIGN))
