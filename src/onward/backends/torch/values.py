"""Values between numpy and generated PyTorch code."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from onward.graph.narrow import BITS

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


def to_numpy(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """The inverse of `to_framework`, in the dtype of the file where generated code holds it in a wider one."""
    return _narrowed(_to_numpy(value), dtype)


def _to_numpy(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if str(value.dtype) in _VIEWS:
            carrier, dtype = _VIEWS[str(value.dtype)]
            return value.contiguous().view(getattr(torch, carrier)).numpy().view(dtype)
        return value.numpy()
    if isinstance(value, list | tuple):
        return [_to_numpy(v) for v in value]
    if isinstance(value, dict):
        return {k: _to_numpy(v) for k, v in value.items()}
    return value


def _narrowed(value: Any, dtype: np.dtype[Any] | None) -> Any:
    if dtype is None or dtype.type not in _WIDER or value is None:
        return value
    if isinstance(value, list):
        return [_narrowed(item, dtype) for item in value]
    return value.astype(dtype)
