"""Files: those that claim to be models, and those that become some."""

from __future__ import annotations

import mmap
import os
import pathlib
import re
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onward.errors import InvalidModelError
from onward.hub import wire
from onward.hub.stored import Source
from onward.hub.wording import write_map

_PICKLE = "a Python pickle, which is never opened because it can run code"
_SIGNATURES: dict[bytes, str] = {  # by a pattern of the first bytes
    b"PK\x03\x04": "a zip archive (as PyTorch and Keras write)",
    **{bytes([0x80, protocol]): _PICKLE for protocol in range(2, 6)},
    b"\x1f\x8b": "a gzip archive: unpack it first",
    b"\x89HDF": "an HDF5 file (as Keras writes)",
    b"GGUF": "a GGUF file",
    b"....TFL3": "a TensorFlow Lite file",
    b"....ORTM": "a file in ONNX Runtime's own format",
    b"version https://git-lfs": "a Git LFS pointer: fetch the file with 'git lfs pull'",
}


@contextmanager
def opened(path: pathlib.Path) -> Iterator[Source]:
    """A file, mapped; its size is limited by protobuf. It is closed with the last tensor whose weights stay in it."""
    try:
        if path.exists() and not path.is_file():
            raise InvalidModelError(f"it is a {'folder' if path.is_dir() else 'device'}, not a file")
        file = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        raise InvalidModelError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    with ExitStack() as ending:
        ending.callback(file.close)
        size = os.fstat(file.fileno()).st_size
        if size >= 2**31:
            raise InvalidModelError(f"it has {size} bytes, and an ONNX file cannot have more than 2 GB")
        source = Source(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"", file)
        yield source
        if source.stays:
            source.forget()
            weakref.finalize(source, file.close)
            ending.pop_all()


def parse(buffer: memoryview) -> onnx.ModelProto:
    """The model's message, in which large weights refer to the buffer."""
    head = bytes(buffer[:256])
    if not head:
        raise InvalidModelError("it is empty")
    for signature, kind in _SIGNATURES.items():
        if re.match(signature, head, re.DOTALL):
            raise InvalidModelError(f"it is not an ONNX model but {kind}")
    try:
        return onnx.ModelProto.FromString(wire.split(buffer) or bytes(buffer))
    except DecodeError as error:
        if "Depth" in str(error):
            problem = "its graphs or types are nested too deeply"
        elif head.isascii() and head.decode().isprintable():
            problem = "it is not an ONNX model but text"
        else:
            problem = "it is not an ONNX model, or it is damaged or cut short"
        raise InvalidModelError(problem) from error


class DataFile:
    """A file of external data: takes the tensors worth it, in the order they are written."""

    SMALLEST = 4096
    """Bytes. Also what offsets are multiples of, as the format asks, so that any tensor can be mapped."""

    def __init__(self, file: BinaryIO, location: str) -> None:
        self.file, self.location = file, location

    def __call__(self, tensor: ir.TensorProtocol, proto: onnx.TensorProto) -> bool:
        if tensor.nbytes < self.SMALLEST:
            return False
        offset = -(-self.file.tell() // self.SMALLEST) * self.SMALLEST
        self.file.seek(offset)
        tensor.tofile(self.file)  # type: ignore[attr-defined]
        proto.data_location = onnx.TensorProto.EXTERNAL
        entries = {"location": self.location, "offset": str(offset), "length": str(self.file.tell() - offset)}
        write_map(proto.external_data, entries)
        return True


@contextmanager
def replacing(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is complete, or disappears."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    file = temporary.open("xb")
    try:
        with file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
