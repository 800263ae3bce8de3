"""A pickle of a model, by `pickle` or `joblib`: opened only where it is trusted."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onward.advice.extras import missing_packages
from onward.errors import InvalidModelError, OnwardError
from onward.formats import Kind, Opened, class_name, kind_of_object, opened_object, register
from onward.gate import allow_beside, opens

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x5d\x00\x00": "lzma", b"x\x9c": "zlib"}
"""How the files begin that joblib compressed; what is in them cannot be told without opening them."""
PROTOCOL = b"\x80"
"""The first byte of a pickle of protocol 2 or later; the second is the protocol, 5 at most, the third an opcode."""


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(tuple(COMPRESSED)):
        return True
    return len(start) > 2 and start[:1] == PROTOCOL and 2 <= start[1] <= 5 and chr(start[2]) in _OPCODES


_OPCODES = {opcode.code for opcode in pickletools.opcodes}


def dangers(path: Path) -> Iterator[str]:
    """A pickle is a program: what it does is not known before it has done it."""
    yield "it is a pickle"


@opens(dangers)
def unpickled(path: Path) -> Any:
    """The object in the file, which is trusted."""
    import joblib

    allow_beside(path)
    try:
        with missing_packages():
            found = joblib.load(path)
    except OnwardError:
        raise
    except Exception as error:
        raise InvalidModelError(f"{path}: the pickle cannot be opened: {type(error).__name__}: {error}") from error
    if kind_of_object(found) is None:
        raise InvalidModelError(f"{path}: the pickle holds an object of {class_name(found)}, which is not a model")
    return found


@opens(dangers)
def open_pickle(path: Path) -> Opened:
    return opened_object(unpickled(path))


register(Kind("pickle", ("joblib",), recognise, open_pickle, "a pickle's or a compressed pickle's first bytes"))
