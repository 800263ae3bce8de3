"""Runs a model as generated PyTorch source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch

from onward.backends.torch.convert import to_torch
from onward.backends.torch.load import from_numpy
from onward.verify.compare import Outputs
from onward.verify.data import Inputs

_VIEWS = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
    torch.float8_e8m0fnu: (torch.uint8, ml_dtypes.float8_e8m0fnu),
}


def to_framework(value: Any) -> Any:
    """Numpy arrays as tensors; strings stay arrays; sequences and optionals element by element."""
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
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype in _VIEWS:
            carrier, dtype = _VIEWS[value.dtype]
            return value.contiguous().view(carrier).numpy().view(dtype)
        return value.numpy()
    if isinstance(value, list | tuple):
        return [to_numpy(v) for v in value]
    if isinstance(value, dict):
        return {k: to_numpy(v) for k, v in value.items()}
    return value


_NARROW = {
    onnx.TensorProto.INT4: ml_dtypes.int4,
    onnx.TensorProto.UINT4: ml_dtypes.uint4,
    onnx.TensorProto.INT2: ml_dtypes.int2,
    onnx.TensorProto.UINT2: ml_dtypes.uint2,
    onnx.TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    onnx.TensorProto.FLOAT6E2M3: ml_dtypes.float6_e2m3fn,
    onnx.TensorProto.FLOAT6E3M2: ml_dtypes.float6_e3m2fn,
}


def prepare(model: onnx.ModelProto) -> Callable[[list[Any]], list[Any]]:
    """A function from numpy inputs, in order, to numpy outputs, in order."""
    net = to_torch(model)
    narrow = [_NARROW.get(v.type.tensor_type.elem_type) for v in model.graph.output]

    def run(inputs: list[Any]) -> list[Any]:
        with torch.no_grad():
            outputs = net(*map(to_framework, inputs))
        values = [to_numpy(v) for v in (outputs if len(narrow) > 1 else (outputs,))]
        return [v if t is None else v.astype(t) for v, t in zip(values, narrow, strict=True)]

    return run


def run_module(net: torch.nn.Module, inputs: Inputs, names: Iterable[str]) -> Outputs:
    """Run a generated module on numpy inputs by name."""
    names = list(names)
    with torch.inference_mode():
        outputs = net(*(to_framework(value) for value in inputs.values()))
    values = outputs if len(names) > 1 else [outputs]
    return dict(zip(names, map(to_numpy, values), strict=True))
