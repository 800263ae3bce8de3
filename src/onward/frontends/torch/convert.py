"""PyTorch to ONNX: a module, an exported program or its file as a model, for inference or with its training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from onward.errors import OnwardError
from onward.frontends.torch.export import exported, positional
from onward.frontends.torch.names import Dynamic
from onward.frontends.torch.original import Original
from onward.gate import trusting
from onward.model import Model
from onward.verification.check import prove_source

if TYPE_CHECKING:
    import torch

    from onward.training.trainable import Trainable

    Source: TypeAlias = torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str]

Inputs = Any
"""A tensor, or a sequence of what the module is called with."""


@overload
def from_torch(
    module: Source,
    args: Inputs = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    trust: bool = False,
    check: bool = True,
) -> Model: ...


@overload
def from_torch(
    module: torch.nn.Module, args: Inputs, loss: Any, optimizer: Any = None, **options: Any
) -> Trainable: ...


@overload
def from_torch(module: torch.nn.Module, args: Inputs, *, optimizer: Any, **options: Any) -> Trainable: ...


def from_torch(
    module: Source,
    args: Inputs = (),
    loss: Any = None,
    optimizer: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    trust: bool = False,
    check: bool = True,
    **options: Any,
) -> Model | Trainable:
    """A PyTorch module as a model for inference; given a loss or an optimizer, as a trainable one.

    `args` and `kwargs` are inputs such as the module is called with. `dynamic` names the dimensions that are open, by
    input: `{"x": {0: "batch"}}`; parts of a nested input are called as in the ONNX file (`pair_0`, `state_h`). Without
    it the first axis of every tensor is the batch, unless `dynamic_batch` is off. An `ExportedProgram`, or a `.pt2`
    file of one, has its inputs and open dimensions already; `dynamic` then gives these names. `trust` lets such a file
    hold code; without it, one that does is refused.

    `translations` says how ops are written that neither PyTorch's exporter nor Onward knows: by overload
    (`torch.ops.mylib.op.default`), an onnxscript function, or one that calls `onnxscript` opsets.

    Unless `check` is false, the model is run beside the module, on the inputs given and where dimensions are open on
    others, and `VerificationError` is raised if they differ.

    Of training, `onward.training.from_torch` says more; the loss is `cross_entropy` and the optimizer `adamw` where
    only one of them is given. The module stays as it is.
    """
    if loss is not None or optimizer is not None:
        from onward.training.capture.torch import from_torch as captured

        if kwargs or dynamic is not None or opset is not None or translations:
            raise OnwardError("kwargs, dynamic, opset and translations are for inference, not for training")
        named: dict[str, Any] = {"input_names": input_names, "output_names": output_names}
        named |= {"dynamic_batch": dynamic_batch}
        return captured(module, args, loss or "cross_entropy", optimizer or "adamw", **named, **options)  # type: ignore[arg-type]
    if options:
        raise OnwardError(f"{sorted(options)[0]} is an option of training: give a loss or an optimizer as well")
    if isinstance(module, str | os.PathLike):
        with trusting(trust):
            module = opened(Path(module))
    model = exported(
        module,
        positional(args),
        dict(kwargs or {}),
        inputs=input_names,
        outputs=output_names,
        dynamic=dynamic,
        dynamic_batch=dynamic_batch,
        opset=opset,
        translations=translations,
    )
    if check:
        original = Original(module, positional(args), dict(kwargs or {}), input_names)
        for data in original.data(model):
            prove_source(model, original.opened, "PyTorch", data)
    return model


def opened(path: Path) -> torch.export.ExportedProgram:
    """The program in a file."""
    from onward.formats.pt2 import read_program, recognise

    if not path.exists():
        raise OnwardError(f"{path}: there is no such file")
    if not recognise(path):
        raise OnwardError(f"{path}: it is no program that `torch.export.save` wrote")
    return read_program(path)
