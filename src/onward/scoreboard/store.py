"""Results on disk, a line each as they arrive, so that a run that was stopped goes on where it stopped."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from onward.runners import find
from onward.version import __version__

What = Literal["suite", "unknown", "dtypes"]
WHAT: tuple[What, ...] = get_args(What)
Status = Literal["pass", "imprecise", "wrong", "refused", "crash", "timeout"]
"""`imprecise`: a double that is right to single precision only; `refused`: an error of the runner that says so."""
STATUSES: tuple[Status, ...] = get_args(Status)

LOOKS = ("cli", "report")
"""Parts of the package that no result depends on."""


@dataclass(frozen=True)
class Result:
    """A test on a runner."""

    what: What
    test: str
    """The name of a case, or a cell's key."""
    runner: str
    versions: str
    """Of all that the result depends on, see `versions`."""
    status: Status
    message: str = ""
    seconds: float = 0.0
    limit: float = 0.0
    """Seconds it was given."""


class Store:
    """The results in a file."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self._path = path
        if fresh:
            path.unlink(missing_ok=True)
        elif path.exists() and not path.read_bytes().endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")
        self._found = {(r.what, r.test, r.runner, r.versions): r for r in _read(path)}

    def get(self, what: What, test: str, runner: str, versions: str) -> Result | None:
        return self._found.get((what, test, runner, versions))

    def add(self, result: Result) -> None:
        self._found[result.what, result.test, result.runner, result.versions] = result
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def _read(path: Path) -> Iterator[Result]:
    """The lines that can be read: one may have been cut off in the middle."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield Result(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue


def versions(runner: str) -> dict[str, str]:
    """Package to version, for all that a runner's results depend on; Onward's with a digest of its source."""
    package = find(runner)[0].package
    found = {"onward": f"{__version__} ({_digest()})", "onnx": importlib.metadata.version("onnx")}
    return found | ({} if package in found else {package: package_version(package)})


def package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package.partition(".")[0], [])
        return importlib.metadata.version(names[0]) if names else ""


@cache
def _digest() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in LOOKS:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:7]
