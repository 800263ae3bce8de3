"""Starts workers on this machine, watches them, and starts all anew where one was lost."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawArray
from typing import Any, TypeVar

from onward.errors import OnwardError
from onward.training.parallel.same_machine import SameMachine, bytes_shared
from onward.training.parallel.transports import TIMEOUT
from onward.training.parallel.workers import OF_OTHERS, LostWorkerError, Reduce

T = TypeVar("T")
Work = Callable[[Reduce], T]
GRACE = 10.0
"""Seconds in which workers notice by themselves that one has failed."""


def on_workers(
    work: Work[T],
    count: int,
    *,
    restarts: int = 0,
    again: Callable[[], Work[T]] | None = None,
    timeout: float = TIMEOUT,
    tell: Callable[[str], None] = lambda message: None,
) -> T:
    """Run `work(reduce)` in so many processes of this machine at once; gives what it returns in worker 0.

    `work` is a function of a module, or a `functools.partial` of one: each process imports it. If a process is
    killed, or does not answer for `timeout` seconds, all are ended and started anew, up to `restarts` times, with what
    `again` gives if it is given; `tell` is told so. An error of a worker ends all, and is raised here.
    """
    if count < 1 or restarts < 0:
        raise OnwardError(f"{count} workers, {restarts} restarts: give at least 1 worker, and no negative number")
    for made in range(restarts + 1):
        try:
            with _Team(work, count, timeout) as team:
                result: T = team.result()
                return result
        except LostWorkerError as error:
            if made == restarts:
                after = f" after {restarts} restarts" if restarts else ""
                raise LostWorkerError(f"{error}{after}") from error
            tell(f"{error}; all workers start anew ({made + 1} of at most {restarts} times)")
            work = again() if again is not None else work
    raise AssertionError("not reached")


@dataclass
class _Worker:
    number: int
    process: BaseProcess
    results: Connection
    said: list[Any] = field(default_factory=list)
    """What it returned, or the error that it raised."""

    def hear(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while self.results.poll():
                self.said.append(self.results.recv())


class _Team:
    """The processes of one attempt; none of them is left behind."""

    def __init__(self, work: Work[Any], count: int, timeout: float) -> None:
        context = multiprocessing.get_context("spawn")
        memory = RawArray("b", bytes_shared(count))
        pairs = [context.Pipe() for _ in range(count - 1)]
        self._workers: list[_Worker] = []
        for number in range(count):
            peers = [pairs[number - 1][1]] if number else [ours for ours, _ in pairs]
            mine, results = context.Pipe(duplex=False)
            messages = _messages()
            given = (work, number, count, memory, peers, timeout, results, messages)
            process = context.Process(target=_worker, args=given, daemon=True)
            process.start()
            results.close()
            messages.close()
            self._workers.append(_Worker(number, process, mine))
        for pair in pairs:
            for end in pair:
                end.close()

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, *problem: object) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def result(self) -> Any:
        with self._interrupts():
            self._watch()
        errors = [(w.number, w.said[0]) for w in self._workers if w.said and isinstance(w.said[0], BaseException)]
        first = [found for found in errors if not isinstance(found[1], OF_OTHERS)]
        if first:
            raise _by(*first[0])
        for worker in self._workers:
            if not worker.said and not worker.process.is_alive():
                raise LostWorkerError(f"worker {worker.number} {_ended(worker.process.exitcode)}")
        if errors:
            raise _by(*errors[0])
        return self._workers[0].said[0]

    def _watch(self) -> None:
        """Until all have ended, or some have had time to notice that one has failed."""
        until = None
        while running := [worker for worker in self._workers if worker.process.is_alive()]:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            ready = connection.wait(
                [w.process.sentinel for w in running] + [w.results for w in running if not w.said], left
            )
            for worker in self._workers:
                worker.hear()
                if worker.process.sentinel in ready and not worker.said:
                    worker.process.join()
                    worker.hear()
                    if not worker.said:
                        return
            if until is None and any(
                isinstance(worker.said[0], BaseException) for worker in self._workers if worker.said
            ):
                until = time.monotonic() + GRACE

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        """The first Ctrl-C is passed on to worker 0, whose wish to stop all follow; a second one ends all."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        pressed = False

        def note(number: int, frame: object) -> None:
            nonlocal pressed
            if pressed:
                raise KeyboardInterrupt
            pressed = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._workers[0].process.pid or 0, signal.SIGINT)

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _messages() -> Connection:
    """Where Python writes messages to in this process, for a child: standard error itself may lead nowhere."""
    try:
        return Connection(os.dup(sys.stderr.fileno()), readable=False)
    except (OSError, ValueError, AttributeError):
        return Connection(os.dup(2), readable=False)


def _by(number: int, error: BaseException) -> BaseException:
    """The error, with the number of the worker unless it is the first."""
    return type(error)(f"worker {number}: {error}") if number and isinstance(error, OnwardError) else error


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with the code {code}"


def _worker(
    work: Work[Any],
    number: int,
    size: int,
    memory: Any,
    peers: list[Connection],
    timeout: float,
    results: Connection,
    messages: Connection,
) -> None:
    """What runs in a process."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C reaches the parent only, which passes it on
    os.dup2(messages.fileno(), 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        said = work(SameMachine(number, size, memory, peers, timeout))
    except BaseException as error:
        said = error
    try:
        results.send(said)
    except Exception as error:  # what cannot be sent is told of
        results.send(OnwardError(f"{type(said).__name__}: {said} ({error})"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
