"""Which source code Onward itself wrote, for this user on this machine: it may be executed without `--trust`.

A package says nothing about its author: whoever can write its files can write a seal beside them. So what is kept is
kept where only the user can write, the SHA-256 of each source, a line each.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

MODE_FOLDER, MODE_FILE = 0o700, 0o600
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def remember(source: str | bytes) -> None:
    """Keep that Onward wrote this source; where there is no place to keep it, the source will need `--trust`."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _list()
        path.parent.mkdir(MODE_FOLDER, parents=True, exist_ok=True)
        if not _is_private(path.parent) or is_written(source):
            return
        place = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), MODE_FILE)
        try:
            os.write(place, f"{_digest(source)}\n".encode())
        finally:
            os.close(place)


def is_written(source: str | bytes) -> bool:
    """Whether Onward wrote this source, byte for byte."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _list()
        if _is_private(path.parent) and _is_private(path):
            return _digest(source) in path.read_text("ascii", errors="replace").split()
    return False


def _list() -> Path:
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share") / "onward" / "written"


def _is_private(path: Path) -> bool:
    """Whether it is the user's own, and nobody else can write it."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or not hasattr(os, "getuid"):
        return not stat.S_ISLNK(found.st_mode)
    return found.st_uid == os.getuid() and not found.st_mode & OTHERS_WRITE


def _digest(source: str | bytes) -> str:
    return hashlib.sha256(source.encode() if isinstance(source, str) else source).hexdigest()
