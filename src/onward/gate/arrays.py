"""Arrays in .npz and .npy files: plain numbers and text, of which no more is read than the file can hold."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from onward.errors import InvalidDataError, InvalidModelError
from onward.gate.archive import archive, is_archive
from onward.gate.files import ordinary

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
LARGEST = 2**62
"""Bytes of an array: more than that no file holds."""
DAMAGES = (ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error, AttributeError, TypeError)


def read_npz(path: Path) -> dict[str, Array]:
    def load() -> dict[str, Array]:
        if not is_archive(path):
            raise ValueError("numpy.savez writes one")
        with archive(path), np.load(path, allow_pickle=False) as found:
            return {name: _sized(found[name]) for name in found.files}

    return _loaded(path, load)


def read_npy(path: Path) -> Array:
    def load() -> Array:
        with path.open("rb") as file:
            return _sized(np.asarray(np.lib.format.read_array(file, allow_pickle=False)))

    return _loaded(path, load)


def _sized(array: Any) -> Array:
    """An array whose elements take room: of those that take none, a few bytes can claim any number."""
    if not isinstance(array, np.ndarray):
        raise ValueError("a member is not an array")
    if array.size and not array.itemsize:
        raise ValueError(f"an array of shape {list(array.shape)} has elements of size 0")
    return array


def _loaded(path: Path, load: Callable[[], T]) -> T:
    try:
        ordinary(path)
        return load()
    except InvalidModelError as error:
        raise InvalidDataError(str(error)) from error
    except OSError as error:
        raise InvalidDataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DAMAGES as error:
        if "pickle" in str(error):
            raise InvalidDataError(
                f"{path}: it holds Python objects, which are not opened; save plain arrays"
            ) from None
        raise InvalidDataError(
            f"{path}: it is damaged, or is not a file of arrays: {error or type(error).__name__}"
        ) from error


class Rows:
    """An array in a file, of which rows along its first axis are read one after another."""

    def __init__(self, file: IO[bytes]) -> None:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, by_columns, self.dtype = header(file)
        self._file, self._left = file, self.shape[0] if self.shape else 0
        self.problem = ""
        """Why its rows cannot be read."""
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * self.dtype.itemsize > LARGEST:
            self.problem = f"no array has the shape {list(self.shape)}"
        elif self.dtype.hasobject:
            self.problem = "it holds Python objects, for which it would take a pickle"
        elif not self.shape:
            self.problem = "a single number has no rows"
        elif by_columns and len(self.shape) > 1:
            self.problem = "it is stored column by column: save numpy.ascontiguousarray of it"
        elif not self.dtype.itemsize:
            self.problem = f"an array of shape {list(self.shape)} has elements of size 0"

    def read(self, count: int) -> Array:
        """The next rows: so many, or those that are left."""
        count = min(count, self._left)
        inner = self.shape[1:]
        wanted = count * math.prod(inner) * self.dtype.itemsize
        data = self._file.read(wanted)
        if len(data) < wanted:
            raise EOFError(f"it ends {wanted - len(data):,} bytes early")
        self._left -= count
        return np.frombuffer(data, self.dtype).astype(self.dtype.newbyteorder("="), copy=False).reshape(count, *inner)


@contextmanager
def opened_rows(path: Path) -> Iterator[dict[str, Rows]]:
    """The arrays of a .npz by their names, or that of a .npy by the name ''; none of them is read whole."""
    with ExitStack() as stack:

        def load() -> dict[str, Rows]:
            if not is_archive(path):
                return {"": Rows(stack.enter_context(path.open("rb")))}
            found = stack.enter_context(archive(path))
            files = {name.removesuffix(".npy"): stack.enter_context(found.open(name)) for name in found.names}
            return {name: Rows(file) for name, file in files.items()}

        yield _loaded(path, load)


def next_rows(path: Path, arrays: Mapping[str, Rows], count: int) -> dict[str, Array]:
    """Of each array the next rows."""
    for name, rows in arrays.items():
        if rows.problem:
            raise InvalidDataError(f"{path}: {f'the array {name!r}' if name else 'the array'}: {rows.problem}")
    return _loaded(path, lambda: {name: rows.read(count) for name, rows in arrays.items()})
