"""Runs generated source in memory, so that tracebacks show it."""

from __future__ import annotations

import itertools
import linecache
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.backends.emit.package import Source

GENERATED = "onward_generated"
"""What the names of all generated modules begin with."""
_COUNT = itertools.count(1)


def execute(source: Source) -> types.ModuleType:
    """A package of the generated modules: `model`, and `ops` where there is one."""
    name = f"{GENERATED}_{next(_COUNT)}"
    package = types.ModuleType(name)
    package.__path__ = []
    sys.modules[name] = package
    if source.ops is not None:
        package.ops = _module(f"{name}.ops", source.ops)  # type: ignore[attr-defined]
    package.model = _module(f"{name}.model", source.model)  # type: ignore[attr-defined]
    return package


def _module(name: str, text: str) -> types.ModuleType:
    module = sys.modules[name] = types.ModuleType(name)
    run_in(module, text)
    return module


def run_in(module: types.ModuleType, text: str) -> None:
    """Let a new module be what its source makes of it."""
    module.__file__ = f"<{module.__name__}>"
    module.__package__ = module.__name__.rpartition(".")[0]
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
