"""What a worker process does: one model on one target."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import re
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from onward.advice.extras import PROGRAMS, is_installed
from onward.backends.backend import backends, formats
from onward.engine.jobs import Work
from onward.engine.store import in_words, versions
from onward.errors import OnwardError, WritingError
from onward.zoo.fetch import fetched
from onward.zoo.found import LONGEST, Found
from onward.zoo.listing import FORMATS, Entry
from onward.zoo.peers import Peer, peer_conversion
from onward.zoo.results import TRAIN, Cell, ModelFacts

RENEWED = 25
"""Jobs after which a process is begun anew: frameworks keep what they compiled."""
ALWAYS = ("onnx", "onnxruntime", "numpy")
BESIDE = {"keras": ("tensorflow",), "jax": ("jaxlib",), TRAIN: ()}
"""By target, packages that its results depend on beside its own."""
_PROBLEMS: list[OnwardError] = []
"""Why the job that was begun cannot be done."""


@dataclass(frozen=True)
class Job:
    entry: Entry
    target: str
    versions: str
    """As the machine has them that asks."""
    seconds: float
    peer: Peer | None = None
    """The other converter, where the target is `peer:NAME`."""


@dataclass(frozen=True)
class Answer:
    """What comes of a job."""

    cell: Cell
    facts: ModelFacts | None = None


def packages(target: str, format: str, peer: Peer | None = None) -> list[str]:
    """What a result depends on, as it is imported."""
    from onward.formats import kinds

    found = list(ALWAYS)
    if peer is not None:
        found.append(peer.package)
    elif target not in ("onnx", TRAIN):
        found.append(formats()[target][0].package)
    found += BESIDE.get(target, ())
    called = "keras" if format == "h5" else format
    for kind in kinds():
        if FORMATS.get(kind.name) == called:
            found += [*kind.packages, *kind.needs]
    return list(dict.fromkeys(found))


def versions_of(target: str, format: str, peer: Peer | None = None) -> str:
    return in_words(_versions(tuple(packages(target, format, peer))))


@cache
def _versions(names: tuple[str, ...]) -> dict[str, str]:
    return versions(names)


def begin(job: Job) -> None:
    """Fetch the model, and import what the job needs: neither is its own time."""
    from onward.zoo.speed import THREADS

    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": str(THREADS)}
    _PROBLEMS.clear()
    try:
        own = versions_of(job.target, job.entry.format, job.peer)
        if own != job.versions:
            raise WritingError(f"this machine has {own}, and {job.versions} is asked for: install the same on both")
        fetched(job.entry)
    except OnwardError as error:
        _PROBLEMS.append(error)
        return
    needed = packages(job.target, job.entry.format, job.peer)
    for one in backends():
        if one.package in needed and one.is_installed:
            one.use_threads(THREADS)
    for package in needed:
        if package not in PROGRAMS and is_installed(package):
            importlib.import_module(package)


def do(job: Job) -> Answer:
    with warnings.catch_warnings(), _folder() as folder:
        warnings.simplefilter("ignore")
        try:
            if _PROBLEMS:
                raise _PROBLEMS[0]
            path = fetched(job.entry)
            found = _found(job, path, folder)
        except (OnwardError, OSError) as error:  # of the machine, not of the model
            return Answer(cell(job, Found("failed", str(error)), retry=True))
        finally:
            _PROBLEMS.clear()
        found.message = found.message.replace(f"{path}: ", "").replace(str(path), job.entry.name)
        found.message = found.message.replace(f"{folder}/", "")
        from onward.zoo.facts import facts

        model = None if found.model is None else facts(job.entry, found.model)
        return Answer(cell(job, found), model)


def _found(job: Job, path: Path, folder: Path) -> Found:
    if job.peer is not None:
        return peer_conversion(path, job.peer)
    if job.target == TRAIN:
        from onward.zoo.trainings import training

        return training(path)
    from onward.zoo.conversions import conversion

    return conversion(path, job.target, folder, job.seconds)


def cell(job: Job, found: Found, retry: bool = False) -> Cell:
    """A result; with `retry` it says nothing of the model, and the next run tries again."""
    return Cell(
        job.entry.name,
        job.entry.sha256,
        job.target,
        job.versions,
        found.verdict,
        _plain(found.message)[:LONGEST],
        limit_seconds=job.seconds,
        when=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=machine(),
        retry=retry,
        **found.facts,
    )


def _plain(text: str) -> str:
    """On one line, without the colours of a terminal and whatever else is not seen."""
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
    return "".join(character if character.isprintable() else "\ufffd" for character in words)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of this process. Those of processes that were killed are taken away."""
    start = f"onward-zoo-{socket.gethostname()}-"
    for left in Path(tempfile.gettempdir()).glob(f"{start}*"):
        process = left.name.removeprefix(start).partition("-")[0]
        if process.isdecimal() and Path("/proc/self").exists() and not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{start}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@cache
def machine() -> str:
    """The processor, and how many there are."""
    found = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        found = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), found)
    return f"{found}, {os.cpu_count()} cores"


WORK = Work(do, begin, RENEWED)
