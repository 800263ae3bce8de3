"""The C compiler of the machine, and what it has compiled so far."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

from onward.gate.files import is_own

SWITCH = "ONWARD_KERNELS"
"""The environment variable that turns compiled kernels off: 0."""
FLAGS = ("-O3", "-march=native", "-fopenmp-simd", "-std=gnu11", "-shared", "-fPIC", "-w")
EXACT = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""Each operation rounds as the graph's; only error numbers and exceptions of the C library are given up."""


def chosen(choice: bool | None) -> bool:
    """Whether a step may run in faster forms than its graph says: as chosen, or by the environment."""
    if choice is None:
        return os.environ.get(SWITCH, "1").lower() not in ("0", "false", "off", "no")
    return choice


def wanted(choice: bool | None) -> bool:
    """Whether kernels are to be used; never without a compiler."""
    return chosen(choice) and compiler() is not None


@cache
def compiler() -> str | None:
    """The path of the compiler, if there is one that works."""
    return None if platform.system() == "Windows" else shutil.which(os.environ.get("CC") or "cc")


@cache
def _machine() -> str:
    """What compiled code depends on besides its source."""
    path = compiler()
    assert path is not None
    version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = "\n".join(
            line for line in dict.fromkeys(lines) if line.startswith(("model name", "flags", "Features"))
        )
    except OSError:
        processor = platform.processor()
    return "\n".join((path, version, *FLAGS, *EXACT, platform.platform(), processor))


def library(source: str) -> Path | None:
    """The shared library of a C source, compiled unless it is known from before; None where that fails."""
    if compiler() is None:
        return None
    try:
        digest = hashlib.sha256(f"{_machine()}\n{source}".encode()).hexdigest()[:32]
        folder = _folder()
        path = folder / f"{digest}.so"
        return path if is_own(path, stat.S_ISREG) or _compiled(source, path) else None
    except (OSError, subprocess.SubprocessError):
        return None


def marker(key: str) -> Path:
    """A file among what is compiled whose existence says something about `key`."""
    return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.works"


def loaded(source: str) -> ctypes.CDLL | None:
    """The same, loaded."""
    path = library(source)
    try:
        return None if path is None else ctypes.CDLL(str(path))
    except OSError:
        return None


@cache
def _folder() -> Path:
    """The user's own folder for what is compiled, which nobody else can write to; one for this process where it can."""
    default = Path.home() / ("Library/Caches" if platform.system() == "Darwin" else ".cache")
    above = Path(os.environ.get("XDG_CACHE_HOME") or default) / "onward"
    path = above / "kernels"
    try:
        above.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(exist_ok=True, mode=0o700)
        shared = next((place for place in (path, above) if not is_own(place, stat.S_ISDIR)), None)
        if shared is None and os.access(path, os.W_OK | os.X_OK):
            return path
        if shared is not None:
            warnings.warn(
                f"{shared}: it is not a folder that only you can write to, so kernels that were compiled before are not"
                " used; remove it, or take the rights of others away (chmod go-w)",
                stacklevel=2,
            )
    except OSError:
        pass
    return Path(_temporary().name)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """It goes with the process."""
    return tempfile.TemporaryDirectory(prefix="onward-kernels-")


def _compiled(source: str, path: Path) -> bool:
    """Compile beside the path and move it there: another process sees all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        text, made = Path(scratch) / "kernels.c", Path(scratch) / "kernels.so"
        text.write_text(source)
        command = [compiler() or "cc", *FLAGS, *EXACT, str(text), "-o", str(made), "-lm"]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        if done.returncode:
            return False
        made.chmod(0o700)
        made.replace(path)
    return True
