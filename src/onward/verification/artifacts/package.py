"""A package of generated PyTorch source: model.py, weights.safetensors and perhaps ops.py."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import sys
from pathlib import Path
from types import ModuleType

from onward.errors import InvalidModelError
from onward.verification.artifacts import Kind, Opened, named, register
from onward.verification.artifacts.matching import Declared
from onward.verification.runners import Inputs, Outputs
from onward.verification.runners.torch import to_framework, to_numpy

_COUNT = itertools.count(1)


def recognise(path: Path) -> bool:
    return (path / "model.py").is_file() and (path / "weights.safetensors").is_file()


def open_package(path: Path) -> Opened:
    import torch

    module = import_package(path)
    if not callable(getattr(module, "load", None)):
        raise InvalidModelError(f"{path / 'model.py'}: it has no function load()")
    net = module.load(path)
    names = list(inspect.signature(net.forward).parameters)

    def run(inputs: Inputs) -> Outputs:
        with torch.no_grad():
            found = net(*(to_framework(inputs[name]) for name in names))
        return named(tuple(to_numpy(value) for value in found) if isinstance(found, tuple) else (to_numpy(found),))

    return Opened(run, [Declared(name) for name in names])


def import_package(path: Path) -> ModuleType:
    """Its model.py, under a name that no other module has, so that any number can be open at once."""
    name = f"onward_package_{next(_COUNT)}"
    package = ModuleType(name)
    package.__path__ = [str(path.absolute())]
    sys.modules[name] = package
    return importlib.import_module(f"{name}.model")


register(Kind("generated PyTorch package", ("torch",), recognise, open_package))
