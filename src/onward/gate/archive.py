"""The one reader of zip archives: what a member unpacks to is bounded before it is read.

Weights are stored as they are, or shrink little. An archive that claims to hold much more than its own size, one whose
members overlap or say less than they hold, and names that lead out of a folder are found in attacks alone.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from onward.errors import InvalidModelError
from onward.gate.bounds import MEMBERS, TEXT, UNPACKED, unpacked

START = (b"PK\x03\x04", b"PK\x05\x06")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What frameworks write; Python unpacks the others without a bound."""
DEFLATED = 1032
"""How many bytes one of a deflated member can become at most."""
PIECE = 1 << 20
HEADER = 30
"""Bytes before the name of each member."""
DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, KeyError)
"""What reading a damaged archive raises."""


class Archive:
    """A zip archive that was checked."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path, self._file = path, file
        self.names = tuple(info.filename for info in file.infolist())

    def read(self, name: str, *, whole: bool = False) -> bytes:
        """A member: a text, or, with `whole`, weights, which are as large as the archive says."""
        with _damage(self.path), self._file.open(name) as member:
            most = self._file.getinfo(name).file_size if whole else TEXT.value
            content = member.read(most + 1)
        if len(content) > most:
            raise InvalidModelError(f"{self.path}: {name!r} in it has more than {most:,} bytes; {TEXT.hint}")
        return content

    def open(self, name: str) -> IO[bytes]:
        """A member that is read bit by bit."""
        with _damage(self.path):
            return self._file.open(name)


def is_archive(path: Path) -> bool:
    """Whether it is a zip archive, from its first byte on."""
    if not path.is_file():
        return False
    with _damage(path), path.open("rb") as file:
        return file.read(4) in START and zipfile.is_zipfile(file)


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    with _damage(path):
        file = zipfile.ZipFile(path)
    with file:
        _check(path, file)
        yield Archive(path, file)


def names_in(path: Path) -> tuple[str, ...]:
    """The names of the members of an archive; none where it is not one."""
    if not is_archive(path):
        return ()
    with archive(path) as found:
        return found.names


def check_archive(path: Path) -> None:
    """Refuse an archive that a framework, which reads it without bounds, had better not see; anything else passes."""
    if is_archive(path):
        with archive(path) as found:
            _check_contents(path, found._file)


def _check(path: Path, file: zipfile.ZipFile) -> None:
    members, size = file.infolist(), path.stat().st_size
    if len(members) > MEMBERS.value:
        raise InvalidModelError(f"{path}: the archive has {len(members):,} members; {MEMBERS.hint}")
    seen: set[str] = set()
    for info in members:
        if problem := _problem(info, seen):
            raise InvalidModelError(f"{path}: the member {info.filename!r} of the archive {problem}")
        seen.add(info.filename)
    end = 0
    for info in sorted(members, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise InvalidModelError(f"{path}: members of the archive overlap, {info.filename!r} among them")
        end = info.header_offset + HEADER + len(info.filename.encode()) + info.compress_size
    total, most = sum(info.file_size for info in members), unpacked(size)
    if end > size:
        raise InvalidModelError(f"{path}: the archive is cut short, or its members are larger than it")
    if total > most:
        raise InvalidModelError(
            f"{path}: the archive has {size:,} bytes and would unpack to {total:,}, more than {most:,}; {UNPACKED.hint}"
        )


def _problem(info: zipfile.ZipInfo, seen: set[str]) -> str:
    name = info.filename
    if name in seen:
        return "is there twice"
    path = PurePosixPath(name.replace("\\", "/"))
    if not name or path.is_absolute() or ".." in path.parts or PureWindowsPath(name).drive:
        return "has a name that leads out of it"
    if info.flag_bits & 1:
        return "is encrypted"
    if info.compress_type not in METHODS:
        return f"is packed in a way that no framework uses (method {info.compress_type})"
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        return "has two sizes"
    return ""


def _check_contents(path: Path, file: zipfile.ZipFile) -> None:
    """What members unpack to is what they say: where the largest they could be is too large, they are unpacked."""
    packed = [info for info in file.infolist() if info.compress_type != zipfile.ZIP_STORED]
    if DEFLATED * sum(info.compress_size for info in packed) <= UNPACKED.value:
        return
    with path.open("rb") as raw:
        for info in packed:
            if _actual(path, raw, info) != info.file_size:
                raise InvalidModelError(f"{path}: {info.filename!r} in it unpacks to another size than it says")


def _actual(path: Path, raw: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Bytes that a deflated member unpacks to, counted until they are more than it says."""
    raw.seek(info.header_offset)
    header = raw.read(HEADER)
    raw.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    left, total, unpacking = info.compress_size, 0, zlib.decompressobj(-15)
    with _damage(path):
        while left > 0 and not unpacking.eof:
            piece = raw.read(min(left, PIECE))
            left -= len(piece)
            if not piece:
                break
            while piece and total <= info.file_size:
                total += len(unpacking.decompress(piece, PIECE))
                piece = unpacking.unconsumed_tail
            if total > info.file_size:
                break
    return total


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGES as error:
        raise InvalidModelError(f"{path}: the archive is damaged: {str(error) or type(error).__name__}") from error
