"""A file takes the place of another as a whole."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from onward.writing.staging import clear_leftovers, keep_mode, real, refusals, staged_file, sync

_OPEN = ("/dev/std", "/dev/fd/", "/proc/")


@contextmanager
def new_file(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is complete, or disappears.

    A link is followed; a device or a pipe is written to. `durable` waits until it would outlast a power failure, which
    is for what cannot be made again.
    """
    given, path = Path(path), real(path)
    with refusals(given):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_stream(given):
            with given.open("wb") as stream:
                yield stream
            return
        clear_leftovers(path)
        with staged_file(path) as (part, file):
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            file.close()  # some file systems say only here that a disk is full
            keep_mode(path, part)
            part.replace(path)
        if durable:
            sync(path.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    with new_file(path) as file:
        file.write(text.encode())


def _is_stream(path: Path) -> bool:
    """A device, a pipe, or a name for what is open already, such as /dev/stdout."""
    try:
        return not stat.S_ISREG(path.stat().st_mode) or str(path.absolute()).startswith(_OPEN)
    except OSError:
        return False
