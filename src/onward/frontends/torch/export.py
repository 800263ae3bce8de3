"""A call of PyTorch's own exporter, with our translations beside its own."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.advice.extras import require
from onward.errors import OnwardError, UnsupportedError
from onward.frontends.opset import written_opset
from onward.frontends.runtime_kernels import keep_pads, keep_sums, keep_vectors
from onward.frontends.torch.decompositions import prepared
from onward.frontends.torch.loops import as_scans
from onward.frontends.torch.names import Dynamic, always, called, name_dims, name_outputs, open_dims
from onward.frontends.torch.rules import expand, own_translations
from onward.frontends.torch.torchlib import read_once
from onward.gate import trusting
from onward.gate.files import absent
from onward.graph.trained import record
from onward.model import Model

if TYPE_CHECKING:
    import torch

LACKS = re.compile(r"<OpOverload\(op='(?P<op>[^']+)', overload='(?P<overload>[^']+)'\)>")
"""How PyTorch names an op that it has no way to write."""
FIXED = re.compile(r"inferred a static shape of (?P<size>\d+) for dimension inputs(?P<path>.*)\.shape\[(?P<axis>\d+)\]")
"""How PyTorch says that a dimension is not open after all."""
UNTRACED = "UnsupportedOperatorException"
"""Of an op that cannot be traced, whose name is all that it says."""
_ONE = RLock()
"""Held while PyTorch exports: what is changed in it for that time is there for all threads."""


def positional(args: Any) -> tuple[Any, ...]:
    """What a module is called with, as a tuple; a dict is one input."""
    import torch

    return (args,) if isinstance(args, torch.Tensor | Mapping) else tuple(args)


def opened(
    source: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str], trust: bool
) -> torch.nn.Module | torch.export.ExportedProgram:
    """A module or a program as it is, or the program in a file."""
    from onward.formats.pt2 import read_program, recognise

    if not isinstance(source, str | os.PathLike):
        return source
    path = Path(source)
    if not path.exists():
        raise OnwardError(absent(path))
    if not recognise(path):
        raise OnwardError(f"{path}: `torch.export.save` did not write this file; give one that it wrote")
    with trusting(trust):
        return read_program(path)


OLDEST = 18
"""The oldest opset that PyTorch's exporter writes."""


def exported(
    module: torch.nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
) -> Model:
    """The model for inference, with the module's own names for weights, at the opset or a later one."""
    require("onnxscript", what="PyTorch's exporter")
    import torch

    if opset is not None:
        written_opset(opset)
    wanted = dynamic or {}
    how: dict[str, Any] = {"input_names": inputs}
    if isinstance(module, torch.nn.Module):
        if not args and not kwargs:
            raise OnwardError("give inputs such as the module is called with: from_torch(module, args)")
        call = called(module, args, kwargs, inputs)
        if dynamic is None and dynamic_batch:
            wanted = {name: {0: "batch"} for name, tensor in call.tensors.items() if tensor.ndim}
        how = {"args": args, "kwargs": call.kwargs, "dynamic_shapes": open_dims(call, wanted)}
        how["input_names"] = list(call.tensors)
    elif args or kwargs:
        raise OnwardError("an exported program has its inputs already; `dynamic` gives names to open dimensions")
    table = own_translations() | dict(translations or {})
    with _ONE, _quietly(module), explained(), prepared(table), read_once(), as_scans(module):
        program = torch.onnx.export(
            module,
            **how,
            output_names=None if outputs is None else list(outputs),
            opset_version=None if opset is None or opset < OLDEST else opset,
            custom_translation_table=table,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    model = Model(_kept(program.model))
    record(model.ir, _trained(module, program))
    keep_pads(model.ir)
    keep_vectors(model.ir)
    keep_sums(model.ir)
    if outputs is None and program.exported_program is not None:
        name_outputs(model.ir.graph, program.exported_program)
    name_dims(model.ir, wanted)
    expand(model.ir)
    return model


@contextmanager
def _quietly(module: Any) -> Iterator[None]:
    """Without warnings, and with all of a module in the mode of evaluation until it is done."""
    import torch

    parts = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    modes = [part.training for part in parts]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in parts:
                part.training = False
            yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


@contextmanager
def explained() -> Iterator[None]:
    """Whatever PyTorch says, in one line that names the op where it lacks one."""
    try:
        yield
    except OnwardError:
        raise
    except Exception as error:
        causes = [error, *_causes(error)]
        for cause in causes:
            if isinstance(cause, OnwardError):
                raise type(cause)(str(cause).partition("\n")[0]) from error
            if lacks := LACKS.search(str(cause)):
                name = f"{lacks['op']}.{lacks['overload']}".removesuffix(".default")
                raise UnsupportedError(
                    f"there is no translation of {name} to ONNX; a plugin or `translations` takes one of your own"
                ) from error
            if fixed := FIXED.search(str(cause)):
                name = "_".join(re.findall(r"\w+", fixed["path"]))
                raise OnwardError(always(name, int(fixed["axis"]), fixed["size"])) from error
            if type(cause).__name__ == UNTRACED:
                raise UnsupportedError(f"PyTorch cannot trace {cause}, so it cannot be converted") from error
        lines = f"{type(causes[-1]).__name__}: {causes[-1]}".strip().splitlines()
        reason = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
        raise OnwardError(f"PyTorch does not export the module: {reason}") from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


def _trained(module: Any, program: Any) -> dict[str, bool]:
    """The module's state dict: whether each of its tensors is trained."""
    import torch

    if isinstance(module, torch.nn.Module):
        names, parameters = module.state_dict(), module.named_parameters(remove_duplicate=False)
    else:
        names, parameters = program.exported_program.state_dict, program.exported_program.named_parameters()
    return dict.fromkeys(names, False) | {name: parameter.requires_grad for name, parameter in parameters}


def _kept(model: ir.Model) -> ir.Model:
    """The model with copies of the weights, so that it stays as it is when the module is trained on."""
    copies: dict[int, ir.TensorProtocol] = {}
    for value in model.graph.initializers.values():
        tensor = value.const_value
        assert tensor is not None
        if id(tensor) not in copies:
            copies[id(tensor)] = ir.Tensor(np.array(tensor.numpy()), dtype=tensor.dtype, name=value.name)
        value.const_value = copies[id(tensor)]
    for node in model.graph.all_nodes():
        node.meta.clear()
    return model
