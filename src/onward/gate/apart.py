"""Looks into a file in another process, for libraries that were seen to crash or to hang on damaged ones."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

from onward.errors import InvalidModelError

SECONDS = 30.0
"""Of a processor: what it may take to look through a file, beside what it takes to read it."""
SPEED = 20e6
"""Bytes that are read in a second, at least."""
PATIENCE = 20
"""How many times as long it may take by the clock: a busy machine makes no file a damaged one."""
START = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[5]), resource.getrlimit(resource.RLIMIT_CPU)[1]))
except (ImportError, ValueError):
    pass  # Windows has no such limit; and one that is tighter already stays
print(getattr(importlib.import_module(sys.argv[2]), sys.argv[3])(sys.argv[4]), end="")
"""


def apart(path: Path, module: str, function: str, what: str, library: str) -> str:
    """What a function of a module says of a file; raises where the library crashes on it, hangs or refuses it."""
    seconds = int(SECONDS + path.stat().st_size / SPEED)
    asked = [json.dumps(sys.path), module, function, str(path.absolute()), str(seconds)]
    hangs = f"{path}: {what} is damaged: {library} was still reading it after {seconds} s"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", START, *asked],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE * seconds,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise InvalidModelError(hangs) from None
    if done.returncode == -getattr(signal, "SIGXCPU", math.inf):
        raise InvalidModelError(hangs)
    if done.returncode < 0:
        raise InvalidModelError(f"{path}: {what} is damaged: {library} crashes on it")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InvalidModelError(f"{path}: {what} is damaged: {last}")
    return done.stdout
