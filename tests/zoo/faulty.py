"""Models of which some end badly, and a program that runs them as `onward zoo run` does.

python faulty.py FOLDER OUT PLACE [BYTES]     with BYTES, no file may become larger than that
"""

import ctypes
import hashlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from onward.engine.jobs import Work
from onward.errors import OnwardError
from onward.zoo import run as running
from onward.zoo import work
from onward.zoo.found import Found
from onward.zoo.run import Options, run_all
from onward.zoo.work import Answer, Job

SECONDS = 2.5
MEMORY = 400_000_000


def killed(first: bool) -> None:
    if first:
        os.kill(os.getpid(), signal.SIGKILL)


def segfault(first: bool) -> None:
    ctypes.string_at(0)


def hang(first: bool) -> None:
    time.sleep(3600)


def memory(first: bool) -> None:
    held = b"1" * (MEMORY + 100_000_000)
    time.sleep(len(held))


def full(first: bool) -> None:
    if first:
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(b"1")


FAULTS: dict[str, Callable[[bool], None]] = {one.__name__: one for one in (killed, segfault, hang, memory, full)}


def found(job: Job, path: Path, folder: Path) -> Found:
    """The SHA-256 of the file, unless its name says how the job ends; some end so only the first time."""
    mark = path.parent.parent / "marks" / path.name
    first = not mark.exists()
    mark.touch()
    if fault := FAULTS.get(path.stem.partition("-")[2]):
        fault(first)
    return Found("same", hashlib.sha256(path.read_bytes()).hexdigest())


def do(job: Job) -> Answer:
    work._found = found
    return work.do(job)


def begin(job: Job) -> None:
    """There is nothing to import."""


def main(folder: str, out: str, place: str, most: str = "") -> int:
    if most:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
    running.WORK = Work(do, begin)
    running.versions_of = lambda target, format: "onward 0"
    options = Options([folder], Path(out), to=("onnx",), on=place, jobs=2, timeout=SECONDS, memory=MEMORY)
    try:
        ran = run_all(options)
    except OnwardError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if ran.is_good else 1


if __name__ == "__main__":
    import faulty  # under a name by which workers find it

    sys.exit(faulty.main(*sys.argv[1:]))
