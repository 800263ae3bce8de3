"""Runs generated source in memory: what `to_torch` returns is what `convert` writes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import torch

from onward.backends.emit.execute import execute
from onward.backends.torch.target import DTYPES

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.backends.emit.weights import Tensor


def run(source: Source) -> torch.nn.Module:
    """Execute the generated modules and fill in the weights."""
    module = execute(source).model
    with torch.device("meta"), getattr(module, "Uninitialized", nullcontext)():
        model: torch.nn.Module = module.Model()
    module.fill(model, {path: to_tensor(t) for path, t in source.tensors.items()})
    return model.eval()


_REINTERPRET = {
    np.dtype(ml_dtypes.bfloat16): np.int16,
    np.dtype(ml_dtypes.float8_e4m3fn): np.uint8,
    np.dtype(ml_dtypes.float8_e4m3fnuz): np.uint8,
    np.dtype(ml_dtypes.float8_e5m2): np.uint8,
    np.dtype(ml_dtypes.float8_e5m2fnuz): np.uint8,
    np.dtype(ml_dtypes.float8_e8m0fnu): np.uint8,
}
_WIDEN = {
    np.dtype(ml_dtypes.int4): np.int8,
    np.dtype(ml_dtypes.int2): np.int8,
    np.dtype(ml_dtypes.uint4): np.uint8,
    np.dtype(ml_dtypes.uint2): np.uint8,
    np.dtype(ml_dtypes.float4_e2m1fn): np.float32,
    np.dtype(ml_dtypes.float6_e2m3fn): np.float32,
    np.dtype(ml_dtypes.float6_e3m2fn): np.float32,
}


def from_numpy(data: np.ndarray) -> torch.Tensor:
    """A tensor with its own copy of `data`, for every dtype of ONNX but strings."""
    if data.dtype in _WIDEN:
        return torch.from_numpy(data.astype(_WIDEN[data.dtype]))
    view = _REINTERPRET.get(data.dtype)
    if view is None:
        plain = np.dtype(data.dtype.str)  # numpy has two names for 64 bits, of which PyTorch knows one
        return torch.from_numpy(np.array(data, order="C").view(plain))
    name = {np.dtype(ml_dtypes.bfloat16): "bfloat16"}.get(data.dtype, data.dtype.name)
    return torch.from_numpy(np.array(data, order="C").view(view)).view(getattr(torch, name))


def to_tensor(tensor: Tensor) -> torch.Tensor:
    found = from_numpy(tensor.read())
    assert found.dtype == getattr(torch, DTYPES[tensor.dtype]), (found.dtype, tensor.dtype)
    return found
