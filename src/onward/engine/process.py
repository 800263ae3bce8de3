"""A process that does one job after the other, watched from outside: a crash or a hang costs only one job."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from onward.engine.jobs import LONGEST, Done, Limits
from onward.errors import OnwardError
from onward.gate.budget import unwatched
from onward.gate.memory import private, taken

START_SECONDS = 300.0
"""What a worker may take before a job begins: to import a framework, say."""
LOOK = 0.2
"""Seconds between two looks at a worker's time and memory."""
GRACE = 5.0
"""Seconds in which a process that has closed its connection has to end."""
FRESH = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from onward.engine.process import serve_fresh
serve_fresh(*map(int, sys.argv[2:]))
"""
"""The program of a fresh process. Unlike `multiprocessing`, it does not import the caller's script once more."""

_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


class _Forked:
    """A copy of this process."""

    def __init__(self, work: bytes, longest: int) -> None:
        self.connection, end = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(work, end, os.getpid(), longest), daemon=True)
        self._process.start()
        end.close()
        self.pid: int = self._process.pid

    def is_running(self) -> bool:
        return self._process.exitcode is None

    def wait(self) -> int:
        self._process.join()
        return int(self._process.exitcode)


class _Fresh:
    """A new interpreter, for a process that has threads and so cannot be copied."""

    def __init__(self, work: bytes, longest: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", FRESH, json.dumps(sys.path), *map(str, (theirs.fileno(), os.getpid(), longest))],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.connection = Connection(ours.detach())
        self.pid = self._process.pid
        with contextlib.suppress(OSError):  # as below
            self.connection.send_bytes(work)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait()


@dataclass
class Worker:
    """A process, and the job that it is at. Jobs go in and answers come out pickled."""

    work: bytes
    limits: Limits
    fresh: bool = False
    """Whether it is a new interpreter, not a copy of this process."""
    job: Any = None
    """What the caller knows the job by; None while there is none."""
    jobs: int = 0
    """How many the process was given."""
    peak: int = 0
    _process: Any = field(init=False)
    _begun: float | None = None
    """When the job's work began, None before that."""
    _sent: float = 0.0
    _payload: bytes = b""
    _again: bool = False
    """Whether the job was begun anew, because the process was killed."""

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        longest = math.ceil(min(START_SECONDS + self.limits.seconds + GRACE, 1e9))
        try:
            self._process = (_Fresh if self.fresh else _Forked)(self.work, longest)
        except OSError as error:
            raise OnwardError(
                f"no further process can be started ({error.strerror or error}): do fewer jobs at a time"
            ) from error

    @property
    def connection(self) -> Connection:
        found: Connection = self._process.connection
        return found

    @property
    def pid(self) -> int:
        found: int = self._process.pid
        return found

    def send(self, job: Any, payload: bytes) -> None:
        self.jobs += 1
        self.job, self._payload, self._again = job, payload, False
        self._hand_over()

    def _hand_over(self) -> None:
        self._begun, self._sent, self.peak = None, time.monotonic(), 0
        with contextlib.suppress(OSError):  # a worker that is gone is noticed when its answer is read
            self.connection.send_bytes(self._payload)

    def look(self) -> Done | None:
        """What became of the job; None where it goes on."""
        gone = not self._process.is_running()  # before its answer is looked for, which may be its last
        if self.connection.poll():
            return self._answer()
        if gone:
            return self._ended()
        limits, takes = self.limits, family_takes(self.pid)
        if limits.memory is not None and takes > limits.memory:
            takes = family_adds(self.pid)  # a copy of a large process has all of that, until it is looked at closely
        self.peak = max(self.peak, takes)
        if limits.memory is not None and takes > limits.memory:
            if self.jobs > 1:  # what other jobs have left behind in the process is not its own
                self._anew()
                return None
            return Done(failure=f"took more than {size(limits.memory)}", kind="memory", **self._facts())
        started, limit = (self._sent, START_SECONDS) if self._begun is None else (self._begun, limits.seconds)
        if time.monotonic() - started <= limit:
            return None
        return Done(failure=f"timed out after {limit:g} s", kind="timeout", **self._facts())

    def _answer(self) -> Done | None:
        try:
            answer = self.connection.recv_bytes()
        except (EOFError, OSError):
            return self._ended()
        if not answer:
            self._begun = time.monotonic()
            return None
        done = unpacked(answer)
        return replace(done, peak=max(done.peak, self.peak))

    def _ended(self) -> Done | None:
        """It is gone. One that was killed is not to blame the first time: somebody, or the system, did it."""
        facts, end = self._facts(), time.monotonic() + GRACE
        while (lives := self._process.is_running()) and time.monotonic() < end:
            time.sleep(0.01)
        code = self._stop()
        if lives:
            return Done(failure="crash (it closed its connection and went on)", kind="crash", **facts)
        if code == -signal.SIGKILL and not self._again:
            self._again = True
            self._anew()
            return None
        why = " twice, most likely because the machine ran out of memory" if code == -signal.SIGKILL else ""
        return Done(failure=f"crash ({_ending(code)}{why})", kind="crash", **facts)

    def _anew(self) -> None:
        """Begin the job once more, in a process that has done nothing else."""
        self.renew()
        self.jobs = 1
        self._hand_over()

    def _facts(self) -> dict[str, Any]:
        seconds = 0.0 if self._begun is None else time.monotonic() - self._begun
        return {"seconds": seconds, "peak": self.peak}

    def renew(self) -> None:
        self.stop()
        self.jobs = 0
        self._start()

    def stop(self) -> None:
        """End it and whatever it started."""
        if not self.connection.closed:
            self._stop()

    def _stop(self) -> int:
        """Its exit code."""
        for pid in reversed(family(self.pid)) if self._process.is_running() else []:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it started, and has left behind
        self.connection.close()
        code: int = self._process.wait()
        return code


def unpacked(answer: bytes) -> Done:
    """What a worker has sent, which may hold what cannot be made here."""
    try:
        done: Done = pickle.loads(answer)
    except Exception as error:
        return Done(failure=f"crash (its result cannot be read: {in_a_line(error)})", kind="crash")
    return done


def in_a_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]


def family(pid: int) -> list[int]:
    """A process and all that it started, as far as the system tells."""
    found = [pid]
    for one in found:
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in path.read_text().split()]
    return found


def family_takes(pid: int) -> int:
    return sum(taken(one) or 0 for one in family(pid))


def family_adds(pid: int) -> int:
    """What a family has beside what its first one was given as a copy of this process.

    What several of them share is counted once, as far as it is more than this process has at all.
    """
    ours, own, shared = taken(os.getpid()) or 0, 0, 0
    for one in family(pid):
        has = taken(one) or 0
        alone = private(one)
        own += has if alone is None else alone
        shared = max(shared, 0 if alone is None else has - alone - ours)
    return own + shared


def size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def serve_fresh(descriptor: int, parent: int, longest: int) -> NoReturn:
    """The life of a fresh process."""
    connection = Connection(descriptor)
    _serve(connection.recv_bytes(), connection, parent, longest)
    os._exit(0)


def _serve(work: bytes, connection: Any, parent: int, longest: int) -> None:
    """A worker's life: for each job an empty message when it begins, and then what became of it.

    A job ends after `longest` seconds by the system's own clock: whoever watches the limits may be gone.
    """
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    let_go_first(parent)
    unwatched()
    _silence()
    begin, do = _unpacked(work)
    while True:
        try:
            payload = connection.recv_bytes()
        except EOFError:
            return
        signal.alarm(longest)
        connection.send_bytes(_done(begin, do, payload, lambda: connection.send_bytes(b"")))
        signal.alarm(0)


def _unpacked(work: bytes) -> tuple[Callable[[Any], None], Callable[[Any], Any]]:
    """What to do; where it is not found in this process, each job says so."""
    try:
        begin, do = pickle.loads(work)
        return begin, do
    except Exception as error:
        problem = error

        def refuse(_: Any) -> None:
            raise problem

        return refuse, refuse


def _done(begin: Callable[[Any], None], do: Callable[[Any], Any], payload: bytes, tell: Callable[[], None]) -> bytes:
    start = time.monotonic()
    _forget_peak()
    try:
        job = pickle.loads(payload)
        begin(job)
        tell()
        start = time.monotonic()
        done = Done(do(job), seconds=time.monotonic() - start, peak=_peak())
        return pickle.dumps(done)
    except MemoryError:
        done = Done(failure="ran out of memory", kind="memory")
    except Exception as error:
        done = Done(failure=f"crash ({in_a_line(error)})", kind="crash")
    return pickle.dumps(replace(done, seconds=time.monotonic() - start, peak=_peak()))


def _forget_peak() -> None:
    """The system counts the most memory anew from here."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _silence() -> None:
    """What runtimes print, or write as they crash, would run through the progress bar."""
    faulthandler.disable()
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (open as long as the process lives)
    for number in (1, 2):
        os.dup2(sys.stdout.fileno(), number)


def let_go_first(parent: int) -> None:
    """When the machine runs out of memory, this process goes before others; when its parent goes, it does too."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # with what it started
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
