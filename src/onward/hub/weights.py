"""Where the bytes of a tensor come from: the model's own file, or files beside it, mapped into memory."""

from __future__ import annotations

import mmap
import os
import pathlib

import numpy as np
import numpy.typing as npt
import onnx

from onward.errors import InvalidModelError
from onward.hub.large_tensors import Held, raw
from onward.hub.stored import Source
from onward.hub.wire import EMBEDDED
from onward.hub.wording import quote, string_map

Bytes = npt.NDArray[np.uint8]


class Weights:
    """The bytes of the tensors that are not in the protobuf message itself.

    A data file is opened once and stays mapped, so that a model keeps its weights when the file is replaced.
    """

    def __init__(self, path: pathlib.Path | None, embedded: Source | None = None) -> None:
        self._folder = path.absolute().parent if path else None
        # A cache of downloads links both files to one store: there, the model's real folder is the store.
        self._roots = {self._folder.resolve(), path.resolve().parent} if path and self._folder else set()
        self._embedded = embedded
        self._files: dict[str, mmap.mmap | bytes] = {}
        self.held: Held = {}
        """What was read before, and is referred to now."""

    @property
    def files(self) -> list[pathlib.Path]:
        """The files beside the model's own that hold tensors."""
        return [self._folder / location for location in self._files] if self._folder else []

    def read(self, proto: onnx.TensorProto, nbytes: int, where: str) -> Bytes:
        """The `nbytes` bytes an external tensor refers to, read-only."""
        location, offset = _place(proto, nbytes, where)
        if location in self.held:
            return np.frombuffer(raw(self.held[location]), np.uint8)
        if location == EMBEDDED and self._embedded is not None:
            _check_span(len(self._embedded.buffer), offset, nbytes, where)
            return _readonly(self._embedded.take(offset, nbytes))
        if location not in self._files:
            self._files[location] = self._open(location, where)
        return _span(self._files[location], offset, nbytes, f"{where}: external file {quote(location)}")

    def stored(self, proto: onnx.TensorProto, nbytes: int, where: str) -> tuple[Source, int] | None:
        """Where in the model's own file the bytes are, if they may stay there."""
        location, offset = _place(proto, nbytes, where)
        if location != EMBEDDED or self._embedded is None or not self._embedded.stays:
            return None
        _check_span(len(self._embedded.buffer), offset, nbytes, where)
        return self._embedded, offset

    def _open(self, location: str, where: str) -> mmap.mmap | bytes:
        if self._folder is None:
            hint = "load the model from its path, not from memory"
            raise InvalidModelError(f"{where}: its data is in the file {quote(location)}; {hint}")
        if not location or "\0" in location:
            raise InvalidModelError(f"{where}: its external data names {quote(location)}, which is not a file name")
        parts = pathlib.PurePosixPath(location.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or pathlib.PureWindowsPath(location).drive:
            raise InvalidModelError(f"{where}: its external data {quote(location)} is outside the model's folder")
        try:
            real = (self._folder / location).resolve(strict=True)
            if not any(real.is_relative_to(root) for root in self._roots):
                problem = "is a link that leads outside the model's folder"
            elif not real.is_file():
                problem = "is not a file"
            else:
                with real.open("rb") as file:
                    empty = os.fstat(file.fileno()).st_size == 0
                    return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, RuntimeError) as error:
            problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InvalidModelError(f"{where}: its external data {quote(location)} {problem}")


def _place(proto: onnx.TensorProto, nbytes: int, where: str) -> tuple[str, int]:
    """The location and the offset of a tensor of `nbytes` bytes."""
    entries = string_map(proto.external_data, where) or {}
    length = _number(entries, "length", nbytes, where)
    if length != nbytes:
        raise InvalidModelError(f"{where}: its shape needs {nbytes} bytes, its external data has {length}")
    return entries.get("location", ""), _number(entries, "offset", 0, where)


def _number(entries: dict[str, str], key: str, default: int, where: str) -> int:
    value = entries.get(key) or str(default)
    if not (value.isascii() and value.isdecimal() and len(value) < 20):
        raise InvalidModelError(f"{where}: the {key} of its external data is {quote(value)}")
    return int(value)


def _check_span(size: int, offset: int, nbytes: int, where: str) -> None:
    if offset + nbytes > size:
        raise InvalidModelError(f"{where}: needs bytes {offset} to {offset + nbytes}, but has {size}")


def _span(buffer: mmap.mmap | bytes, offset: int, nbytes: int, where: str) -> Bytes:
    _check_span(len(buffer), offset, nbytes, where)
    return _readonly(np.frombuffer(buffer, np.uint8, nbytes, offset) if nbytes else np.empty(0, np.uint8))


def _readonly(array: Bytes) -> Bytes:
    array.flags.writeable = False
    return array
