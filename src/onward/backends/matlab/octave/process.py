"""One process of Octave for all packages that this process runs; it is started anew where it hangs or dies."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import weakref
from pathlib import Path
from queue import Empty, Queue

from onward.errors import MissingPackageError, RunFailure

PROGRAM = "octave-cli"
FLAGS = ("--norc", "--no-history", "--no-window-system", "--quiet")
SECONDS = 1800.0
"""The longest that a call may take."""
LONGEST = 2000
"""Characters of an error message."""


State = tuple[tuple[str, int, int], ...]
"""The files of a package, each with the time at which it was written and its size."""


class Process:
    """Octave, which reads what to do line by line. Arguments and results go by files."""

    def __init__(self, threads: int | None = None) -> None:
        program = shutil.which(PROGRAM)
        if program is None:
            raise MissingPackageError("GNU Octave is not installed: apt-get install octave libopenblas0")
        self.folder = Path(tempfile.mkdtemp(prefix="onward-octave-"))
        self._token = f"onward-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        environment = dict(os.environ)
        if threads is not None:
            environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        self._octave = subprocess.Popen(
            [program, *FLAGS, "--path", str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=environment,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._said: Queue[str | None] = Queue()
        threading.Thread(target=_listen, args=(self._octave, self._said), daemon=True).start()
        self._finalizer = weakref.finalize(self, _end, os.getpid(), self._octave, self.folder)
        self._send("warning('off', 'all'); page_screen_output(false); more('off');")
        self.unread: list[str] = []
        """The ids of what nobody needs any more."""
        self.packages: dict[str, State] = {}
        """The packages it knows, each with the state of its files: Octave knows one of a name, as it was first read."""

    @property
    def is_alive(self) -> bool:
        return self._finalizer.alive and self._octave.poll() is None

    def do(self, action: str, *arguments: str | int, seconds: float = SECONDS) -> None:
        """Call a function of ours; raises `RunFailure` with what Octave says."""
        with self._lock:
            while self.unread:
                self._send(f"onward_kept('free', {quoted(self.unread.pop())});")
            problem = self.folder / "problem.txt"
            problem.unlink(missing_ok=True)
            try:
                self._send(f"onward_do({', '.join(map(quoted, (self._token, str(problem), action, *arguments)))});")
                status = self._answer(seconds)
            except BaseException:  # whatever it was doing, nobody waits for it any more
                self.end()
                raise
        if status != "ok":
            text = problem.read_text("utf-8", errors="replace") if problem.exists() else "it says nothing"
            raise RunFailure(f"Octave: {text[:LONGEST]}")

    def end(self) -> None:
        self._finalizer()

    def _send(self, line: str) -> None:
        assert self._octave.stdin is not None
        try:
            self._octave.stdin.write(line + "\n")
            self._octave.stdin.flush()
        except (BrokenPipeError, OSError) as error:
            raise RunFailure(f"Octave has ended with code {self._octave.poll()}") from error

    def _answer(self, seconds: float) -> str:
        """The word after our token; what else is printed does not matter."""
        while True:
            try:
                line = self._said.get(timeout=seconds)
            except Empty:
                raise RunFailure(f"Octave did not answer within {seconds:g} seconds, and was ended") from None
            if line is None:
                raise RunFailure(f"Octave has ended with code {self._octave.wait()}")
            if line.startswith(self._token + " "):
                return line.split()[1]


def _listen(octave: subprocess.Popen[str], said: Queue[str | None]) -> None:
    assert octave.stdout is not None
    for line in octave.stdout:
        said.put(line)
    said.put(None)


def _end(owner: int, octave: subprocess.Popen[str], folder: Path) -> None:
    if os.getpid() != owner:
        return  # a copy of the process that started it
    octave.kill()
    octave.wait()
    shutil.rmtree(folder, ignore_errors=True)


def quoted(argument: str | int) -> str:
    """A literal of Octave, in which nothing ends the text early."""
    if isinstance(argument, int):
        return str(argument)
    if not argument.isprintable():
        raise RunFailure(f"Octave cannot be told of {argument!r}")
    return "'" + argument.replace("'", "''") + "'"


COUNT = itertools.count(1)
_running: dict[int, Process] = {}
_threads: list[int] = []


def use_threads(count: int) -> None:
    """Let processes that start from now on compute with so many threads."""
    _threads[:] = [count]


def process(package: str = "", state: State = ()) -> Process:
    """The process of Octave, started if there is none, or if it knows a package of this name in another state."""
    own = _running.get(os.getpid())
    taken = own is not None and own.packages.get(package, state) != state
    if own is None or not own.is_alive or taken:
        if own is not None and not taken:
            own.end()
        _running.clear()
        own = _running[os.getpid()] = Process(*_threads)
    return own
