"""Time that a piece of work may take.

When it is over, what runs is stopped in two ways: from inside, by an exception in the thread that works and by whatever
interrupts a runtime that is asked to; and, where that is to no avail, from outside, by the process that watches this
one, if there is one (see `onward.cli.supervise`).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from onward.advice.options import option
from onward.errors import RunFailure

GRACE = 10.0
"""Seconds that work has to end after it was told to."""
AGAIN = 1.0
"""Seconds after which it is told again."""
SECONDS = 600.0
"""What each step of a conversion may take, unless the user says otherwise."""

_stops: set[Callable[[], None]] = set()
_watcher: list[int] = []
"""The pipe to the process that watches this one."""


class OutOfTime(BaseException):
    """Raised in the thread that works; no `except Exception` on the way takes it for a failure of something else."""


def watched_through(descriptor: int) -> None:
    """From now on, the process at the other end of a pipe is told what this one does."""
    _watcher[:] = [descriptor]


def unwatched() -> None:
    """What was forked from a process that is watched is not: its own limits are kept by whoever forked it."""
    _watcher.clear()


def announce(**facts: object) -> None:
    """Tell the process that watches this one, if there is one."""
    for descriptor in _watcher:
        with suppress(OSError):
            os.write(descriptor, (json.dumps(facts) + "\n").encode())


@contextmanager
def within(seconds: float, what: str, doing: str = "", *, watched: bool = True) -> Iterator[None]:
    """Inside, time is limited; a `RunFailure` says that `what` took longer. `doing` is what a watcher says is done.

    What is not `watched` stands within other work that is, and that goes on without it.
    """
    thread, done, told, lock = threading.get_ident(), threading.Event(), threading.Event(), threading.Lock()

    def stop() -> None:
        left = seconds
        while not done.wait(left):
            left = AGAIN
            with lock:
                if done.is_set():
                    return
                for interrupt in list(_stops):
                    interrupt()
                told.set()
                _raise_in(thread, OutOfTime)

    timer = threading.Thread(target=stop, daemon=True)
    if watched:
        announce(doing=doing or what, until=time.monotonic() + seconds + GRACE, seconds=seconds)
    timer.start()
    try:
        try:
            yield
        finally:
            with lock:
                done.set()
                if told.is_set():  # Python is slower after this, and hangs under a profiler
                    _raise_in(thread, None)
            if watched:
                announce(until=None)
    except OutOfTime:
        more = option("timeout", math.ceil(2 * seconds))
        raise RunFailure(f"{what} took longer than {seconds:g} s; {more} gives it more time") from None


@contextmanager
def stopped_by(interrupt: Callable[[], None]) -> Iterator[None]:
    """Inside, a runtime works that leaves Python only when `interrupt`, called on another thread, makes it."""
    _stops.add(interrupt)
    try:
        yield
    finally:
        _stops.discard(interrupt)


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Raise an exception in a thread, or take back one that it has not seen yet."""
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
