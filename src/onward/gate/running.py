"""The one way in which source code that lies in a file is executed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from onward.gate.files import ordinary
from onward.gate.trust import is_trusted, need_trust
from onward.gate.written import is_written

FOREIGN = "code, and not as Onward wrote it on this machine"


def foreign(path: Path, language: str = "Python") -> Iterator[str]:
    """A danger if the source was not written by Onward here, or was changed since."""
    if not is_written(ordinary(path).read_bytes()):
        yield f"{path.name} is {language} {FOREIGN}"


def own_source(path: Path, language: str = "Python") -> bytes:
    """The source in a file that Onward wrote or that is trusted: what is executed is what was checked."""
    source = ordinary(path).read_bytes()
    if not is_written(source):
        need_trust(path, f"it is {language} {FOREIGN}")
    return source


def allow_beside(path: Path) -> None:
    """Let modules beside a trusted file, and in the current folder, be imported by it, after all that is installed."""
    if is_trusted():
        sys.path += [str(place) for place in (path.absolute().parent, Path.cwd()) if str(place) not in sys.path]


def run_source(path: Path, name: str) -> ModuleType:
    """A new module of this name, made of the source in a file that Onward wrote or that is trusted.

    The file is read once, and no bytecode beside it is used.
    """
    source = own_source(path)
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return module
