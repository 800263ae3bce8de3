"""What stands for a single value while a function that is applied to each of them is followed."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL, ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Trace, placed
from onward.frontends.dataframe.pandas.proxies import ELEMENT, Scalar, Series

_DATE_METHODS = (
    "weekday",
    "isoweekday",
    "date",
    "normalize",
    "day_name",
    "month_name",
    "floor",
    "ceil",
    "round",
    "strftime",
)


class Element(Series):
    """A value of a column: texts have the methods of str, times those of Timestamp, and a branch on it is followed."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        type = self.column.type
        if name.startswith("_"):
            raise AttributeError(name)
        if type.is_text:
            self._must_be_there()
            return _text_method(self, name)
        if type.is_time:
            self._must_be_there()
            if name == "isoweekday":
                return lambda: element(self.dt.dayofweek + 1)
            if name == "total_seconds" or name in _DATE_METHODS:
                method = getattr(self.dt, name) if name != "weekday" else lambda: self.dt.dayofweek
                return lambda *args, **kwargs: element(method(*args, **kwargs))
            return element(getattr(self.dt, name))
        if name == "is_integer":
            return lambda: element(np.floor(self) == self)
        if name in ("astype", "fillna", "isna", "notna", "clip", "round", "abs"):
            return super().__getattr__(name)
        raise AttributeError(f"a value of {type} has no {name}")

    def _must_be_there(self) -> None:
        """A text or time that is missing has no methods: pandas would raise an error."""
        assert self.trace.paths is not None
        self.trace.paths.fail_where(self.column.missing())

    def __bool__(self) -> bool:
        paths = self.trace.paths
        if paths is None:
            return super().__bool__()
        column = self.column
        if not column.type.is_bool:
            column = (self != ("" if column.type.is_text else 0)).column
        return paths.decide(column)

    def __contains__(self, part: Any) -> bool:
        if not self.column.type.is_text:
            raise TypeError(f"a value of {self.column.type} contains nothing")
        self._must_be_there()
        return bool(element(self.str.contains(part, regex=False)))

    def __getitem__(self, key: Any) -> Any:
        self._must_be_there()
        found = self.str[key]
        if isinstance(key, int) and self.trace.paths is not None:
            self.trace.paths.fail_where(found.column.missing())
        return element(found)

    def __format__(self, spec: str) -> str:
        self._refuse("a value becomes part of a text by format: put texts together with +")
        raise AssertionError

    __str__ = None  # type: ignore[assignment]


def element(series: Any) -> Any:
    """A column as a single value of it."""
    if isinstance(series, Series) and not isinstance(series, Element):
        return Element(series.trace, series.real, series.column)
    return series


ELEMENT[0] = element


def _text_method(x: Element, name: str) -> Callable[..., Any]:
    if name in ("format", "encode", "join"):
        x._refuse(f"{name} cannot be converted")
    method = getattr(x.str, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        if name == "replace":
            kwargs["regex"] = False
        if name == "count" and len(args) == 1:
            args = (re.escape(args[0]),)
        if name in ("split", "rsplit"):
            return Parts(x, method(*args[:1], **_split_options(name, *args, **kwargs)))
        return element(method(*args, **kwargs))

    return run


def _split_options(name: str, sep: Any = None, maxsplit: int = -1) -> dict[str, Any]:
    """What pandas calls the arguments of Python's split, where a separator is never a pattern."""
    if maxsplit == 0:
        raise UnsupportedError(f"{name} with maxsplit=0 does not split: leave it out")
    return {"n": maxsplit} if name == "rsplit" else {"n": maxsplit, "regex": False}


class Parts:
    """What split gives for a single text: it is asked for one of its parts."""

    def __init__(self, text: Element, parts: Any) -> None:
        self.text, self.parts = text, parts

    def __getitem__(self, place: Any) -> Any:
        found = self.parts.str[place]
        paths = self.text.trace.paths
        if paths is not None:
            paths.fail_where(found.column.missing())
        return element(found)

    def __len__(self) -> int:
        self.text._refuse("the number of parts is not known before the model runs")
        raise AssertionError


class Row:
    """A row of a frame, for a function that is applied to each: its values by name."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, list):
            return Row(self._frame[name])
        return element(self._frame.series(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._frame:
            return self[name]
        if name in ("sum", "mean", "max", "min", "any", "all", "count", "std"):
            return lambda: element(getattr(self._frame, name)(axis=1))
        if name in ("isna", "isnull", "notna", "notnull"):
            return lambda: Row(getattr(self._frame, name)())
        with placed("DataFrame.apply"):
            raise UnsupportedError(f"DataFrame.apply: a row's {name} cannot be converted")

    def get(self, name: Any, default: Any = None) -> Any:
        return self[name] if name in self._frame else default

    def __contains__(self, name: Any) -> bool:
        return name in self._frame


def _is_element(value: Any) -> bool:
    return isinstance(value, Element | Scalar)


def _int(value: Any = 0, *args: Any) -> Any:
    return element(value.astype("int64")) if _is_element(value) else int(value, *args)


def _float(value: Any = 0.0) -> Any:
    return element(value.astype("float64")) if _is_element(value) else float(value)


def _str(*args: Any) -> Any:
    return element(args[0].astype("str")) if args and _is_element(args[0]) else str(*args)


def _len(value: Any) -> Any:
    if isinstance(value, Element):
        value._must_be_there()
        return element(value.str.len().astype("int64"))
    if isinstance(value, Parts):
        return element(value.parts.str.len().astype("int64"))
    return len(value)


def _isinstance(value: Any, kinds: Any) -> bool:
    """A text or time that may be missing is a float then, or NaT."""
    if not isinstance(value, Element):
        return isinstance(value, kinds)
    classes = kinds if isinstance(kinds, tuple) else (kinds,)
    own = python_type(value.column.type)
    missing = value.column.missing()
    if not value.column.type.is_text or missing is None:
        return any(issubclass(own, kind) for kind in classes)
    assert value.trace.paths is not None
    is_text = any(issubclass(str, kind) for kind in classes)
    is_float = any(issubclass(float, kind) for kind in classes)
    if is_text == is_float:
        return is_text
    is_missing = value.trace.paths.decide(Column(missing, BOOL, value.column.rows))
    return is_missing == is_float


def python_type(type: ColumnType) -> builtins.type:
    import datetime

    if type.is_text:
        return str
    if type.is_time:
        return datetime.datetime if type.meaning == "datetime" else datetime.timedelta
    return bool if type.is_bool else int if type.is_int else float


class _Math(ModuleType):
    """The module math, on values that are followed."""

    _NAMES = {
        "fabs": "absolute",
        "pow": "power",
        "atan": "arctan",
        "asin": "arcsin",
        "acos": "arccos",
        "atan2": "arctan2",
    }

    def __getattr__(self, name: str) -> Any:
        original = getattr(math, name)
        if not callable(original):
            return original

        def function(*args: Any) -> Any:
            if not any(_is_element(value) for value in args):
                return original(*args)
            x = args[0]
            if name in ("floor", "ceil", "trunc"):
                return element(getattr(np, name)(x).astype("int64"))
            bad = x <= 0 if name.startswith("log") and name != "log1p" else x < 0 if name == "sqrt" else None
            if bad is not None and x.trace.paths is not None:
                x.trace.paths.fail_where(bad.column.value)
            return element(getattr(np, self._NAMES.get(name, name))(*args))

        return function


_BUILTINS: dict[str, Any] = {"int": _int, "float": _float, "str": _str, "len": _len, "isinstance": _isinstance}


@contextmanager
def python_functions(function: Any) -> Iterator[None]:
    """While it lasts, what Python has built in takes values that are followed, in the names that a function sees."""
    names = getattr(function, "__globals__", None)
    if not isinstance(names, dict):
        yield
        return
    added = [name for name in _BUILTINS if name not in names]
    modules = {name: value for name, value in names.items() if value is math}
    try:
        names.update({name: _BUILTINS[name] for name in added})
        names.update({name: _Math("math") for name in modules})
        yield
    finally:
        for name in added:
            del names[name]
        names.update(modules)


def numbers_of(trace: Trace) -> Any:
    return trace.op
