"""Files and folders, as opposed to what only looks like one."""

from __future__ import annotations

import stat
from pathlib import Path

from onward.errors import InvalidModelError

SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What could be read without end, or not at all."""


def ordinary(path: Path) -> Path:
    """The path, if a file or a folder is there; what is neither is refused before anything of it is read."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InvalidModelError(f"{path}: there is no such file or folder") from None
    except OSError as error:
        raise InvalidModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    if what := SPECIAL.get(stat.S_IFMT(mode)):
        raise InvalidModelError(f"{path}: it is {what}, not a file; copy its content to a file first")
    return path
