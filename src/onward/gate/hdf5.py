"""HDF5 files, alone and in archives: looked through by another process before this one opens them.

The library follows what a file says, and was seen to follow a damaged one for ever. A few bytes of a file can also
claim an array of any size, all of whose elements are the same.
"""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from onward.advice.extras import require
from onward.errors import InvalidModelError
from onward.gate.apart import apart
from onward.gate.archive import archive, is_archive
from onward.gate.bounds import MEMBERS, UNPACKED, unpacked

SIGNATURE = b"\x89HDF\r\n\x1a\n"
WEIGHTS = "model.weights.h5"


def check_hdf5(path: Path) -> None:
    """Refuse an HDF5 file, or an archive with one in it, that is damaged or claims too much; anything else passes."""
    if path.is_file() and _has_hdf5(path):
        require("h5py", what=str(path))
        found = path.stat()
        _check(path, (found.st_ino, found.st_size, found.st_mtime_ns))


def _has_hdf5(path: Path) -> bool:
    if is_archive(path):
        with archive(path) as found:
            return WEIGHTS in found.names
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


@lru_cache(16)
def _check(path: Path, state: tuple[int, int, int]) -> None:
    """`state` is what tells the file from what it was before."""
    said = apart(path, "onward.gate.hdf5", "total", "the HDF5 file", "HDF5")
    claimed, most = int(said), unpacked(state[1])
    if claimed > most:
        raise InvalidModelError(
            f"{path}: it has {state[1]:,} bytes and claims arrays of {claimed:,}, more than {most:,}; {UNPACKED.hint}"
        )


def total(path: str) -> int:
    """In the process that looks: bytes of all arrays, as often as there is a way to them."""
    import h5py

    source: Path | BinaryIO = Path(path)
    if is_archive(Path(path)):
        with archive(Path(path)) as found:
            source = io.BytesIO(found.read(WEIGHTS, whole=True))
    claimed, most, count = 0, unpacked(Path(path).stat().st_size), 0
    with h5py.File(source, "r") as file:
        waiting: list[Any] = [file]
        seen = {_place(file)}
        while waiting and claimed <= most:
            group = waiting.pop()
            _read_attributes(group)
            for name in group:
                count += 1
                if count > MEMBERS.value:
                    raise ValueError(f"it has more than {MEMBERS.value:,} members; {MEMBERS.hint}")
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    continue
                child = group[name]
                is_new = (place := _place(child)) not in seen
                seen.add(place)
                if isinstance(child, h5py.Dataset):
                    claimed += max(child.nbytes, 0)
                    if is_new and claimed <= most:
                        _read(child)
                elif isinstance(child, h5py.Group) and is_new:
                    waiting.append(child)
    return claimed


def _place(thing: Any) -> int:
    import h5py

    return int(h5py.h5o.get_info(thing.id).addr)


def _read_attributes(of: Any) -> None:
    for name in of.attrs:
        of.attrs[name]


def _read(dataset: Any) -> None:
    """What is stored in pieces is found by following the file; what is stored in one is not worth reading twice."""
    _read_attributes(dataset)
    if dataset.chunks is not None and not (dataset.external or dataset.is_virtual):
        dataset[()]
