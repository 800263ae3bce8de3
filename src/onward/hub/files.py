"""Files that claim to be models."""

from __future__ import annotations

import mmap
import os
import pathlib
import re
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import onnx
from google.protobuf.message import DecodeError

from onward.errors import InvalidModelError
from onward.gate.files import absent, special
from onward.hub import wire
from onward.hub.stored import Source

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
            raise InvalidModelError(f"it is {special(path) or 'a folder'}, not a file")
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise InvalidModelError(absent(path).removeprefix(f"{path}: ")) from None
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
