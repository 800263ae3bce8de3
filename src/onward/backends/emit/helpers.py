"""Runtime helpers: plain functions of a backend's `runtime` package whose source is copied into generated code.

What several backends do in numpy and Python alone is in one package for all. A backend's own package says in its
`__init__.py` which files of it belong to it: `from onward.backends.shared.runtime import string as string`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from sys import stdlib_module_names

from onward.errors import UnsupportedError

COMMON = "onward.backends.shared.runtime"
ONWARD = "onward."
"""Generated code imports nothing of it: what helpers need of other files is copied."""


@dataclass(frozen=True)
class Definition:
    """A top-level function, class or constant of a runtime module."""

    name: str
    source: str
    needs: frozenset[str]
    position: tuple[str, bool, int]


@dataclass(frozen=True)
class Runtime:
    """All definitions of a runtime package, and the import line that makes each foreign name known."""

    definitions: dict[str, Definition]
    imports: dict[str, str]

    def source(self, wanted: set[str], header: str) -> str:
        """A module with the wanted helpers, what they need, and the imports they need."""
        imports, definitions = self.chosen(wanted)
        lines = sort_imports(imports)
        gap = "\n\n\n" if definitions[0].startswith(("def ", "class ", "@")) else "\n\n"
        return "\n".join([f'"""{header}"""', "", *lines]) + gap + "\n\n\n".join(definitions) + "\n"

    def joined(self, definitions: Mapping[str, Definition], imports: Mapping[str, str]) -> Runtime:
        """With further definitions, and the imports that they need."""
        for name in definitions.keys() & self.definitions.keys():
            if definitions[name].source != self.definitions[name].source:
                raise UnsupportedError(f"a plugin defines {name!r}, which generated code has already: rename it")
        for name in imports.keys() & self.imports.keys():
            if imports[name] != self.imports[name]:
                raise UnsupportedError(
                    f"a plugin says `{imports[name]}`, generated code `{self.imports[name]}`: import it alike"
                )
        return Runtime({**self.definitions, **definitions}, {**self.imports, **imports})

    def replaced(self, by: Runtime) -> Runtime:
        """With what another one says in another way, under the same names."""
        return Runtime({**self.definitions, **by.definitions}, {**self.imports, **by.imports})

    def chosen(self, wanted: set[str]) -> tuple[set[str], list[str]]:
        """The imports that the wanted helpers need, and the text of each of these and of what they need."""
        chosen: dict[str, Definition] = {}
        queue = sorted(wanted)
        imports: set[str] = set()
        while queue:
            name = queue.pop()
            if name in chosen:
                continue
            definition = chosen[name] = self.definitions[name]
            for need in sorted(definition.needs):
                if need in self.definitions:
                    queue.append(need)
                elif need in self.imports:
                    imports.add(self.imports[need])
        return imports, [d.source for d in sorted(chosen.values(), key=lambda d: d.position)]


def sort_imports(imports: set[str]) -> list[str]:
    """Standard library first, then the rest; each block sorted, with one line a module."""
    merged: dict[str, set[str]] = {}
    lines = {line for line in imports if not line.startswith("from ") or " as " in line}
    for line in imports - lines:
        module, _, name = line.removeprefix("from ").partition(" import ")
        merged.setdefault(module, set()).add(name)
    lines |= {f"from {module} import {', '.join(sorted(names, key=_kind))}" for module, names in merged.items()}
    ordered = sorted(lines, key=lambda line: (line.startswith("from "), line))
    standard = [line for line in ordered if line.split()[1].partition(".")[0] in stdlib_module_names]
    others = [line for line in ordered if line not in standard]
    return [*standard, *([""] if standard and others else []), *others]


def _kind(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order that linters ask for."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name


@cache
def load_runtime(package: str) -> Runtime:
    """Reads the modules of a runtime package, e.g. `onward.backends.torch.runtime`, without importing them."""
    definitions: dict[str, Definition] = {}
    imports: dict[str, str] = {}
    files = [file for file in resources.files(package).iterdir() if file.name.endswith(".py")]
    common = [resources.files(COMMON) / f"{name}.py" for name in _taken(resources.files(package) / "__init__.py")]
    for file in [*files, *common]:
        _read(file.name, file not in common, file.read_text("utf-8"), package, definitions, imports)
    return Runtime(definitions, imports)


def _taken(init: Traversable) -> list[str]:
    """The files of the common package that a runtime package takes."""
    nodes = ast.parse(init.read_text("utf-8")).body
    chosen = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == COMMON]
    return [alias.name for node in chosen for alias in node.names]


def _read(
    file: str, own: bool, text: str, package: str, definitions: dict[str, Definition], imports: dict[str, str]
) -> None:
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                as_name = f" as {alias.asname}" if alias.asname else ""
                imports[alias.asname or alias.name.split(".")[0]] = f"import {alias.name}{as_name}"
        elif isinstance(node, ast.ImportFrom):
            if node.module == "__future__" or (node.module or "").startswith((package, ONWARD)):
                continue
            for alias in node.names:
                as_name = f" as {alias.asname}" if alias.asname else ""
                imports[alias.asname or alias.name] = f"from {node.module} import {alias.name}{as_name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            _define(definitions, node.name, node, lines, (file, own))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _define(definitions, node.targets[0].id, node, lines, (file, own))


def _define(
    definitions: dict[str, Definition], name: str, node: ast.stmt, lines: list[str], place: tuple[str, bool]
) -> None:
    if name in definitions:
        raise ValueError(f"two runtime helpers are called {name}")
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    source = "\n".join(lines[first - 1 : node.end_lineno])
    definitions[name] = Definition(name, source, needs_of(node, name), (*place, node.lineno))


def needs_of(node: ast.AST, name: str) -> frozenset[str]:
    """The names that a definition called `name` reads, but for Python's own."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return frozenset(names - set(dir(builtins)) - {name})
