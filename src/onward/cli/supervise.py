"""A command works in a process of its own, so that whatever ends that process ends in one line.

The readers of frameworks and their kernels are written in C++, and a file that is damaged, or made to do so, can crash
them or keep them busy for ever. The process is forked before anything is imported, which takes a few milliseconds.
What is asked of it from outside (an interrupt, the end of the terminal) is passed on; it ends when its watcher does.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from onward.errors import OnwardError
from onward.gate import budget
from onward.gate.bounds import MEMORY
from onward.gate.memory import taken

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
INTERVAL = 0.25
"""Seconds between two looks at the memory of the process."""
SET_PARENT_DEATH_SIGNAL = 1
SELDOM = (100_000, 20, 100)
"""How many objects are made between two looks for garbage. The import of a framework makes many, none of it garbage."""


def supervised(work: Callable[[], int]) -> int:
    """The exit code of `work`; 2 where it crashed, was stopped, or took too much of the machine."""
    if sys.platform != "linux":
        return work()
    try:
        most = MEMORY.value or _free()
    except OnwardError as error:
        print(f"onward: {error}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = os.pipe()
    watcher = os.getpid()
    process = os.fork()
    if process:
        os.close(theirs)
        return _Watch(process, ours, most).ended()
    os.close(ours)
    _end_with(watcher)
    budget.watched_through(theirs)
    gc.set_threshold(*SELDOM)
    code = work()
    budget.announce(code=code)  # a framework that crashes while it is unloaded changes nothing
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End as Python does, but leave it to the system to take what is in memory: frameworks take long to unload."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _end_with(watcher: int) -> None:
    """End when the watcher does, and be the first to go when the machine runs out of memory."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != watcher:
        os._exit(1)
    with contextlib.suppress(OSError, ValueError):
        Path("/proc/self/oom_score_adj").write_text("500")


class _Watch:
    """Over one process, until it has ended."""

    def __init__(self, process: int, pipe: int, most: int) -> None:
        self._process, self._pipe, self._most = process, pipe, most
        self._facts: dict[str, Any] = {}
        self._heard = b""
        for number in PASSED_ON:
            signal.signal(number, self._pass_on)

    def ended(self) -> int:
        handle = os.pidfd_open(self._process)
        os.set_blocking(self._pipe, False)
        problem = ""
        while not select.select([handle], [], [], INTERVAL)[0]:
            self._hear()
            if problem := self._problem():
                os.kill(self._process, signal.SIGKILL)
                break
        status = os.waitpid(self._process, 0)[1]
        self._hear()
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        if "code" in self._facts:
            return int(self._facts["code"])
        if problem:
            return self._say(problem)
        return self._signalled(os.WTERMSIG(status))

    def _problem(self) -> str:
        """Why the process has to be stopped; empty where it need not be."""
        until = self._facts.get("until")
        if until is not None and time.monotonic() > until:
            return (
                f"took longer than {self._facts['seconds']:g} s and could not be interrupted;"
                " --timeout SECONDS gives it more time"
            )
        if (taken(self._process) or 0) > self._most and "until" in self._facts:
            return (
                f"needs more than the {self._most / 1e9:.1f} GB of memory that are free;"
                f" {MEMORY.variable}=BYTES sets another bound"
            )
        return ""

    def _signalled(self, number: int) -> int:
        if number in PASSED_ON or number == signal.SIGPIPE:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if number == signal.SIGKILL:
            return self._say("was killed, most likely because the machine ran out of memory")
        name = signal.Signals(number).name
        return self._say(f"a framework crashed with {name}: the file is damaged, or the framework has a defect")

    def _say(self, problem: str) -> int:
        start = "\x1b[?25h\r\x1b[K" if sys.stderr.isatty() else ""
        doing = self._facts.get("doing")
        step, written = (f"{doing}: ", "; nothing was written") if doing else ("", "")
        print(f"{start}onward: {step}{problem}{written}", file=sys.stderr)
        return 2

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while heard := os.read(self._pipe, 1 << 16):
                self._heard += heard
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            self._facts |= json.loads(line)

    def _pass_on(self, number: int, frame: object) -> None:
        """To the process, unless the terminal has sent it to both."""
        with contextlib.suppress(OSError):
            if number == signal.SIGINT and os.tcgetpgrp(2) == os.getpgrp():
                return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, number)


def _free() -> int:
    """Bytes that can be taken before the machine has to swap, or this group of processes reaches its limit."""
    free = next(
        1024 * int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        free = min(free, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return free
