"""A program that `torch.export.save` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401  so that numpy knows the names of its dtypes
import numpy as np
import onnx_ir as ir

from onward.backends.torch.values import to_framework, to_numpy
from onward.formats import Kind, Opened, named, register
from onward.formats.matching import Declared
from onward.formats.pt2.archive import DAMAGED, OLD_PROGRAM, parts_of
from onward.formats.torch_order import settled
from onward.gate import is_trusted, opens
from onward.gate.archive import archive, is_archive
from onward.gate.files import readable
from onward.runners.calls import Inputs, Outputs

if TYPE_CHECKING:
    import torch


def recognise(path: Path) -> bool:
    """A file of PyTorch 2.8 and later says what it is, those before have a program of a known name."""
    if not is_archive(path):
        return False
    with archive(path) as found:
        kind = next((name for name in found.names if PurePosixPath(name).name == "archive_format"), None)
        return OLD_PROGRAM in found.names or (kind is not None and found.read(kind) == b"pt2")


def open_program(program: torch.export.ExportedProgram, inputs: Sequence[Declared]) -> Opened:
    import torch
    from torch.utils import _pytree as pytree

    module = program.module()
    in_spec = program.call_spec.in_spec
    arguments = program.graph_signature.user_inputs
    names = [argument for argument in arguments if isinstance(argument, str)]

    def run(inputs: Inputs) -> Outputs:
        flat = [to_framework(inputs[arg]) if isinstance(arg, str) else arg for arg in arguments]
        args, kwargs = pytree.tree_unflatten(flat, in_spec)
        with torch.no_grad(), settled():
            return outputs_of(module(*args, **kwargs))

    return Opened(run, _declared(program, names))


def outputs_of(found: Any) -> Outputs:
    """What a module gives, as arrays: those of a dict by name, others by place."""
    import torch
    from torch.utils import _pytree as pytree

    if isinstance(found, dict) and all(isinstance(value, torch.Tensor) for value in found.values()):
        return {str(name): to_numpy(value) for name, value in found.items()}
    return named([to_numpy(value) for value in pytree.tree_leaves(found) if isinstance(value, torch.Tensor)])


def dangers(path: Path) -> Iterable[str]:
    with parts_of(path) as parts:
        yield from parts.dangers()


@opens(dangers)
def read_program(path: Path) -> torch.export.ExportedProgram:
    """As PyTorch opens it, where the file is trusted; else it is read as data, and PyTorch sees what was checked."""
    import torch

    if is_trusted():
        with readable(path, DAMAGED):
            return torch.export.load(path)
    with parts_of(path) as parts:
        return parts.program()


@opens(dangers)
def open_pt2(path: Path) -> Opened:
    return open_program(read_program(path), ())


def _declared(program: torch.export.ExportedProgram, names: list[str]) -> list[Declared]:
    examples = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return [_declare(name, examples.get(name)) for name in names]


def _declare(name: str, example: Any) -> Declared:
    if not hasattr(example, "dtype"):
        return Declared(name)
    dtype = ir.DataType.from_numpy(np.dtype(str(example.dtype).removeprefix("torch.")))
    return Declared(name, dtype, tuple(dim if isinstance(dim, int) else str(dim) for dim in example.shape))


register(
    Kind(
        "exported PyTorch program",
        ("torch",),
        recognise,
        open_pt2,
        "a zip with archive_format pt2",
        {"torch.export.exported_program.ExportedProgram": open_program},
    )
)
