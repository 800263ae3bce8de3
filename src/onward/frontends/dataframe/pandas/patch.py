"""Functions of the module pandas that do not ask their arguments what to do: replaced while a function is followed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import ModuleType
from typing import Any

import numpy as np

from onward.backends.emit.execute import GENERATED
from onward.errors import UnsupportedError
from onward.frontends.dataframe.pandas.dispatch import OWN, Trace, has_proxy, placed
from onward.frontends.dataframe.pandas.elements import Element, Parts, length_of
from onward.frontends.dataframe.pandas.present import WORDS, refuse, replacements
from onward.frontends.dataframe.pandas.proxies import BLANK, Frame, Series, called

_LOCK = threading.RLock()


def _replacement(trace: Trace, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        if name == "concat" and args and isinstance(args[0], Iterator):
            args = (list(args[0]), *args[1:])
        if not has_proxy(args) and not has_proxy(kwargs):
            if name == "to_datetime" and args and isinstance(args[0], str) and args[0].lower() in WORDS:
                refuse(f"pd.to_datetime({args[0]!r})")
            return function(*args, **kwargs)
        return called(trace, f"pandas.{name}", function, *args, **kwargs)

    return replaced


def _class_replacement(trace: Trace, name: str, original: Any) -> Any:
    """A class that makes proxies when it is given some, and is the class of pandas in every other respect."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if has_proxy(args) or has_proxy(kwargs):
            return called(trace, f"pandas.{name}", original, *args, **kwargs)
        made = original(*args, **kwargs)
        return Frame(trace, made, {}, BLANK) if name == "DataFrame" and not args and not kwargs else made

    stand_in = {"Series": Series, "DataFrame": Frame}.get(name)
    checks = {
        "__instancecheck__": lambda cls, instance: (
            original in type(instance).__mro__ or (stand_in is not None and type(instance) is stand_in)
        ),
        "__subclasscheck__": lambda cls, other: original in other.__mro__,
    }
    meta = type(f"{name}Made", (type(original),), checks)
    return meta(name, (original,), {"__new__": new})


FUNCTIONS = [
    "concat",
    "crosstab",
    "cut",
    "eval",
    "factorize",
    "from_dummies",
    "get_dummies",
    "isna",
    "isnull",
    "melt",
    "merge",
    "merge_asof",
    "merge_ordered",
    "notna",
    "notnull",
    "pivot",
    "pivot_table",
    "qcut",
    "to_datetime",
    "to_numeric",
    "to_timedelta",
    "unique",
    "wide_to_long",
    "date_range",
]
CLASSES = ("Series", "DataFrame", "Categorical", "Index", "DatetimeIndex")
"""Pandas itself asks what these are, so they are replaced only in what the user's own code sees."""
BUILT_IN: dict[str, Any] = {"len": len, "range": range}
"""What Python has built in that asks for a number, where that of the rows is not known."""


def _reader(name: str) -> Callable[..., Any]:
    """What a file holds would be frozen without a word."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        with placed(f"pandas.{name}"):
            raise UnsupportedError(f"pandas.{name}: it reads a file while the function runs: read it before, outside")

    return refused


class _Facade(ModuleType):
    """The module pandas, but for some names."""

    def __init__(self, module: ModuleType, replaced: dict[str, Any]) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def patched(trace: Trace, function: Callable[..., Any]) -> Iterator[None]:
    """While it lasts, functions of pandas take proxies, under whatever names the user's code knows them.

    One function is followed at a time: what is replaced is seen by all threads.
    """
    import pandas

    with _LOCK:
        functions = {name: _replacement(trace, name, getattr(pandas, name)) for name in FUNCTIONS}
        classes = {name: _class_replacement(trace, name, getattr(pandas, name)) for name in CLASSES}
        made = {id(getattr(pandas, name)): new for name, new in (functions | classes).items()}
        readers = {name: _reader(name) for name in dir(pandas) if name.startswith("read_")}
        functions_of_user = functions | readers
        present, names = replacements()
        made |= present
        made[id(len)], made[id(range)] = _length, _Range
        made[id(np.arange)] = _numbering(trace)
        made[id(pandas)] = _Facade(pandas, functions_of_user | classes | names)
        changed = [(vars(pandas), name, getattr(pandas, name)) for name in FUNCTIONS]
        changed.append((vars(np), "arange", np.arange))
        for space in _spaces(function):
            changed += [(space, key, value) for key, value in space.items() if id(value) in made]
            changed += [(space, name, own) for name, own in BUILT_IN.items() if name not in space]
        try:
            for space, key, value in changed:
                space[key] = made[id(value)]
            yield
        finally:
            for space, key, value in changed:
                if BUILT_IN.get(key) is value:
                    space.pop(key, None)
                else:
                    space[key] = value


def _numbering(trace: Trace) -> Callable[..., Any]:
    """`numpy.arange`, which asks for numbers of Python: up to a number of rows it is a column."""
    original = np.arange

    @wraps(original)
    def arange(*args: Any, **options: Any) -> Any:
        if not has_proxy(args):
            return original(*args, **options)
        return called(trace, "numpy.arange", original, *args, **options)

    return arange


class _RangeType(type):
    """`range`, which asks for numbers of Python: up to a number of rows it is a column. It tells ranges, too."""

    def __call__(cls, *numbers: Any, **named: Any) -> Any:
        if named:
            raise TypeError("range() takes no keyword arguments")
        return np.arange(*numbers) if has_proxy(numbers) else range(*numbers)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, range)


class _Range(metaclass=_RangeType):
    """What the name `range` stands for while a function is followed."""


def _length(value: Any) -> Any:
    """`len`, which Python wants to be a number: of a frame or column it is one that is computed."""
    if isinstance(value, Element | Parts):
        return length_of(value)
    return called(value.trace, "len", len, value) if isinstance(value, Frame | Series) else len(value)


def _spaces(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """The global names of the function and of all modules of the user: neither installed nor generated from models."""
    unknown = [(name, module) for name, module in sys.modules.copy().items() if _INSTALLED.get(name) is not module]
    found = {id(vars(module)): vars(module) for name, module in unknown if _is_of_user(name, module)}
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    inner = getattr(inner, "func", inner)
    inner = getattr(inner, "__func__", inner)
    names = getattr(inner, "__globals__", None)
    if isinstance(names, dict):
        found[id(names)] = names
    return list(found.values())


_INSTALLED: dict[str, ModuleType] = {}
"""Modules found to be installed, or generated from models: thousands, which are not asked again for each function."""


def _is_of_user(name: str, module: Any) -> bool:
    if not isinstance(module, ModuleType):
        return False
    path = getattr(module, "__file__", None)
    if path is None:
        return module.__name__ == "__main__"
    if _is_path_of_user(path):
        return True
    _INSTALLED[name] = module
    return False


@cache
def _is_path_of_user(path: str) -> bool:
    is_installed = any(part in path for part in ("site-packages", "dist-packages"))
    return not (is_installed or path.startswith((sys.prefix, sys.base_prefix, str(OWN), f"<{GENERATED}")))
