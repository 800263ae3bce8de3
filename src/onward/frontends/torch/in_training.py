"""A module in the mode of training: with dropout as it is there, where the module has some."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onward.errors import UnsupportedError
from onward.frontends.torch.export import explained, exported
from onward.frontends.torch.names import called
from onward.model import Model, load

if TYPE_CHECKING:
    import torch


def exported_to_train(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    trains: bool,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    dynamic: bool,
) -> Model:
    """The model to make trainable.

    A file for inference has batch normalisation in a form that can be trained, but no dropout: where a module draws
    random numbers in training, it is exported in that mode.
    """
    with explained():
        if not trains or not _draws(module, args):
            return exported(module, args, {}, inputs=inputs, outputs=outputs, dynamic_batch=dynamic)
        return _in_training(copy.deepcopy(module).train(), args, inputs, outputs, dynamic)


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


def _in_training(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    dynamic: bool,
) -> Model:
    import torch

    tensors = called(module, args, {}, inputs).tensors
    file = io.BytesIO()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            args,
            file,  # type: ignore[arg-type]
            input_names=list(tensors),
            output_names=None if outputs is None else list(outputs),
            dynamic_axes={name: {0: "batch"} for name, tensor in tensors.items() if tensor.ndim} if dynamic else None,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            dynamo=False,
        )
    model = load(file.getvalue())
    if not any(node.op_type == "Dropout" for node in model.ir.graph):
        raise UnsupportedError("the module draws random numbers in training, but not for dropout")
    return model
