"""A module in the mode of training: with dropout as it is there, where the module has some."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onward.errors import UnsupportedError
from onward.frontends.torch.export import explained, exported
from onward.frontends.torch.names import called
from onward.model import Model, load
from onward.plugins.find import load_installed
from onward.plugins.op import CustomOp
from onward.plugins.table import ops

if TYPE_CHECKING:
    import torch

OLDEST = 9
"""The opset from which on PyTorch's older exporter knows what it is told."""


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
        if not trains or not draws(module, args):
            return exported(module, args, {}, inputs=inputs, outputs=outputs, dynamic_batch=dynamic)
        return _in_training(copy.deepcopy(module).train(), args, inputs, outputs, dynamic)


def draws(module: torch.nn.Module, args: tuple[Any, ...]) -> bool:
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
    with torch.random.fork_rng(), warnings.catch_warnings(), _custom_ops():
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
            custom_opsets={op.domain: op.version for op in ops()},
        )
    model = load(file.getvalue())
    if not any(node.op_type == "Dropout" for node in model.ir.graph):
        raise UnsupportedError("the module draws random numbers in training, but not for dropout")
    return model


@contextmanager
def _custom_ops() -> Iterator[None]:
    """Within it, this older exporter knows the ops of PyTorch that plugins know."""
    from torch import onnx

    exporter: Any = onnx
    load_installed()
    known = [(name, op) for op in ops() for name in op.torch_names]
    for name, op in known:
        exporter.register_custom_op_symbolic(name, _writer(name, op), OLDEST)
    try:
        yield
    finally:
        for name, _ in known:
            exporter.unregister_custom_op_symbolic(name, OLDEST)


def _writer(name: str, op: CustomOp) -> Callable[..., Any]:
    def write(graph: Any, *arguments: Any) -> Any:
        from torch.onnx import symbolic_helper

        constant: Any = symbolic_helper._get_const
        if not op.is_called_plainly(name):
            raise UnsupportedError(
                f"{name} has a translation of its own, which a module with dropout cannot be trained by"
            )
        tensors, others = arguments[: len(op.inputs)], arguments[len(op.inputs) :]
        kinds = [{float: "f", str: "s"}.get(one.kind, "i") + ("s" if one.is_list else "") for one in op.attributes]
        given = zip(op.attributes, kinds, others, strict=False)
        attributes = {f"{one.name}_{kind[0]}": constant(v, kind, one.name) for one, kind, v in given}
        count = sum(1 for one in op.outputs if one.option != "?")
        return graph.op(op.key, *tensors, **attributes, outputs=count)

    return write
