"""What onnx-ir imports but hardly ever uses is imported when it is used.

For arithmetic with symbolic sizes it imports sympy, which takes longer than all the rest of onnx-ir, and most models
never need it. So while onnx-ir is imported, it is given modules that import what they stand for when something is asked
of them. Nobody else gets to see these.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PACKAGE = "onnx_ir"
DEFERRED = ("sympy", "onnx_ir._symbolic_shapes")
"""The second one reads the first as it is imported, and is not read itself before sizes are computed with."""


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)

    def leave(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


@contextmanager
def _stand_ins() -> Iterator[None]:
    made = [_StandIn(name) for name in DEFERRED if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in made})
    try:
        yield
    finally:
        for module in made:
            module.leave()


class _Finder(MetaPathFinder):
    """Finds what the import system finds, and has it executed among stand-ins."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == PACKAGE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_among_stand_ins(module: ModuleType) -> None:
                with _stand_ins():
                    execute(module)

            spec.loader.exec_module = execute_among_stand_ins  # type: ignore[method-assign]
        return spec


def defer() -> None:
    """From now on; what was imported before stays as it is."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
