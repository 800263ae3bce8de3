"""Scripts of measurements, which no test runs, import only what is there."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """Modules of Onward, and the names that are taken out of them."""
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onward."):
            yield from ((str(node.module), alias.name) for alias in node.names)


@cache
def defined(module: str) -> frozenset[str]:
    """What a module has: names that it binds, wherever, and the modules in it."""
    path = ROOT / "src" / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = {inner.stem for inner in path.iterdir()} if path.is_dir() else set[str]()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name.partition(".")[0] for alias in names}
    return frozenset(found)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_what_a_script_imports_is_there(script: Path) -> None:
    missing = [f"{module}: {name}" for module, name in imported(script) if name not in defined(module)]
    assert not missing
