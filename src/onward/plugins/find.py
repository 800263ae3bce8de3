"""Which plugins there are, and how they are loaded: those installed for a domain of a file, and those a user names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from onward.advice.nearest import meant
from onward.errors import OnwardError
from onward.plugins.op import CustomOp
from onward.plugins.table import find, ops

GROUP = "onward.plugins"
"""Of entry points: the name is a domain, the value the module that has its ops."""
_QONNX, _EXTENSIONS = "onward.plugins.shipped.qonnx", "onward.plugins.shipped.onnxruntime_extensions"
SHIPPED = {
    "qonnx.custom_op.general": _QONNX,
    "onnx.brevitas": _QONNX,
    "finn.custom_op.general": _QONNX,
    "ai.onnx.contrib": _EXTENSIONS,
    "com.microsoft.extensions": _EXTENSIONS,
}
"""By domain, the plugins that come with Onward."""
STANDARD = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft"})
"""Domains that need no plugin."""


@dataclass
class Plugin:
    """A module of custom ops."""

    name: str
    """As it is imported, or the path of its file."""
    how: str
    """How it came to be loaded: `shipped`, `installed`, `named` or `in this program`."""
    version: str = ""
    ops: list[CustomOp] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.version, f"({self.how})") if part)


_LOADED: dict[str, Plugin] = {}


def loaded() -> list[Plugin]:
    """The plugins that are loaded, and as one the ops that the program itself has made."""
    filed = {op for plugin in _LOADED.values() for op in plugin.ops}
    own = [op for op in ops() if op not in filed]
    return [*_LOADED.values(), *([Plugin("__main__", "in this program", ops=own)] if own else [])]


def serving(keys: Iterable[str]) -> list[Plugin]:
    """The plugins whose ops are among these: what a report names."""
    asked = {op for key in keys if (op := find(key)) is not None}
    return [plugin for plugin in loaded() if asked.intersection(plugin.ops)]


def load(*names: str) -> list[Plugin]:
    """Load plugins by name: a module, a file `plugin.py`, or a domain for which one is installed.

    >>> import onward.plugins
    >>> onward.plugins.load("qonnx.custom_op.general")[0].ops[0]
    CustomOp('qonnx.custom_op.general::Quant', version=1)
    """
    return [plugin for name in names for plugin in _named(str(name))]


def _named(name: str) -> list[Plugin]:
    if name.endswith(".py") or "/" in name:
        return [_file(Path(name).absolute())]
    points = [point for point in _installed() if name in (point.name, _module(point), _module(point).partition(".")[0])]
    if points:
        return list(
            {plugin.name: plugin for plugin in (_imported(_module(p), "installed", p) for p in points)}.values()
        )
    if shipped := SHIPPED.get(name) or next((m for m in SHIPPED.values() if m.rpartition(".")[2] == name), None):
        return [_imported(shipped, "shipped")]
    return [_imported(name, "named")]


def load_for(domains: Iterable[str]) -> None:
    """Load what is shipped or installed for the domains that a file has; nothing else is looked at."""
    for domain in domains:
        if domain not in STANDARD:
            _for_domain(domain)


def _for_domain(domain: str) -> None:
    if domain in SHIPPED:
        _imported(SHIPPED[domain], "shipped")
    for point in _installed():
        if point.name == domain:
            _or_warning(point)


def load_installed() -> None:
    """Load every plugin that is installed: for objects of frameworks, which do not tell their domains."""
    for point in _installed():
        _or_warning(point)


def sources() -> list[str]:
    """What a process of its own has to load to know the same ops, beside what it finds by itself."""
    return [plugin.name for plugin in _LOADED.values()]


def reload(names: Iterable[str]) -> None:
    """In a process of its own: load what the one that started it has loaded."""
    for name in names:
        _file(Path(name)) if name.endswith(".py") else _imported(name, "named")


@cache
def _installed() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def installed() -> dict[str, str]:
    """The domains for which a plugin is shipped or installed, and its module."""
    return SHIPPED | {point.name: _module(point) for point in _installed()}


def _module(point: EntryPoint) -> str:
    return point.value.partition(":")[0]


def _or_warning(point: EntryPoint) -> None:
    try:
        _imported(_module(point), "installed", point)
    except Exception as error:  # whatever the code of others raises
        warnings.warn(f"the plugin {_module(point)} is left out, since it cannot be loaded: {error}", stacklevel=2)


def _imported(name: str, how: str, point: EntryPoint | None = None) -> Plugin:
    if name in _LOADED:
        return _LOADED[name]
    try:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
    except (ModuleNotFoundError, ValueError) as error:
        near = meant(name, [*installed(), *installed().values()])
        raise OnwardError(f"there is no plugin {name!r}: name a module, a .py file, or a domain{near}") from error
    before = set(ops())
    module = importlib.import_module(name)
    version = point.dist.version if point is not None and point.dist is not None else ""
    return _filed(Plugin(name, how, version), before, module)


def _file(path: Path) -> Plugin:
    """The module of a file; one that was loaded before is read again, since somebody may be working on it."""
    if not path.is_file():
        raise OnwardError(f"there is no plugin {path}: name a module, a .py file, or a domain")
    before = set(ops()) - set(_LOADED[str(path)].ops if str(path) in _LOADED else ())
    spec = importlib.util.spec_from_file_location(f"onward_plugin_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OnwardError:
        raise
    except Exception as error:
        raise OnwardError(f"the plugin {path} fails with {type(error).__name__}: {error}") from error
    return _filed(Plugin(str(path), "named"), before, module)


def _filed(plugin: Plugin, before: set[CustomOp], module: ModuleType) -> Plugin:
    here = [op for op in vars(module).values() if isinstance(op, CustomOp)]
    plugin.ops = list(dict.fromkeys([*(op for op in ops() if op not in before), *here]))
    if not plugin.ops:
        raise OnwardError(f"{plugin.name} is no plugin: it makes no onward.plugins.CustomOp")
    _LOADED[plugin.name] = plugin
    return plugin
