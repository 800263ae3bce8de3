"""A package of generated source, for PyTorch or TensorFlow: model.py, weights.safetensors and perhaps ops.py."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from onward.errors import InvalidModelError
from onward.formats import Kind, Opened, named, register
from onward.formats.matching import Declared
from onward.gate import foreign, is_trusted, opens, ordinary, run_source
from onward.runners.calls import Inputs, Outputs

_COUNT = itertools.count(1)
SIGN = "a folder with model.py and weights.safetensors"
MODULES = ("ops", "model")
"""In the order in which they are executed."""


def _is_package(path: Path) -> bool:
    return (path / "model.py").is_file() and (path / "weights.safetensors").is_file()


def _needs_tensorflow(path: Path) -> bool:
    source = (path / "model.py").read_text(encoding="utf-8", errors="replace")
    return re.search(r"^import tensorflow as tf$", source, re.MULTILINE) is not None


def recognise_torch(path: Path) -> bool:
    return _is_package(path) and not _needs_tensorflow(path)


def recognise_tensorflow(path: Path) -> bool:
    return _is_package(path) and _needs_tensorflow(path)


def dangers(path: Path) -> Iterator[str]:
    """A package is Python code: nothing is known of what it does, unless Onward wrote it."""
    ordinary(path / "weights.safetensors")
    for source in _sources(path):
        yield from foreign(source)


def _sources(path: Path) -> list[Path]:
    """Of its modules those that are there."""
    return [source for name in MODULES if (source := path / f"{name}.py").exists()]


@opens(dangers)
def open_torch(path: Path) -> Opened:
    import torch

    from onward.runners.torch import to_framework, to_numpy

    net = load_package(path)
    names = list(inspect.signature(net.forward).parameters)

    def run(inputs: Inputs) -> Outputs:
        with torch.no_grad():
            found = net(*(to_framework(inputs[name]) for name in names))
        return named(tuple(map(to_numpy, found)) if isinstance(found, tuple) else (to_numpy(found),))

    return Opened(run, [Declared(name) for name in names])


@opens(dangers)
def open_tensorflow(path: Path) -> Opened:
    from onward.runners.tensorflow import from_tensor, to_tensor

    net = load_package(path)
    names = [name for name in inspect.signature(net.__call__).parameters if name != "training"]

    def run(inputs: Inputs) -> Outputs:
        found = net(*(to_tensor(inputs[name], None) for name in names))
        several = found if isinstance(found, tuple) else (found,)
        return named(tuple(from_tensor(value, None) for value in several))

    return Opened(run, [Declared(name) for name in names], notes=_casts(path))


def _casts(path: Path) -> list[str]:
    """What the title of the generated source says to be computed in other dtypes than those of the original."""
    title = ast.get_docstring(ast.parse((path / "model.py").read_text(encoding="utf-8"))) or ""
    return [f"cast: {line.removeprefix('- ')}" for line in title.splitlines() if line.startswith("- ")]


@opens(dangers)
def load_package(path: Path) -> Any:
    """The model of a package, with its weights."""
    module = import_package(path)
    if not callable(getattr(module, "load", None)):
        raise InvalidModelError(f"{path / 'model.py'}: it has no function load()")
    return module.load(path)


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


register(Kind("generated PyTorch package", ("torch",), recognise_torch, open_torch, SIGN))
register(Kind("generated TensorFlow package", ("tensorflow",), recognise_tensorflow, open_tensorflow, SIGN))
