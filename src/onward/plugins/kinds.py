"""What a tensor is before it is computed: what `@op.infer` is given, and gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

Dim = int | str | None
_NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}


@dataclass(frozen=True)
class TensorKind:
    """The dtype, the dimensions and, of a small constant, the value of a tensor."""

    dtype: str
    """As ONNX calls it: `float`, `double`, `int64`, `string` …"""
    shape: tuple[Dim, ...] | None = None
    """A size, the name of one that is open, or None for each dimension; None where not even their number is known."""
    value: np.ndarray[Any, Any] | None = None
    """Of a constant of few elements."""

    def like(self, *, dtype: str | None = None, shape: tuple[Dim, ...] | None = None) -> TensorKind:
        """The same with another dtype, or other dimensions."""
        return TensorKind(dtype or self.dtype, self.shape if shape is None else tuple(shape))


def number_of(dtype: str) -> int:
    """ONNX's number of a dtype."""
    number: int | None = {name: n for n, name in _NAMES.items() if n}.get(dtype)
    if number is None:
        raise ValueError(f"there is no dtype {dtype!r}; there are {', '.join(n for k, n in _NAMES.items() if k)}")
    return number


def read(proto: onnx.TypeProto | None, data: Any = None) -> TensorKind | None:
    """A type as ONNX has it; None for one that is not known, or not that of a tensor."""
    if proto is None or not proto.HasField("tensor_type") or not proto.tensor_type.elem_type:
        return None
    tensor = proto.tensor_type
    shape: tuple[Dim, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    found = TensorKind(_NAMES[tensor.elem_type], shape)
    return found if data is None else replace(found, value=onnx.numpy_helper.to_array(data))


def written(kind: TensorKind) -> onnx.TypeProto:
    """The inverse of `read`."""
    if kind.shape is not None:
        shape = [int(d) if isinstance(d, int | np.integer) else d for d in kind.shape]
        return onnx.helper.make_tensor_type_proto(number_of(kind.dtype), shape)
    proto = onnx.TypeProto()
    proto.tensor_type.elem_type = number_of(kind.dtype)
    return proto
