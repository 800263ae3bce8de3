"""Which models there are: of a list in a CSV file, of folders, and files."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from onward.errors import OnwardError
from onward.zoo.results import ModelFacts

FORMATS = {
    "SavedModel": "savedmodel",
    "TensorFlow graph": "graphdef",
    "Keras model": "keras",
    "StableHLO module": "stablehlo",
    "TensorFlow Lite model": "tflite",
    "exported PyTorch program": "pt2",
    "PyTorch module": "pt",
    "scikit-learn estimator": "skops",
    "XGBoost model": "xgboost",
    "LightGBM model": "lightgbm",
    "pickle": "pickle",
}
"""What kinds of models that `onward.convert` takes are called in a list."""
HDF5 = (".h5", ".hdf5")
SOURCES = ("pypi", "pypi-sdist", "npm")
"""Where a package is published: a wheel of PyPI, a source distribution of PyPI, a tarball of npm."""
MOST = 100_000
"""Models of one run."""
PIECE = 1 << 20


@dataclass(frozen=True)
class Entry:
    """A model of a list: one that is published in a package, or one at a path."""

    name: str
    sha256: str
    """Of the file; of a folder at a path, of its files and their names; of one in a package, of `saved_model.pb`."""
    format: str = ""
    size_bytes: int = 0
    task: str = ""
    licence: str = ""
    opset: str = ""
    package: str = ""
    """`magika==1.0.3`."""
    source: str = ""
    """One of `SOURCES`."""
    path_inside: str = ""
    """In the package; that of a folder ends with `/`."""
    path: str = ""
    """Of a model that is not published."""

    @property
    def is_folder(self) -> bool:
        return self.path_inside.endswith("/")


def listed(sources: Iterable[str | Path]) -> list[Entry]:
    """All models of CSV files, folders and files, each once, small ones first."""
    found: dict[str, Entry] = {}
    for source in map(Path, sources):
        for entry in _of(source):
            other = found.setdefault(entry.name, entry)
            if other.sha256 != entry.sha256:
                raise OnwardError(f"{source}: two models are called {entry.name!r}: give each a name of its own")
            if len(found) > MOST:
                raise OnwardError(f"there are more than {MOST:,} models: give fewer of them")
    return sorted(found.values(), key=lambda entry: (entry.size_bytes, entry.name))


def _of(source: Path) -> list[Entry]:
    if not source.exists():
        raise OnwardError(
            f"{source}: there is no such file or folder; give a .csv list, a folder of models, or a model"
        )
    if source.suffix.lower() == ".csv" and source.is_file():
        return list(_rows(source))
    if _format(source):
        return [_at(source, source.name)]
    if not source.is_dir():
        raise OnwardError(f"{source}: it is neither a .csv list nor a model that Onward recognises")
    entries = [_at(path, path.relative_to(source).as_posix()) for path in _models(source)]
    if not entries:
        raise OnwardError(f"{source}: there is no model in it that Onward recognises")
    return entries


def _models(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and path.is_dir():
            continue
        if _format(path):
            yield path
        elif path.is_dir():
            yield from _models(path)


def _format(path: Path) -> str:
    """What a file or folder is called in a list; '' where it is no model. Nothing of it is executed."""
    from onward.formats import kind_of

    if path.is_file() and path.suffix.lower() == ".onnx":
        return "onnx"
    if not (path.is_file() or path.is_dir()):
        return ""
    try:
        kind = kind_of(path)
    except OnwardError:
        return ""
    found = "" if kind is None else FORMATS.get(kind.name, "")
    return "h5" if found == "keras" and path.suffix.lower() in HDF5 else found


def _at(path: Path, name: str, row: Mapping[str, str] | None = None) -> Entry:
    """A model of this machine."""
    given = row or {}
    return Entry(
        name,
        digest(path),
        given.get("format") or _format(path),
        size(path),
        given.get("task", ""),
        given.get("licence", ""),
        given.get("opset", ""),
        path=str(path.absolute()),
    )


def _rows(file: Path) -> Iterator[Entry]:
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            rows = [{k: (v or "").strip() for k, v in row.items() if isinstance(k, str)} for row in _read(opened)]
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, AttributeError) as error:
        raise OnwardError(f"{file}: it cannot be read as a .csv list: {error}") from error
    for number, row in enumerate(rows, 2):
        try:
            yield _entry(row, file.parent)
        except OnwardError as error:
            raise OnwardError(f"{file}, line {number}: {error}") from error


def _read(opened: Iterable[str]) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(opened)


def _entry(row: Mapping[str, str], home: Path) -> Entry:
    """A line of a list: a package with what identifies a file of it, or a path, which is relative to the list."""
    if row.get("path"):
        path = home / row["path"]
        if not path.exists():
            raise OnwardError(f"{path}: there is no such file or folder")
        return _at(path, row.get("name") or path.name, row)
    package, inside, sha256 = (row.get(key, "") for key in ("package", "path_inside", "sha256"))
    if not package or not inside:
        raise OnwardError("it has neither a path, nor a package and path_inside")
    if not re.fullmatch(r"(@?[\w.-]+/)?[\w.-]+==[\w.+!-]+", package) or package.startswith(("-", ".")):
        raise OnwardError(f"{package!r} is no package with its version, such as magika==1.0.3")
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise OnwardError("a model in a package needs its sha256: 64 hexadecimal digits")
    source = row.get("source") or "pypi"
    if source not in SOURCES:
        raise OnwardError(f"there is no source {source!r}; there are {', '.join(SOURCES)}")
    bytes_ = row.get("size_bytes") or "0"
    if not (bytes_.isascii() and bytes_.isdecimal()):
        raise OnwardError(f"size_bytes {bytes_!r} is no number")
    if row.get("format") == "savedmodel" and not inside.endswith("/"):
        inside += "/"
    name = row.get("name") or f"{package.partition('==')[0]}/{PurePosixPath(inside).name}"
    return Entry(
        name,
        sha256,
        row.get("format", ""),
        int(bytes_),
        row.get("task", ""),
        row.get("licence", ""),
        row.get("opset", ""),
        package,
        source,
        inside,
    )


def listed_facts(entry: Entry) -> ModelFacts:
    """What a list says."""
    about = (entry.format, entry.task, entry.licence, entry.package, entry.size_bytes, entry.opset)
    return ModelFacts(entry.name, entry.sha256, *about)


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder and their names."""
    found = hashlib.sha256()
    try:
        for file in [path] if path.is_file() else _files(path):
            if file != path:
                found.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as opened:
                while piece := opened.read(PIECE):
                    found.update(piece)
    except OSError as error:
        raise OnwardError(f"{path}: it cannot be read: {error.strerror or error}") from error
    return found.hexdigest()


def size(path: Path) -> int:
    """In bytes, with all that is in a folder."""
    return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in _files(path))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
