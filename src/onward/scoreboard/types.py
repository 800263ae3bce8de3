"""Types of values as schemas write them, such as `seq(tensor(float16))`, and values turned from one type to another."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, TypeProto

Array = np.ndarray[Any, np.dtype[Any]]

COMMON = ("float", "int64", "bool")
"""The dtypes that every runner may be expected to know."""
EXACT = 2.0**53
"""Integers up to here are the same in double precision."""


def leaf(kind: str) -> str:
    """The dtype inside a type: float16 of `seq(tensor(float16))`."""
    return kind.rpartition("(")[2].rstrip(")")


def with_leaf(kind: str, dtype: str) -> str:
    return kind.replace(f"({leaf(kind)})", f"({dtype})")


def structure(kind: str) -> str:
    """What is around the dtype: `seq(tensor(` of `seq(tensor(float16))`."""
    return kind[: kind.index(leaf(kind))]


def code(dtype: str) -> int:
    return int(TensorProto.DataType.Value(dtype.upper()))


def kind_of(proto: TypeProto) -> str:
    """The type as a schema writes it; '' where there is none."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({TensorProto.DataType.Name(proto.tensor_type.elem_type).lower()})"
        case "sequence_type":
            return f"seq({kind_of(proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({kind_of(proto.optional_type.elem_type)})"
        case _:
            return ""


def tensor_of(proto: TypeProto) -> TypeProto.Tensor | None:
    """The tensor inside a type."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            return proto.tensor_type
        case "sequence_type":
            return tensor_of(proto.sequence_type.elem_type)
        case "optional_type":
            return tensor_of(proto.optional_type.elem_type)
        case _:
            return None


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code(dtype)))
    return found


def has_dtype(array: Array, dtype: str) -> bool:
    if dtype == "string":
        return array.dtype.kind in "OUST"
    return array.dtype == numpy_dtype(dtype)


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "double"))


def convert(value: Any, dtype: str) -> Any:
    """The value in another dtype, with numbers that mean something there: see `_number`."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [convert(item, dtype) for item in value]
    array = np.asarray(value)
    return _strings(array) if dtype == "string" else _numbers(array, dtype)


def _strings(array: Array) -> Array:
    return np.array([str(item) for item in array.ravel()], object).reshape(array.shape)


def _numbers(array: Array, dtype: str) -> Array:
    """Fractions become integers by three times their value, so that not all are 0; nothing leaves the range."""
    target = numpy_dtype(dtype)
    if array.dtype == target:
        return array
    if array.dtype.kind in "OUST":
        array = np.array([_number(str(item)) for item in array.ravel()]).reshape(array.shape)
    if dtype.startswith("complex"):
        return array.astype(np.complex128).astype(target)
    wide = np.real(array).astype(np.float64)
    if dtype == "bool":
        return np.asarray(wide > 0)
    if is_float(dtype):
        limit = ml_dtypes.finfo(target)
        least = float(limit.smallest_normal) if dtype == "float8e8m0" else float(limit.min)
        return np.where(np.isfinite(wide), np.clip(wide, least, float(limit.max)), wide).astype(target)
    if not np.array_equal(wide, np.rint(wide)):
        wide = np.rint(3 * np.nan_to_num(wide, posinf=1, neginf=-1))
    if dtype.startswith("uint"):
        wide = np.abs(wide)
    bounds = ml_dtypes.iinfo(target)
    return np.clip(wide, float(bounds.min), min(float(bounds.max), EXACT)).astype(target)


def _number(text: str) -> float:
    """A number for a string: its own, or one made of its characters."""
    try:
        return float(text)
    except ValueError:
        return float(sum(map(ord, text)) % 7)
