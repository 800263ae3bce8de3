"""What a MAT file holds, told from its frame, before Octave or MATLAB reads it.

Both make functions and objects of what a file says of them, for which they execute parts of it. Octave also takes files
of other kinds for what they are, whatever they are called.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from onward.backends.matlab.matfile import CELL, CHAR, MATRIX, STRUCT
from onward.gate import ordinary

HEADER = 128
NUMBERS = range(6, 16)
"""Classes of arrays of numbers: double to uint64. Sparse ones, functions and objects have others."""
HDF5 = b"\x89HDF\r\n\x1a\n"


class _Foreign(Exception):
    """A part that is not of version 5 without compression, or more than numbers, texts, structs and cell arrays."""


def dangers(path: Path) -> Iterator[str]:
    """Why a MAT file cannot be read without a risk; nothing where it holds numbers and texts only."""
    with ordinary(path).open("rb") as file:
        end = file.seek(0, 2)
        try:
            _check(file, end)
        except (_Foreign, struct.error):
            yield (
                f"{path.name} is more than a MAT file of version 5 with numbers and texts, which could execute anything"
                " when it is opened (save it with '-v6' if it is your own)"
            )


def _check(file: BinaryIO, end: int) -> None:
    head = _read(file, 0, HEADER, end)
    if not head.startswith(b"MATLAB 5.0 MAT-file") or head[124:] != b"\x00\x01IM" or _is_hdf5(file, end):
        raise _Foreign
    pending = list(_matrices(file, HEADER, end))
    while pending:
        pending += _inside(file, *pending.pop())


def _is_hdf5(file: BinaryIO, end: int) -> bool:
    """Whether it would be taken for HDF5, whose signature may stand at 512 bytes and at each double of that."""
    place = 512
    while place + len(HDF5) <= end:
        if _read(file, place, len(HDF5), end) == HDF5:
            return True
        place *= 2
    return False


def _matrices(file: BinaryIO, place: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the contents of the matrices begin and end that follow one another."""
    while place < end:
        kind, size = struct.unpack("<II", _read(file, place, 8, end))
        if kind != MATRIX or place + 8 + size > end:
            raise _Foreign
        yield place + 8, place + 8 + size
        place += 8 + size


def _inside(file: BinaryIO, place: int, end: int) -> list[tuple[int, int]]:
    """The matrices in a matrix: those of a cell array or a struct."""
    if place == end:
        return []  # an empty one
    code = struct.unpack("<I", _read(file, place + 8, 4, end))[0] & 0xFF
    if code in NUMBERS or code == CHAR:
        return []
    if code not in (CELL, STRUCT):
        raise _Foreign
    for _ in range(3 if code == CELL else 5):  # flags, dimensions, name; how long names of fields are, and the names
        place = _after(file, place, end)
    return list(_matrices(file, place, end))


def _after(file: BinaryIO, place: int, end: int) -> int:
    """The place behind a small element."""
    kind, size = struct.unpack("<II", _read(file, place, 8, end))
    return place + 8 if kind >> 16 else place + 8 + size + -size % 8


def _read(file: BinaryIO, place: int, count: int, end: int) -> bytes:
    if place + count > end:
        raise _Foreign
    file.seek(place)
    return file.read(count)
