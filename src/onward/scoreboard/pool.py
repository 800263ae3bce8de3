"""Jobs in worker processes, where a crash or a hang costs only the job that it happened in."""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")

LONGEST = 300
"""Characters of a message."""
START_SECONDS = 300.0
"""What a worker may take before a job begins: to import a framework, say."""
RENEWED = 200
"""Jobs after which a worker is begun anew: JAX keeps what it compiled, and a suite of that takes gigabytes."""

_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


@dataclass(frozen=True)
class Done:
    """What became of a job."""

    value: Any = None
    """What the work returned, where it did."""
    failure: str = ""
    """Otherwise: 'crash (SIGSEGV)', 'crash (ImportError: …)' or 'timed out after 60 s'."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Work(Generic[Job]):
    """What workers do, as functions of a module (they may have to be found again in a new process)."""

    do: Callable[[Job], Any]
    begin: Callable[[Job], None]
    """Called before, outside the time limit."""


@dataclass
class _Worker(Generic[Job]):
    work: Work[Job]
    process: Any = field(init=False)
    connection: Any = field(init=False)
    job: Job | None = None
    begun: float | None = None
    """When the job's work began, None before that."""
    sent: float = 0.0
    jobs: int = 0
    """How many the process was given."""

    def __post_init__(self) -> None:
        self.connection, end = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(self.work, end), daemon=True)
        self.process.start()
        end.close()

    def send(self, job: Job) -> None:
        self.jobs += 1
        self.job, self.begun, self.sent = job, None, time.monotonic()
        with suppress(OSError):  # a worker that is gone is noticed when its answer is read
            self.connection.send(job)

    def late(self, seconds: float) -> bool:
        started, limit = (self.sent, START_SECONDS) if self.begun is None else (self.begun, seconds)
        return self.job is not None and time.monotonic() - started > limit

    def renew(self) -> None:
        self.stop()
        self.jobs = 0
        self.__post_init__()

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


def _serve(work: Work[Any], connection: Any) -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _silence()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        start = time.monotonic()
        try:
            work.begin(job)
            connection.send(None)
            start = time.monotonic()
            done = Done(work.do(job))
        except Exception as error:
            done = Done(failure=f"crash ({' '.join(f'{type(error).__name__}: {error}'.split())[:LONGEST]})")
        connection.send(replace(done, seconds=time.monotonic() - start))


def _silence() -> None:
    """What runtimes print, or write as they crash, would run through the progress bar."""
    faulthandler.disable()
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (open as long as the process lives)
    for number in (1, 2):
        os.dup2(sys.stdout.fileno(), number)


def run(work: Work[Job], jobs: Iterable[Job], processes: int, seconds: float) -> Iterator[tuple[Job, Done]]:
    """Do each job, `processes` at a time, none for longer than `seconds`; yields them as they are done.

    An exception that the work does not catch counts as a crash.
    """
    waiting = deque(jobs)
    workers = [_Worker(work) for _ in range(min(processes, len(waiting)))]
    try:
        for worker in workers:
            worker.send(waiting.popleft())
        while busy := [worker for worker in workers if worker.job is not None]:
            ready = set(multiprocessing.connection.wait([worker.connection for worker in busy], timeout=0.2))
            for worker in busy:
                done = _answer(worker) if worker.connection in ready else _overdue(worker, seconds)
                if done is None:
                    continue
                job, worker.job = worker.job, None
                if done.failure or worker.jobs >= RENEWED:
                    worker.renew()
                if waiting:
                    worker.send(waiting.popleft())
                assert job is not None
                yield job, done
    finally:
        for worker in workers:
            worker.stop()


def _answer(worker: _Worker[Any]) -> Done | None:
    """None where the worker only says that it has begun."""
    try:
        done = worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        return Done(failure=f"crash ({_ending(worker.process.exitcode)})", seconds=_spent(worker))
    if done is None:
        worker.begun = time.monotonic()
    assert done is None or isinstance(done, Done)
    return done


def _overdue(worker: _Worker[Any], seconds: float) -> Done | None:
    if not worker.late(seconds):
        return None
    limit = START_SECONDS if worker.begun is None else seconds
    return Done(failure=f"timed out after {limit:g} s", seconds=_spent(worker))


def _spent(worker: _Worker[Any]) -> float:
    return 0.0 if worker.begun is None else time.monotonic() - worker.begun


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
