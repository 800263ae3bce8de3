"""Whatever becomes of a worker, its job has one result, and nothing that it started goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from onward.engine.jobs import Done, Limits, Work
from onward.engine.local import Local
from onward.engine.process import Worker
from onward.errors import OnwardError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def begin(job: object) -> None:
    pass


class Unreadable:
    """Made in the worker, and not where it is read."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return exec, ("raise AttributeError('no such class')",)


@dataclass(frozen=True)
class Job:
    what: str
    folder: Path
    number: int = 0

    @property
    def file(self) -> Path:
        return self.folder / f"{self.what}{self.number}"


def do(job: Job) -> object:
    match job.what:
        case "killed once":
            if not job.file.exists():
                job.file.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            child = subprocess.Popen(["sleep", "1000"])
            job.file.write_text(str(child.pid))
            os.kill(os.getpid(), signal.SIGSEGV)
        case "forks and crashes":
            if not os.fork():
                job.file.write_text(str(os.getpid()))
                time.sleep(1000)
            while not job.file.exists() or not job.file.read_text():
                time.sleep(0.01)
            os.abort()
        case "hangs with a child":
            job.file.write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
            time.sleep(1000)
        case "hangs for good":
            import ctypes

            job.file.write_text(str(os.getpid()))
            ctypes.PyDLL(None).sleep(1000)  # holds the lock of the interpreter: no other thread runs
        case "closes all":
            os.closerange(0, 1024)
            time.sleep(1000)
        case "eats":
            held = []
            while True:
                held.append(b"x" * (32 << 20))
                time.sleep(0.02)
        case "unreadable":
            return Unreadable()
    return job.number


def mapped(jobs: list[Job], limits: Limits, processes: int = 2) -> dict[Job, Done]:
    found = list(Local(processes).map(Work(do, begin), jobs, limits))
    assert len(found) == len(jobs)
    return dict(found)


def lives(pid: int) -> bool:
    """Whether a process goes on; one that has ended and is not waited for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not lives(pid)


def test_every_fault_is_one_result(tmp_path: Path) -> None:
    """Also where the process that asks has more memory than a job may take."""
    ballast = b"x" * (2000 << 20)
    faults = {
        "killed once": "",
        "segfault": "crash (SIGSEGV)",
        "forks and crashes": "crash (SIGABRT)",
        "hangs with a child": "timed out after 3 s",
        "hangs for good": "timed out after 3 s",
        "eats": "took more than 0.6 GB",
        "unreadable": "crash (its result cannot be read: AttributeError: no such class)",
    }
    jobs = [Job(what, tmp_path, n) for n in range(2) for what in ("good", *faults)]
    done = mapped(jobs, Limits(3, 600 * 10**6))
    assert {job: answer.failure for job, answer in done.items()} == {job: faults.get(job.what, "") for job in jobs}
    assert all(answer.value == job.number for job, answer in done.items() if not answer.failure)
    assert {answer.kind for job, answer in done.items() if job.what == "eats"} == {"memory"}
    for job in jobs:
        if job.file.exists() and job.file.read_text():
            assert gone(int(job.file.read_text())), f"{job.what} has left a process"
    del ballast


def test_a_worker_that_closes_its_connection_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.engine.process.GRACE", 0.5)
    job = Job("closes all", tmp_path)
    assert mapped([job], Limits(60))[job].failure == "crash (it closed its connection and went on)"


def test_no_more_processes_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("onward.engine.process._Forked", none_left)
    with pytest.raises(OnwardError, match=r"no further process can be started \(Resource temporarily unavailable\)"):
        list(Local(1).map(Work(do, begin), [1], Limits(1)))


def test_a_fresh_worker_that_dies_at_once_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.engine.process.FRESH", "import os; os._exit(3)")
    worker = Worker(b"x" * (1 << 22), Limits(60), fresh=True)  # more than fits between two processes
    worker.send(True, b"")
    while (done := worker.look()) is None:
        time.sleep(0.05)
    worker.stop()
    assert done.failure == "crash (exit code 3)"


DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from test_faults import Job, Work, begin, do
from onward.engine.jobs import Limits
from onward.engine.local import Local
from onward.engine.store import Store
folder = Path(sys.argv[2])
with Store(folder / "results.jsonl", lambda record: record["number"]) as store:
    jobs = [Job(what, folder, n) for n, what in enumerate(sys.argv[3:])]
    for job, done in Local(2).map(Work(do, begin), [j for j in jobs if not store.get(j.number)], Limits(2)):
        store.add({"number": job.number, "failure": done.failure})
    print(len(store.all()))
"""


def driver(folder: Path, *jobs: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(folder), *jobs]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_a_driver_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """At once, though its workers still end; each job has one line."""
    jobs = ["good", "hangs with a child", "good", "hangs with a child", "good"]
    first = driver(tmp_path, *jobs)
    pids = [tmp_path / "hangs with a child1", tmp_path / "hangs with a child3"]
    while not all(path.exists() and path.read_text() for path in pids):
        assert first.poll() is None
        time.sleep(0.01)
    before = (tmp_path / "results.jsonl").read_text()
    first.kill()
    first.wait()
    left = [int(path.read_text()) for path in pids]
    second = driver(tmp_path, *jobs)
    assert second.communicate()[0] == "5\n"
    after = (tmp_path / "results.jsonl").read_text()
    assert before.count("\n") == 2 and after.startswith(before) and after.count("\n") == 5
    assert all(gone(pid) for pid in left)


def test_a_worker_that_hangs_for_good_ends_without_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.engine.process.START_SECONDS", 1.0)
    monkeypatch.setattr("onward.engine.process.GRACE", 1.0)
    job = Job("hangs for good", tmp_path)
    parent = os.fork()
    if not parent:
        with contextlib.suppress(BaseException):
            list(Local(1).map(Work(do, begin), [job], Limits(1)))
        os._exit(0)
    while not (job.file.exists() and job.file.read_text()):
        time.sleep(0.02)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert gone(int(job.file.read_text()))
