"""Files and folders, as opposed to what only looks like one."""

from __future__ import annotations

import stat
from pathlib import Path

from onward.errors import InvalidModelError, OnwardError

SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What could be read without end, or not at all."""


def ordinary(path: Path, error: type[OnwardError] = InvalidModelError) -> Path:
    """The path, if a file or a folder is there; what is neither is refused before anything of it is read."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise error(f"{path}: there is no such file or folder") from None
    except (OSError, ValueError) as problem:
        raise error(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    if what := SPECIAL.get(stat.S_IFMT(mode)):
        raise error(f"{path}: it is {what}, not a file; copy its content to a file first")
    return path
