"""What is kept of a test on a runner, and what it depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from onward.engine import store
from onward.runners import find

What = Literal["suite", "unknown", "dtypes"]
WHAT: tuple[What, ...] = get_args(What)
Status = Literal["pass", "imprecise", "wrong", "refused", "crash", "timeout"]
"""`imprecise`: a double that is right to single precision only; `refused`: an error of the runner that says so."""
STATUSES: tuple[Status, ...] = get_args(Status)

Key = tuple[What, str, str, str]


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


class Store(store.Store):
    """The results in a file."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        super().__init__(path, _key, fresh)

    def result(self, what: What, test: str, runner: str, versions: str) -> Result | None:
        found = self.get((what, test, runner, versions))
        return None if found is None else Result(**found)

    def add_result(self, result: Result) -> None:
        self.add(asdict(result))


def _key(record: store.Record) -> Key | None:
    try:
        found = Result(**record)
    except TypeError:
        return None
    return found.what, found.test, found.runner, found.versions


def versions(runner: str) -> dict[str, str]:
    """Package to version, for all that a runner's results depend on; Onward's with a digest of its source."""
    return store.versions(dict.fromkeys(["onnx", find(runner)[0].package]))
