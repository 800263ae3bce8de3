"""Runs a model as generated PyTorch source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.narrow import BITS, dtype_of
from onward.runners.runner import Runner, register

if TYPE_CHECKING:
    import torch

Net = Callable[..., Any]

_VIEWS = {
    "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "torch.float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "torch.float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "torch.float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
    "torch.float8_e8m0fnu": ("uint8", ml_dtypes.float8_e8m0fnu),
}
_WIDER = {*BITS, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn}
"""Dtypes that generated code holds in wider ones."""


def to_framework(value: Any) -> Any:
    """Numpy arrays as tensors; strings stay arrays; sequences and optionals element by element."""
    from onward.backends.torch.load import from_numpy

    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [to_framework(v) for v in value]
    if isinstance(value, dict):
        return {k: v if isinstance(v, str | int | float) else to_framework(v) for k, v in value.items()}
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "OUS" else from_numpy(array)


def to_numpy(value: Any) -> Any:
    """The inverse of `to_framework`."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if str(value.dtype) in _VIEWS:
            carrier, dtype = _VIEWS[str(value.dtype)]
            return value.contiguous().view(getattr(torch, carrier)).numpy().view(dtype)
        return value.numpy()
    if isinstance(value, list | tuple):
        return [to_numpy(v) for v in value]
    if isinstance(value, dict):
        return {k: to_numpy(v) for k, v in value.items()}
    return value


def prepare(model: Model, mode: str) -> Run:
    import torch

    from onward.backends.torch.convert import generate
    from onward.backends.torch.load import run

    net: Net = run(generate(model))
    if mode == "compile":
        net = torch.compile(net)
    elif mode == "export":
        net = _Exported(net, model.ir)
    return runner_of(net, model.ir.graph)


def runner_of(net: Net, graph: ir.Graph) -> Run:
    """Runs a generated module on numpy inputs by name."""
    import torch

    fed = [value.name or "" for value in graph.inputs if not value.is_initializer()]
    outputs = [(value.name or "", dtype_of(value)) for value in graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        if replaced := inputs.keys() - set(fed):
            raise RunFailure(f"the input {min(replaced)!r} has a default, which the generated module keeps as a weight")
        with torch.no_grad():
            found = net(*(to_framework(inputs.get(name)) for name in fed))
        values = found if len(outputs) > 1 else (found,)
        return {name: _narrowed(to_numpy(v), dtype) for (name, dtype), v in zip(outputs, values, strict=True)}

    return run


def _narrowed(value: Any, dtype: np.dtype[Any] | None) -> Any:
    if dtype is None or dtype.type not in _WIDER or value is None:
        return value
    if isinstance(value, list):
        return [_narrowed(item, dtype) for item in value]
    return value.astype(dtype)


class _Exported:
    """Exports a module at its first call; once more when the program turns out not to take other sizes."""

    def __init__(self, net: Any, model: ir.Model) -> None:
        self._net = net
        self._inputs = [value for value in model.graph.inputs if not value.is_initializer()]
        self._program: Net | None = None
        self._shapes: Any = None

    def __call__(self, *args: Any) -> Any:
        import torch

        shapes = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tuple(tensor.shape), args)
        if self._program is not None:
            try:
                return self._program(*args)
            except Exception:
                if shapes == self._shapes:
                    raise
        dynamic = tuple(self._dynamic(value, arg) for value, arg in zip(self._inputs, args, strict=True))
        self._program = torch.export.export(self._net, args, dynamic_shapes=dynamic).module()
        self._shapes = shapes
        return self._program(*args)

    def _dynamic(self, value: ir.Value, arg: Any) -> Any:
        """Which axes of an argument may have other sizes in another call: those that the model does not fix."""
        from torch.export import Dim

        if isinstance(arg, list):
            return [self._dynamic(value, item) for item in arg]
        if not hasattr(arg, "shape"):
            return None
        dims = list(value.shape) if value.shape is not None else [None] * arg.ndim
        return {axis: Dim.AUTO for axis, dim in enumerate(dims) if not isinstance(dim, int)}


def run_module(net: torch.nn.Module, inputs: Inputs, names: Iterable[str]) -> Outputs:
    """Run a generated module on numpy inputs by name."""
    import torch

    names = list(names)
    with torch.inference_mode():
        outputs = net(*(to_framework(value) for value in inputs.values()))
    values = outputs if len(names) > 1 else [outputs]
    return dict(zip(names, map(to_numpy, values), strict=True))


register(
    Runner(
        "torch",
        "PyTorch, as generated source",
        "torch",
        prepare,
        {"compile": "through torch.compile", "export": "through torch.export, as the exported program"},
    )
)
