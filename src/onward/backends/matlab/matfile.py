"""Writes MAT files of version 5, which MATLAB and Octave read: numbers, texts, structs and cell arrays, uncompressed.

The dimensions of an array are reversed: its elements lie in memory as numpy has them, and as MATLAB wants them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from onward.errors import UnsupportedError

Array = np.ndarray[Any, Any]
LARGEST = 2**31 - 1
"""Bytes of a variable."""
INT8, INT32, UINT32, MATRIX, UTF16 = 1, 5, 6, 14, 17
CELL, STRUCT, CHAR, UINT8_CLASS = 1, 2, 4, 9
LOGICAL, COMPLEX = 0x0200, 0x0800
CLASSES = {
    "f8": (6, 9),
    "f4": (7, 7),
    "i1": (8, 1),
    "u1": (9, 2),
    "i2": (10, 3),
    "u2": (11, 4),
    "i4": (12, 5),
    "u4": (13, 6),
    "i8": (14, 12),
    "u8": (15, 13),
}
"""For each dtype, the class of an array and the type of its data."""
FIELD = 64
"""Bytes of the name of a field."""


@dataclass(frozen=True)
class Lazy:
    """An array that is read when it is written, not before."""

    read: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def write(file: BinaryIO, variables: Mapping[str, Any]) -> None:
    """Write variables: arrays, `Lazy` ones, texts, lists and object arrays (cell arrays), dictionaries (structs)."""
    text = b"MATLAB 5.0 MAT-file, written by Onward".ljust(116)
    file.write(text + bytes(8) + struct.pack("<H", 0x0100) + b"IM")
    for name, value in variables.items():
        _matrix(file, name.encode("ascii"), value)


def _matrix(file: BinaryIO, name: bytes, value: Any) -> None:
    size = _size(name, value)
    if size > LARGEST:
        raise UnsupportedError(f"{name.decode()}: MAT files of version 5 hold no variable of more than 2 GB")
    file.write(struct.pack("<II", MATRIX, size))
    match value:
        case str():
            codes = np.frombuffer(value.encode("utf-16-le", "surrogatepass"), np.uint16)
            _head(file, CHAR, (1, codes.size) if codes.size else (0, 0), name)
            _element(file, UTF16, codes.tobytes())
        case list():
            _head(file, CELL, (1, len(value)), name)
            for item in value:
                _matrix(file, b"", item)
        case np.ndarray() if value.dtype == object:
            _head(file, CELL, dims_of(value.shape), name)
            for item in value.reshape(-1):
                _matrix(file, b"", item)
        case dict():
            _head(file, STRUCT, (1, 1), name)
            file.write(struct.pack("<HHI", INT32, 4, FIELD))
            _element(file, INT8, b"".join(key.encode("ascii").ljust(FIELD, b"\0") for key in value))
            for item in value.values():
                _matrix(file, b"", item)
        case _:
            _numbers(file, name, value)


def _numbers(file: BinaryIO, name: bytes, value: Any) -> None:
    shape, dtype, flags = value.shape, value.dtype, 0
    array = np.asarray(value.read() if isinstance(value, Lazy) else value)
    array = np.ascontiguousarray(array.astype(dtype, copy=False))
    if dtype.kind == "b":
        array, flags = array.view(np.uint8), LOGICAL
    if dtype.kind == "c":
        flags = COMPLEX
    code, kind = CLASSES[_real(dtype)]
    _head(file, code, dims_of(shape), name, flags)
    for part in (array.real, array.imag) if dtype.kind == "c" else (array,):
        contiguous = np.ascontiguousarray(part)
        file.write(struct.pack("<II", kind, contiguous.nbytes))
        file.write(contiguous.data)
        file.write(bytes(-contiguous.nbytes % 8))


def dims_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions that MATLAB gives a tensor; a number is 1 x 1, a vector a column."""
    return (*reversed(shape), *(1,) * (2 - len(shape)))


def _real(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "u1"
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return f"{'f' if dtype.kind == 'c' else dtype.kind}{size}"


def _head(file: BinaryIO, code: int, dims: tuple[int, ...], name: bytes, flags: int = 0) -> None:
    file.write(struct.pack("<IIII", UINT32, 8, code | flags, 0))
    _element(file, INT32, struct.pack(f"<{len(dims)}i", *dims))
    _element(file, INT8, name)


def _element(file: BinaryIO, kind: int, data: bytes) -> None:
    file.write(struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8))


def _size(name: bytes, value: Any) -> int:
    """Bytes of what follows the first 8 of a matrix."""

    def padded(count: int) -> int:
        return 8 + count + -count % 8

    base = 16 + padded(len(name))
    match value:
        case str():
            return base + padded(8) + padded(len(value.encode("utf-16-le", "surrogatepass")))
        case list():
            return base + padded(8) + sum(8 + _size(b"", item) for item in value)
        case np.ndarray() if value.dtype == object:
            head = base + padded(4 * len(dims_of(value.shape)))
            return head + sum(8 + _size(b"", item) for item in value.reshape(-1))
        case dict():
            return base + padded(8) + 8 + padded(FIELD * len(value)) + sum(8 + _size(b"", v) for v in value.values())
    dims = dims_of(value.shape)
    count = int(np.prod(value.shape, dtype=np.int64)) * value.dtype.itemsize
    data = 2 * padded(count // 2) if value.dtype.kind == "c" else padded(count)
    return base + padded(4 * len(dims)) + data
