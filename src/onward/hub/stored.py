"""Tensors whose bytes stay in the model's own file until they are asked for."""

from __future__ import annotations

import io
import mmap
import os
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError

Array = np.ndarray[Any, np.dtype[Any]]
Buffer = mmap.mmap | bytes | bytearray | memoryview

_KEPT = 2**20
"""Bytes of a file that is worth being kept open."""


class Source:
    """The bytes of a model: a buffer to look through, and weights to take out of it, at once or later."""

    def __init__(self, data: Buffer, file: io.FileIO | None = None) -> None:
        self.buffer = memoryview(data)
        self._file = file
        self._stamp = _stamp(file)
        self._turn = threading.Lock()
        self.stays = file is not None and len(self.buffer) >= _KEPT and os.name == "posix"
        """Whether weights may be left in the file; where an open file cannot be replaced or deleted, they are not."""

    def take(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """A copy, aligned as arrays want it; read from the file if there is one, which is faster."""
        copy = np.empty(nbytes, np.uint8)
        if self._file is None:
            copy[:] = self.buffer[offset : offset + nbytes]
            return copy
        with self._turn:
            self._file.seek(offset)
            count = self._file.readinto(copy.data)
        self._check()
        if count != nbytes:
            raise InvalidModelError("it was cut short while it was read")
        return copy

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """The bytes where they are: to be copied, not to be computed with or kept, since the file may change later."""
        self._check()
        return np.frombuffer(self.buffer, np.uint8, nbytes, offset)

    def forget(self) -> None:
        """Give back the memory into which looking through a file has brought parts of it; they are there as before."""
        mapped = self.buffer.obj
        if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)

    def _check(self) -> None:
        if _stamp(self._file) != self._stamp:
            raise InvalidModelError("the file of the model was changed after it had been loaded: load it again")


def _stamp(file: io.FileIO | None) -> tuple[int, int] | None:
    """What is another once a file has been written to; to be replaced or deleted does it no harm."""
    if file is None:
        return None
    status = os.fstat(file.fileno())
    return status.st_mtime_ns, status.st_size


class StoredTensor(ir.Tensor[Any]):
    """A tensor like any other, read from the file when its array is first asked for."""

    __slots__ = ("_array", "_nbytes", "_offset", "_source")

    def __init__(self, source: Source, offset: int, nbytes: int, dtype: ir.DataType, shape: ir.Shape, **details: Any):
        super().__init__(self, dtype, shape=shape, **details)
        self._source, self._offset, self._nbytes = source, offset, nbytes
        self._array: Array | None = None

    @property
    def _raw(self) -> Array:
        """What onnx-ir's class, where it is a field, computes all else from."""
        if self._array is None:
            data = self._source.take(self._offset, self._nbytes)
            data.flags.writeable = False
            self._array = self._shaped(data)
        return self._array

    @_raw.setter
    def _raw(self, value: Any) -> None:
        """There is nothing to keep: it is asked for later."""

    def in_place(self) -> Array:
        """Its elements where they are, perhaps in the file: to be copied or looked at, not to be computed with."""
        if self._array is not None:
            return self._array
        return self._shaped(self._source.view(self._offset, self._nbytes))

    def _shaped(self, data: Array) -> Array:
        return data.view(self._dtype.numpy()).reshape(self._shape.numpy())


def in_place(tensor: ir.TensorProtocol) -> Array:
    """The elements of a tensor without reading them, as far as that can be: unaligned, and not to be kept."""
    return tensor.in_place() if isinstance(tensor, StoredTensor) else tensor.numpy()
