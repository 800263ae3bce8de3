"""The source of a function of a plugin, for generated code: that of what it needs goes with it."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onward.backends.emit.helpers import Definition, needs_of
from onward.errors import UnsupportedError
from onward.plugins.op import CustomOp

WELL_KNOWN = {
    "math": "import math",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "tf": "import tensorflow as tf",
    "keras": "import keras",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
}
"""What a function may name without an import of its file: a plugin is loaded where a framework is not installed."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass
class Copied:
    """Definitions, of which the first is the function itself, and the lines that import what they name."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


def copied(function: Callable[..., Any], name: str, what: str) -> Copied:
    """A function under another name, with all that it needs; `what` names it in errors."""
    found = Copied()
    _define(function, name, what, found)
    return found


def _define(thing: Any, name: str, what: str, found: Copied) -> None:
    thing = inspect.unwrap(thing)
    text, first = _text(thing, what)
    if closed := getattr(getattr(thing, "__code__", None), "co_freevars", ()):
        raise UnsupportedError(
            f"{what} uses {closed[0]!r} of the function around it, which generated code has not: define it at the top"
            " of a file, and let it have what it needs as attributes"
        )
    module = inspect.getmodule(thing)
    known = _names(thing, module)
    text = _renamed(text, ast.parse(text).body[0], name, known)
    needs = needs_of(ast.parse(text).body[0], name)
    found.definitions[name] = Definition(name, text, needs, ("plugin", True, first))
    for need in sorted(needs & (known.keys() | WELL_KNOWN.keys())):
        if need not in found.definitions and need not in found.imports:
            _bring(need, known, module, what, found)


def _names(thing: Any, module: types.ModuleType | None) -> Mapping[str, Any]:
    return getattr(thing, "__globals__", None) or vars(module or types.ModuleType(""))


def _bring(name: str, known: Mapping[str, Any], module: types.ModuleType | None, what: str, found: Copied) -> None:
    if name not in known:
        found.imports[name] = WELL_KNOWN[name]
        return
    value = known[name]
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, types.ModuleType):
        if _is_ours(value.__name__, module):
            raise UnsupportedError(f"{what} uses the module {value.__name__}: import its functions by name")
        found.imports[name] = _import_of(value.__name__, name)
    elif callable(value) and _is_ours(home, module):
        _define(value, name, what, found)
    elif isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(v, _PLAIN) for v in value)):
        found.definitions[name] = Definition(name, f"{name} = {value!r}", frozenset(), ("plugin", True, 0))
    elif home and getattr(value, "__qualname__", "").isidentifier() and not home.startswith("onward."):
        alias = "" if value.__qualname__ == name else f" as {name}"
        found.imports[name] = f"from {home} import {value.__qualname__}{alias}"
    elif name in WELL_KNOWN:
        found.imports[name] = WELL_KNOWN[name]
    else:
        raise UnsupportedError(
            f"{what} uses {name!r}, a {type(value).__name__} that cannot be written into generated code: compute it"
            " inside the function"
        )


def _is_ours(name: str, module: types.ModuleType | None) -> bool:
    """Whether something is of the plugin's own package, on which generated code must not depend."""
    if module is None or not name:
        return False
    own = module.__name__
    return name == own or (not own.startswith("onward_plugin_") and name.partition(".")[0] == own.partition(".")[0])


def _import_of(module: str, name: str) -> str:
    parent, _, last = module.rpartition(".")
    if module == name:
        return f"import {module}"
    return f"from {parent} import {last}" if parent and last == name else f"import {module} as {name}"


def _text(thing: Any, what: str) -> tuple[str, int]:
    try:
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError) as error:
        raise UnsupportedError(f"{what}: its source cannot be found; write it in a file, not at a prompt") from error
    return textwrap.dedent("".join(lines)).rstrip() + "\n", first


def _renamed(text: str, tree: ast.stmt, name: str, known: Mapping[str, Any]) -> str:
    """The definition under a name; what files it for an op, `@op.torch`, stays behind, other decorators do not."""
    if not isinstance(tree, ast.FunctionDef | ast.ClassDef):
        raise UnsupportedError(f"{name}: only what is defined by `def` or `class` can be written into generated code")
    kept = [ast.get_source_segment(text, one) for one in tree.decorator_list if not _is_filing(one, known)]
    lines = text.splitlines()[tree.lineno - 1 :]
    word = "class" if isinstance(tree, ast.ClassDef) else "def"
    lines[0] = lines[0].replace(f"{word} {tree.name}", f"{word} {name}", 1)
    return "\n".join([*(f"@{one}" for one in kept), *lines])


def _is_filing(decorator: ast.expr, known: Mapping[str, Any]) -> bool:
    """Whether a decorator is a method of a custom op."""
    while isinstance(decorator, ast.Call | ast.Attribute):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return isinstance(decorator, ast.Name) and isinstance(known.get(decorator.id), CustomOp)
