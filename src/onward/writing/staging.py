"""Where something is written before it takes its place: hidden, beside it, and locked as long as its writer lives."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from onward.errors import OnwardError, WritingError

PART, READY = ".part", ".ready"
_SHOWN = 50
"""Characters of a name that are repeated in that of its part: few enough for any file system."""


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the file system refuses is told in one line."""
    try:
        yield
    except OnwardError:
        raise
    except OSError as error:
        reason = error.strerror or f"the disk may be full ({error})"  # numpy does not say
        raise WritingError(f"{path}: cannot be written: {reason}") from error
    except Exception as error:  # TensorFlow and HDF5 say it in words of their own
        if full := re.search("no space left on device|disk quota exceeded|file too large", str(error), re.IGNORECASE):
            raise WritingError(f"{path}: cannot be written: {full[0].capitalize()}") from error
        raise


@contextmanager
def staged_folder(place: Path, name: str) -> Iterator[Path]:
    """A new folder in `place` for what becomes `name`; it is gone afterwards, whatever it is called then."""
    while True:
        made = place / _staged_name(name)
        made.mkdir()
        with locked(made) as alone:
            if alone and made.exists():  # not taken for a leftover in the moment before it was locked
                try:
                    yield made
                finally:
                    for path in (made, made.with_suffix(READY)):
                        shutil.rmtree(path, ignore_errors=True)
                return


@contextmanager
def staged_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside `path`; it is gone afterwards, unless it was moved."""
    while True:
        made = path.with_name(_staged_name(path.name))
        with made.open("xb") as file, locked(made) as alone:
            if alone and made.exists():
                try:
                    yield made, file
                finally:
                    made.unlink(missing_ok=True)
                return


def _staged_name(name: str) -> str:
    return f".{name[:_SHOWN]}.{secrets.token_hex(8)}{PART}"


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether nobody else has locked it; a lock ends with its process, however that ends."""
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            alone = True
        except BlockingIOError:
            alone = False
        except OSError:  # a file system without locks
            alone = True
        yield alone
    finally:
        os.close(handle)


def leftovers(place: Path, name: str) -> Iterator[Path]:
    """What processes that have ended have left here of what was to become `name`, each locked meanwhile."""
    if sys.platform == "win32":  # nothing tells there whether its writer lives
        return
    for suffix in (PART, READY):
        pattern = f".{glob.escape(name[:_SHOWN])}.{'[0-9a-f]' * 16}{suffix}"
        for path in sorted(place.glob(pattern)):
            with suppress(FileNotFoundError, PermissionError):
                mode = path.lstat().st_mode
                if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                    with locked(path) as alone:
                        if alone:
                            yield path


def clear_leftovers(path: Path) -> None:
    """Remove what a process that was killed while it wrote this file has left beside it."""
    path = real(path)
    for left in leftovers(path.parent, path.name):
        if left.is_file():
            left.unlink(missing_ok=True)


def real(path: str | os.PathLike[str]) -> Path:
    """Where a link leads: it stays, and what it leads to is replaced."""
    return Path(os.path.realpath(path))


def keep_mode(old: Path, new: Path) -> None:
    """What is replaced keeps its permissions and, as far as that is allowed, its owner."""
    try:
        was = old.lstat()
    except FileNotFoundError:
        return
    if stat.S_IFMT(was.st_mode) == stat.S_IFMT(new.lstat().st_mode) and not stat.S_ISLNK(was.st_mode):
        if hasattr(os, "chown"):
            with suppress(OSError):
                os.chown(new, was.st_uid, was.st_gid)
        new.chmod(stat.S_IMODE(was.st_mode))


def sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, is on the disk."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # not every file system does that for folders
            raise
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    for inner, _, files in os.walk(folder):
        for name in files:
            sync(Path(inner, name))
        sync(Path(inner))
