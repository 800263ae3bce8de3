"""Runs a model in a process of its own, so that a crash or a hang of a runtime is a result and not the end."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import IO, Any, NoReturn

from onward.engine.process import let_go_first, size
from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.gate.memory import taken
from onward.runners.calls import Inputs, Outputs, Run, brief

Make = Callable[[], tuple[Run, Any]]
"""What is sent to the process to make the run there, and facts about it to be sent back; it has to be picklable."""

INTERVAL = 0.05
"""Seconds between two looks at the memory of a process."""
START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from onward.runners.isolate import serve
serve(*map(int, sys.argv[2:]))
"""
"""The program of the process. Unlike `multiprocessing`, it does not import the user's script once more."""


class Isolated:
    """A run that takes place in another process, which is closed when this object, or the program, goes."""

    def __init__(
        self, make: Make, *, seconds: float | None = None, memory: int | None = None, owns: object = None
    ) -> None:
        """`owns` is kept for as long as the process may be started anew: the folder of a temporary file."""
        if os.name != "posix":
            raise UnsupportedError("a process of its own for a runtime needs Linux or macOS")
        if memory is not None and taken(os.getpid()) is None:
            raise UnsupportedError("a limit of memory needs Linux")
        self._make, self._seconds, self._limit, self._owns = make, seconds, memory, owns
        self._process: _Process | None = None
        self._stop: Callable[[], None] = lambda: None
        self._start()

    @property
    def facts(self) -> Any:
        """What was found out about the run when it was made."""
        return self._facts

    def __call__(self, inputs: Inputs) -> Outputs:
        outputs: Outputs = self._ask(self._process or self._start(), inputs)
        return outputs

    def close(self) -> None:
        """End the process; another run starts a fresh one."""
        self._stop()
        self._process = None

    def _start(self) -> _Process:
        process = _Process()
        self._stop = weakref.finalize(self, process.stop)
        self._process = process
        self._facts = self._ask(process, self._make)
        return process

    def _ask(self, process: _Process, question: Any) -> Any:
        try:
            succeeded, answer = process.ask(question, self._seconds, self._limit)
        except BaseException:
            self.close()
            raise
        if not succeeded:
            if question is self._make:
                self.close()
            raise answer
        return answer


class _Process:
    """An interpreter that answers one question at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())

    def ask(self, question: Any, seconds: float | None, memory: int | None) -> tuple[bool, Any]:
        """Whether it succeeded, and the answer or the error."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            self._connection.send(question)
            while not self._connection.poll(INTERVAL):
                if end is not None and time.monotonic() > end:
                    raise RunFailure(f"took longer than {seconds:g} s")
                if memory is not None and (taken(self._process.pid) or 0) > memory:
                    raise RunFailure(f"needs more than {size(memory)}")
            answer: tuple[bool, Any] = self._connection.recv()
        except (EOFError, OSError) as error:
            raise RunFailure(self._end()) from error
        return answer

    def stop(self) -> None:
        """End it and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._connection.close()
        self._errors.close()

    def _end(self) -> str:
        """How it came to its end."""
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit code {code}{self._last_words()}"
        if -code == signal.SIGKILL:
            return "was killed, most likely because the machine ran out of memory"
        return f"crashed with signal {signal.Signals(-code).name}{self._last_words()}"

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last[:200]}" if last else ""


def serve(descriptor: int, parent: int) -> NoReturn:
    """The process: makes the run out of the first question, and answers the others with it."""
    let_go_first(parent)
    connection = Connection(descriptor)
    run: Run | None = None
    while True:
        try:
            question = connection.recv_bytes()
        except EOFError:
            os._exit(0)
        try:
            asked = pickle.loads(question)
            if run is None:
                run, answer = asked()
            else:
                answer = run(asked)
            connection.send((True, answer))
        except OnwardError as error:
            connection.send((False, error))
        except Exception as error:
            connection.send((False, RunFailure(brief(error))))
