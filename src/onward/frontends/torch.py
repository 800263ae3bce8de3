"""PyTorch to ONNX: a module as a model, for inference or with its training."""

from __future__ import annotations

import copy
import inspect
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from onward.errors import OnwardError, UnsupportedError
from onward.model import Model, load

if TYPE_CHECKING:
    import torch

    from onward.training.trainable import Trainable

Inputs = Any
"""A tensor, or a sequence of what the module is called with."""


@overload
def from_torch(
    module: torch.nn.Module,
    args: Inputs,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = True,
) -> Model: ...


@overload
def from_torch(
    module: torch.nn.Module, args: Inputs, loss: Any, optimizer: Any = None, **options: Any
) -> Trainable: ...


@overload
def from_torch(module: torch.nn.Module, args: Inputs, *, optimizer: Any, **options: Any) -> Trainable: ...


def from_torch(
    module: torch.nn.Module,
    args: Inputs,
    loss: Any = None,
    optimizer: Any = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = True,
    **options: Any,
) -> Model | Trainable:
    """A PyTorch module as a model for inference; given a loss or an optimizer, as a trainable one.

    `args` are inputs such as the module is called with; their first axis is the batch unless `dynamic_batch` is off.
    Of training, `onward.training.from_torch` says more; the loss is `cross_entropy` and the optimizer `adamw` where
    only one of them is given. The module stays as it is.
    """
    named: dict[str, Any] = {"input_names": input_names, "output_names": output_names, "dynamic_batch": dynamic_batch}
    if loss is not None or optimizer is not None:
        from onward.training.capture import from_torch as captured

        return captured(module, args, loss or "cross_entropy", optimizer or "adamw", **named, **options)
    if options:
        raise OnwardError(f"{sorted(options)[0]} is an option of training: give a loss or an optimizer as well")
    return exported(module, positional(args), False, input_names, output_names, dynamic_batch)


def positional(args: Inputs) -> tuple[Any, ...]:
    """What a module is called with, as a tuple."""
    import torch

    return (args,) if isinstance(args, torch.Tensor) else tuple(args)


def exported(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    trains: bool,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    dynamic: bool,
) -> Model:
    """The model with the module's own names for weights, in the mode of training or for inference.

    A file for inference has batch normalisation in a form that can be trained, but no dropout: where a module draws
    random numbers in training, it is exported in that mode.
    """
    import torch

    copied = copy.deepcopy(module)
    own = list(inputs or list(inspect.signature(module.forward).parameters)[: len(args)])
    if len(own) != len(args):
        raise OnwardError(f"there are {len(args)} inputs, but {len(own)} names for them: give input_names")
    named: dict[str, Any] = {"input_names": own, "output_names": None if outputs is None else list(outputs)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if trains and _draws(copied, args):
                return _in_training(copied.train(), args, named, dynamic)
            batch = torch.export.Dim("batch") if dynamic else None
            shapes = tuple({0: batch} if dynamic and isinstance(x, torch.Tensor) and x.ndim else None for x in args)
            program = torch.onnx.export(
                copied.eval(), args, **named, dynamic_shapes=shapes if dynamic else None, optimize=False, verbose=False
            )
        except OnwardError:
            raise
        except Exception as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            reason = f"{type(cause).__name__}: {cause}".strip().splitlines()[0]
            raise OnwardError(f"PyTorch does not export the module: {reason}") from error
    assert program is not None
    return load(program.model_proto)


def _draws(module: torch.nn.Module, args: tuple[Any, ...]) -> bool:
    """Whether the module draws random numbers in training."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        found = False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.found = self.found or torch.Tag.nondeterministic_seeded in func.tags
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), torch.random.fork_rng(), Watch() as watch:  # type: ignore[no-untyped-call]
        copy.deepcopy(module).train()(*args)
    return bool(watch.found)


def _in_training(module: torch.nn.Module, args: tuple[Any, ...], named: Mapping[str, Any], dynamic: bool) -> Model:
    import torch

    names = named["input_names"]
    axes = {name: {0: "batch"} for name, x in zip(names, args, strict=True) if isinstance(x, torch.Tensor) and x.ndim}
    file = io.BytesIO()
    with torch.random.fork_rng():
        torch.onnx.export(
            module,
            args,
            file,  # type: ignore[arg-type]
            input_names=names,
            output_names=named["output_names"],
            dynamic_axes=axes if dynamic else None,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            dynamo=False,
        )
    model = load(file.getvalue())
    if not any(node.op_type == "Dropout" for node in model.ir.graph):
        raise UnsupportedError("the module draws random numbers in training, but not for dropout")
    return model
