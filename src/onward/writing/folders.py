"""Several files, or a folder, take the place of others as a whole.

A folder and its successor change places in one step, where the file system can do that. Elsewhere, and for files in a
folder that stays, there are two: what is there moves away, what is new moves in. Between these the folder lacks
something, which every reader notices; it never holds a mixture. Whoever writes there next finishes what was left so.

Within the hidden folder in which all this happens, `new` is what is written, and `old` what moved away. It is called
`.ready` instead of `.part` once all that was there has moved away.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from onward.writing.exchange import exchange
from onward.writing.staging import (
    READY,
    keep_mode,
    leftovers,
    locked,
    real,
    refusals,
    staged_folder,
    sync,
    sync_all,
)

NEW, OLD = "new", "old"
_CACHE = "__pycache__"
"""Python makes it anew."""


@contextmanager
def new_folder(path: str | os.PathLike[str], own: Sequence[str]) -> Iterator[Path]:
    """A folder to write to, which takes the place of `path` once it is complete, or disappears.

    `own` are the names in it that are replaced; the first is the one by which the others are found. Whatever else there
    is in `path` stays.
    """
    given, path = Path(path), real(path)
    with refusals(given):
        _check_folder(path)
        make_folder(path.parent)
        _recover(path, path.name, own)
        inside = path.exists() and not _can_be_moved(path)
        with staged_folder(path if inside else path.parent, path.name) as staged:
            new = staged / NEW
            new.mkdir()
            yield new
            if not path.exists():
                new.rename(path)
            elif inside or not _exchanged(new, path, own):
                _move_in(staged, path, own)


@contextmanager
def new_files(folder: str | os.PathLike[str], own: Sequence[str], *, durable: bool = False) -> Iterator[Path]:
    """A folder to write files to, which take their places in `folder` once all are complete, or disappear.

    `own` are their names; one that is not written is removed from `folder`, too. `durable` as for
    `new_file`.
    """
    given, folder = Path(folder), real(folder)
    with refusals(given / own[0]):
        _check_folder(folder)
        make_folder(folder)
        _recover(folder, own[0], own)
        with staged_folder(folder, own[0]) as staged:
            new = staged / NEW
            new.mkdir()
            yield new
            if durable:
                sync_all(new)
            if len(own) == 1:
                keep_mode(folder / own[0], new / own[0])
                (new / own[0]).replace(folder / own[0])
            else:
                _move_in(staged, folder, own)
        if durable:
            sync(folder)


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


def _check_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if path.exists() and not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _can_be_moved(folder: Path) -> bool:
    """Whether a folder can change places: no other disk begins there, and nobody's current folder would be gone."""
    with suppress(FileNotFoundError):
        if Path.cwd().is_relative_to(folder):
            return False
    return not folder.is_mount() and os.access(folder.parent, os.W_OK | os.X_OK)


def _exchanged(new: Path, path: Path, own: Sequence[str]) -> bool:
    """Whether the folders have changed places; what stays is linked to from both before, so it is never away."""
    others = [entry for entry in path.iterdir() if entry.name not in own and entry.name != _CACHE]
    if any(entry.is_dir() and not entry.is_symlink() for entry in others):
        return False
    try:
        for entry in others:
            os.link(entry, new / entry.name, follow_symlinks=False)
        for name in ("", *own):
            if (new / name).exists():
                keep_mode(path / name, new / name)
        exchange(new, path)
    except OSError:  # a system without this, or a file system without links
        for entry in others:
            (new / entry.name).unlink(missing_ok=True)
        return False
    for entry in list(new.iterdir()):  # the old ones: what somebody wrote there in the last moment
        if entry.name not in own and entry.name != _CACHE and not (path / entry.name).exists():
            entry.rename(path / entry.name)
    return True


def _move_in(staged: Path, path: Path, own: Sequence[str]) -> None:
    with locked(path, wait=True):
        for name in own:
            if (staged / NEW / name).exists():
                keep_mode(path / name, staged / NEW / name)
        (staged / OLD).mkdir()
        try:
            for name in own:
                if os.path.lexists(path / name):
                    shutil.move(path / name, staged / OLD / name)
        except BaseException:
            _move_back(staged, path, own)
            raise
        ready = staged.rename(staged.with_suffix(READY))
        try:
            _finish(ready, path, own)
        except BaseException:
            for name in own:
                _remove(path / name)
            _move_back(ready, path, own)
            raise


def _move_back(staged: Path, path: Path, own: Sequence[str]) -> None:
    for name in reversed(own):
        if os.path.lexists(staged / OLD / name) and not os.path.lexists(path / name):
            shutil.move(staged / OLD / name, path / name)


def _finish(staged: Path, path: Path, own: Sequence[str]) -> None:
    for name in reversed(own):
        if os.path.lexists(staged / NEW / name):
            shutil.move(staged / NEW / name, path / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _recover(path: Path, name: str, own: Sequence[str]) -> None:
    """Finish, or undo, what processes that were killed have left."""
    for place in (path.parent, path):
        for staged in leftovers(place, name) if place.is_dir() else ():
            if path.is_dir() and staged.suffix == READY:
                _finish(staged, path, own)
            elif path.is_dir():
                _move_back(staged, path, own)
            _remove(staged)
