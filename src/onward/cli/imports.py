"""What frameworks import for whoever may want it, and a command does not: half of the time that they take to load."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

IDLE: Mapping[str, frozenset[str]] = {
    "tensorflow": frozenset({"keras"}),
    "keras": frozenset({"pandas", "sklearn"}),
}
"""By package: what it tries to import while it is loaded, and does without."""


class Lean:
    """Finds those, but does not let them be loaded; whoever asks for them before or afterwards gets them."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if not any(name in idle and _is_loading(package) for package, idle in IDLE.items()):
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None:
            found.loader = LeftOut()
        return found


class LeftOut(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ModuleNotFoundError(f"{spec.name} is left out", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        raise AssertionError("no module was created")


def _is_loading(package: str) -> bool:
    spec = getattr(sys.modules.get(package), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def load_lean() -> None:
    """From now on, in this process."""
    sys.meta_path.insert(0, Lean())
