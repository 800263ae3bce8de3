"""A module of PyTorch, in memory or pickled by `torch.save`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from onward.backends.torch.values import to_framework
from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.formats import Kind, Opened, class_name, register
from onward.formats.matching import Declared
from onward.formats.pt2 import outputs_of
from onward.formats.torch_order import settled
from onward.gate import is_trusted, opens
from onward.gate.archive import names_in
from onward.runners.calls import Inputs, Outputs
from onward.runners.undisturbed import evaluated

if TYPE_CHECKING:
    import torch

PICKLE, SCRIPT = "data.pkl", "constants.pkl"
"""What `torch.save` writes, and what a TorchScript program has beside it."""
SHOWN = 3


def recognise(path: Path) -> bool:
    return PICKLE in _names(path)


def _names(path: Path) -> set[str]:
    """Of what is in the archive's one folder."""
    parts = [PurePosixPath(name).parts for name in names_in(path)]
    return {own[1] for own in parts if len(own) == 2}


def dangers(path: Path) -> Iterator[str]:
    """What PyTorch's reader of tensors does not take is not known before it is executed."""
    import torch

    if SCRIPT in _names(path):  # which is not opened at all
        return
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        yield "it is a pickle of more than tensors"


@opens(dangers)
def read_module(path: Path) -> torch.nn.Module:
    """The module that was saved whole, in a file that is trusted; weights alone are opened, but are no model."""
    import torch

    if SCRIPT in _names(path):
        raise UnsupportedError(
            f"{path}: it is a TorchScript program; convert the module it was made of, or a .pt2 file of torch.export"
        )
    try:
        found = torch.load(path, map_location="cpu", weights_only=not is_trusted())
    except Exception as error:
        raise InvalidModelError(f"{path}: PyTorch does not open it: {type(error).__name__}: {error}") from error
    if isinstance(found, torch.nn.Module):
        return found
    if isinstance(found, Mapping):
        names = ", ".join(map(str, list(found)[:SHOWN])) + (", …" if len(found) > SHOWN else "")
        raise OnwardError(
            f"{path}: it holds weights ({names}), and no module to give them to: convert package.module:callable, "
            "a function that makes the module and loads them"
        )
    raise InvalidModelError(f"{path}: it holds an object of {class_name(found)}, which is not a module")


@opens(dangers)
def open_saved(path: Path) -> Opened:
    return open_module(read_module(path), ())


def arguments(module: torch.nn.Module, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """How a module is called with values: by name, where all are names of its parameters, else in their order."""
    known = inspect.signature(module.forward).parameters
    return ([], dict(values)) if all(name in known for name in values) else (list(values.values()), {})


def open_module(module: torch.nn.Module, declared: Sequence[Declared]) -> Opened:
    inputs = list(declared) or [
        Declared(name)
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.default is parameter.empty
    ]

    def run(given: Inputs) -> Outputs:
        args, kwargs = arguments(module, {one.name: to_framework(given[one.name]) for one in inputs})
        with evaluated(module), settled():
            return outputs_of(module(*args, **kwargs))

    return Opened(run, inputs)


register(
    Kind(
        "PyTorch module",
        ("torch",),
        recognise,
        open_saved,
        f"a zip with {PICKLE}, as torch.save writes it",
        {"torch.nn.modules.module.Module": open_module},
    )
)
