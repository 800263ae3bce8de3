"""Looks into a file in another process, for libraries that were seen to crash or to hang on damaged ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from onward.errors import InvalidModelError

SECONDS = 30.0
"""What it may take to look through a file, beside what it takes to read it."""
SPEED = 20e6
"""Bytes that are read in a second, at least."""
START = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
print(getattr(importlib.import_module(sys.argv[2]), sys.argv[3])(sys.argv[4]), end="")
"""


def apart(path: Path, module: str, function: str, what: str, library: str) -> str:
    """What a function of a module says of a file; raises where the library crashes on it, hangs or refuses it."""
    seconds = SECONDS + path.stat().st_size / SPEED
    command = [sys.executable, "-I", "-S", "-c", START, json.dumps(sys.path), module, function, str(path.absolute())]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise InvalidModelError(
            f"{path}: {what} is damaged: {library} was still reading it after {seconds:.0f} s"
        ) from None
    if done.returncode < 0:
        raise InvalidModelError(f"{path}: {what} is damaged: {library} crashes on it")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InvalidModelError(f"{path}: {what} is damaged: {last}")
    return done.stdout
