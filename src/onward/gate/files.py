"""Files and folders, as opposed to what only looks like one."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from onward.advice.extras import missing_packages
from onward.advice.nearest import meant
from onward.errors import InvalidModelError, OnwardError

SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What could be read without end, or not at all."""
MOST_NAMES = 1000
"""Names in a folder among which the one that was meant is looked for."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_own(path: Path, of_kind: Callable[[int], bool]) -> bool:
    """Whether it is the user's, no link, and nobody else can write to it: what is in it will be executed."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return of_kind(found.st_mode)
    return of_kind(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & OTHERS_WRITE


def absent(path: Path) -> str:
    """That there is nothing at a path, and which name in that folder may have been meant."""
    try:
        beside = [other.name for other in itertools.islice(path.parent.iterdir(), MOST_NAMES)]
    except OSError:
        beside = []
    return f"{path}: this file or folder does not exist{meant(path.name, beside, _stem) or '; check the path'}"


def _stem(name: str) -> str:
    return Path(name).stem


def special(path: Path) -> str:
    """What it is that is there, if neither a file nor a folder: 'a device'."""
    return SPECIAL.get(stat.S_IFMT(path.stat().st_mode), "")


def ordinary(path: Path, error: type[OnwardError] = InvalidModelError) -> Path:
    """The path, if a file or a folder is there; what is neither is refused before anything of it is read."""
    try:
        what = special(path)
    except FileNotFoundError:
        raise error(absent(path)) from None
    except (OSError, ValueError) as problem:
        raise error(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    if what:
        raise error(f"{path}: it is {what}, not a file; copy its content to a file first")
    return path


@contextmanager
def readable(path: Path, otherwise: str) -> Iterator[None]:
    """Whatever a library raises inside means that the file is none that it reads: `otherwise` says so."""
    try:
        with missing_packages():
            yield
    except InvalidModelError as error:
        raise InvalidModelError(f"{path}: {error}") from error
    except OnwardError:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines() or [""]
        raise InvalidModelError(f"{path}: {otherwise}: {type(error).__name__}: {reason[0]}") from error
