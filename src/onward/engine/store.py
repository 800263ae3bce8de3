"""Records on disk, a line each as they arrive, so that a run that was stopped goes on where it stopped."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.metadata
import json
import os
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from onward.advice.extras import PROGRAMS, program_version
from onward.errors import OnwardError, WritingError
from onward.version import __version__

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Record = Mapping[str, Any]
Key = Callable[[Record], Hashable]
"""What a record is known by; None for what is no record."""

LOOKS = ("cli", "report", "engine")
"""Parts of the package that no result depends on."""
SOURCES = (".py", ".m")
"""What the files end with that results depend on: MATLAB's helpers are sources as well."""


class Store:
    """The records in a file: the last one of each key. One program at a time writes it."""

    def __init__(self, path: Path, key: Key, fresh: bool = False) -> None:
        self._path, self._key = path, key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._lock()
            _STORES.add(self)
            if fresh:
                os.ftruncate(self._file, 0)
            self._found: dict[Hashable, Record] = {
                name: record for record in records(path) if (name := key(record)) is not None
            }
            self._end_line()
        except OSError as error:
            raise WritingError(f"{path}: cannot be written: {error.strerror or error}") from error

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise OnwardError(
                f"{self._path}: another run writes to it; wait for that, or give another folder"
            ) from error
        except OSError:
            return  # some file systems have no locks

    def _end_line(self) -> None:
        """What was cut off in the middle stays a line of its own, which is skipped."""
        length = os.fstat(self._file).st_size
        if length and os.pread(self._file, 1, length - 1) != b"\n":
            self._append(b"\n")

    def get(self, key: Hashable) -> Record | None:
        return self._found.get(key)

    def all(self) -> list[Record]:
        return list(self._found.values())

    def add(self, record: Record) -> None:
        """Raises `WritingError` where there is no room for it; all that was added before stays."""
        self._append(json.dumps(record).encode() + b"\n")
        self._found[self._key(record)] = record

    def _append(self, data: bytes) -> None:
        before = os.fstat(self._file).st_size
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "the disk is full" if full else error.strerror or str(error)
            raise WritingError(
                f"{self._path}: a result cannot be stored: {why}; what was stored before is kept: make room, and run"
                " this again"
            ) from error

    def close(self) -> None:
        _STORES.discard(self)
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
"""Those that are open."""


def _let_go() -> None:
    """A copy of this process does not hold the lock any longer than it does: a run may be begun again at once."""
    for store in list(_STORES):
        store.close()


if fcntl is not None:
    os.register_at_fork(after_in_child=_let_go)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that can be read: one may have been cut off in the middle."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data.split(b"\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Package to version; Onward's, which is first, with a digest of its source."""
    found = {package: package_version(package) for package in packages}
    return {"onward": f"{__version__} ({_digest()})"} | {name: version for name, version in found.items() if version}


def in_words(found: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in found.items())


def package_version(package: str) -> str:
    """'' where it is not installed."""
    if package in PROGRAMS:
        return program_version(package)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package.partition(".")[0], [])
        return importlib.metadata.version(names[0]) if names else ""


@cache
def _digest() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in SOURCES and path.relative_to(root).parts[0] not in LOOKS:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:7]
