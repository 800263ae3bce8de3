"""What Onward wrote into a folder, with hashes: a file that somebody has changed since is not written over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from onward.advice.options import option
from onward.errors import OnwardError
from onward.version import __version__

MANIFEST = "onward.json"
_LARGEST = 1 << 20
"""Bytes of a manifest that are read: it has a line for each of a few files."""


def write_manifest(folder: Path) -> None:
    """Keep what each file of a folder is now, and of the folders in it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    hashes = {_name(path, folder): _digest(path) for path in files if _name(path, folder) != MANIFEST}
    text = json.dumps({"written by": f"onward {__version__}", "sha256": hashes}, indent=2)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def check_unedited(folder: Path, names: Iterable[str], force: bool) -> None:
    """Refuse to write these files where Onward did not write one that is there, or it was changed since.

    With `force` they are written all the same.
    """
    if force:
        return
    there = [name for name in names if (folder / name).exists()]
    known = written_in(folder) if there else {}
    for name in there:
        path = folder / name
        parts = [part for part in path.rglob("*") if not part.is_dir()] if path.is_dir() else [path]
        for part in parts:
            if not known or (
                name != MANIFEST and not (part.is_file() and _digest(part) == known.get(_name(part, folder)))
            ):
                raise edited(part)


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def edited(path: Path) -> OnwardError:
    """The error for a file that is not as Onward left it."""
    advice = f"{option('force', True)} writes over it, another {option('out')} keeps it"
    return OnwardError(f"{path} was changed since Onward wrote it, or is not Onward's: {advice}")


def written_in(folder: Path) -> dict[str, str]:
    """What Onward wrote into a folder, by name, with hashes; nothing where no manifest says so."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            found = json.loads(file.read(_LARGEST))["sha256"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
