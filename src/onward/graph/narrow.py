"""Arrays of the dtypes that runtimes and numpy have no common word for, as the bytes that both mean."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

Array = np.ndarray[Any, np.dtype[Any]]

BITS = {
    ml_dtypes.int4: 4,
    ml_dtypes.uint4: 4,
    ml_dtypes.float4_e2m1fn: 4,
    ml_dtypes.int2: 2,
    ml_dtypes.uint2: 2,
}
"""Of dtypes that share a byte; numpy gives each element a byte of its own."""


def dtype_of(value: ir.Value) -> np.dtype[Any] | None:
    """The element's dtype, if it is one that numpy itself lacks."""
    if value.dtype is None or value.dtype in (ir.DataType.UNDEFINED, ir.DataType.STRING):
        return None
    dtype: np.dtype[Any] = value.dtype.numpy()
    return dtype if is_narrow(dtype) else None


def is_narrow(dtype: np.dtype[Any]) -> bool:
    return dtype.isbuiltin == 2


def carried(array: Any, dtype: np.dtype[Any] | None) -> Any:
    """An output in the dtype of the file, of which it may be carried by another."""
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def pack(array: Array) -> Array:
    """The bytes of an array as ONNX lays it out: several small elements to a byte, the lowest bits first."""
    flat = np.array(array, order="C").reshape(-1).view(np.uint8)
    bits = BITS.get(array.dtype.type, 8)
    if bits == 8:
        return flat
    per_byte = 8 // bits
    rows = np.zeros((-(-flat.size // per_byte), per_byte), np.uint8)
    rows.reshape(-1)[: flat.size] = flat & (2**bits - 1)
    shifted = rows << (np.arange(per_byte, dtype=np.uint8) * np.uint8(bits))
    return np.asarray(np.bitwise_or.reduce(shifted, axis=1))


def unpack(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The inverse of `pack`."""
    flat = np.frombuffer(data, np.uint8)
    bits = BITS.get(dtype.type, 8)
    if bits == 8:
        return flat.copy().view(dtype).reshape(shape)
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    elements = ((flat[:, None] >> shifts) & (2**bits - 1)).astype(np.uint8).reshape(-1)[: int(np.prod(shape))]
    if dtype.type in (ml_dtypes.int4, ml_dtypes.int2):
        sign = 2 ** (bits - 1)
        elements = (elements ^ sign).astype(np.int8) - np.int8(sign)
        return np.asarray(elements.astype(dtype)).reshape(shape)
    return np.asarray(elements.view(dtype)).reshape(shape)


def unpacked(data: Array, bits: int) -> Array:
    """The numbers of so many bits that bytes hold, along the last axis, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (data[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*data.shape[:-1], -1)
