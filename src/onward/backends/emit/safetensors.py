"""Writes a safetensors file tensor by tensor, so that the weights are never all in memory at once."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

from onward.backends.emit.weights import Array, Tensor

_CODES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
"""What the format calls each dtype. The others are stored as bytes and viewed as what they are when loaded."""


def dtype_of(code: str) -> str:
    """The dtype that the format has this name for, as ONNX calls it."""
    names = {short: name for name, short in _CODES.items()} | {"F32": "float", "F64": "double"}
    return names.get(code, code)


def bits_of(code: str) -> int:
    """Of one element, which the format's names of dtypes say; truth has a byte."""
    return int("".join(itertools.takewhile(str.isdigit, code.lstrip("BCFIU"))) or 8)


_SIZES = {"float8_e8m0fnu": 1, "complex128": 16}
_CARRIERS = {"int8": np.int8, "uint8": np.uint8, "float32": np.float32}


def carried(tensor: Tensor, dtypes: Mapping[ir.DataType, str]) -> Array:
    """The data as it is stored: sub-byte types in the type that carries them."""
    data = tensor.read()
    carrier = _CARRIERS.get(dtypes[tensor.dtype])
    return data if carrier is None or data.dtype == carrier else data.astype(carrier)


def write(file: BinaryIO, tensors: Mapping[str, Tensor], dtypes: Mapping[ir.DataType, str]) -> None:
    """`dtypes` are the names of the dtypes that carry those of ONNX in the framework."""
    header: dict[str, object] = {}
    offset = 0
    for name, tensor in tensors.items():
        dtype = dtypes[tensor.dtype]
        shape = list(tensor.shape)
        if dtype in _CODES:
            code, size = _CODES[dtype], _width(dtype)
        else:
            code, size = "U8", 1
            shape = [*shape, _SIZES[dtype]]
        count = math.prod(shape) * size
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [offset, offset + count]}
        offset += count
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for tensor in tensors.values():
        file.write(carried(tensor, dtypes).reshape(-1).view(np.uint8).data)


def _width(dtype: str) -> int:
    if dtype.startswith("float8") or dtype == "bool":
        return 1
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
