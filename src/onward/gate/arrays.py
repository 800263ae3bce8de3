"""Arrays in .npz and .npy files: plain numbers and text, of which no more is read than the file can hold."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from onward.errors import InvalidDataError, InvalidModelError
from onward.gate.archive import archive, is_archive
from onward.gate.files import ordinary

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
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
        raise InvalidDataError(f"{path}: it is damaged, or is not a file of arrays: {error}") from error
