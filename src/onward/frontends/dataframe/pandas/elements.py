"""What stands for a single value while a function that is applied to each of them is followed."""

from __future__ import annotations

import builtins
import dis
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

import onward.frontends.dataframe.pandas.operators  # noqa: F401 - what comes next has operators
from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL, ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Proxy, placed
from onward.frontends.dataframe.pandas.fstrings import marked
from onward.frontends.dataframe.pandas.paths import NO_KEY
from onward.frontends.dataframe.pandas.proxies import ELEMENT, Scalar, Series

_TIME_METHODS = (
    "day_name",
    "month_name",
    "floor",
    "ceil",
    "round",
    "strftime",
    "normalize",
    "total_seconds",
    "as_unit",
)
_NOT_OF_NAT = ("strftime", "normalize", "isocalendar", "date", "time")
"""What raises an error for a time that is missing; other parts of it are NaN or NaT."""


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
            return _time_part(self, name)
        if name == "is_integer":
            return lambda: element(np.floor(self) == self)
        if name in ("astype", "fillna", "isna", "notna", "clip", "round", "abs"):
            return super().__getattr__(name)
        if not hasattr(python_type(type), name):
            raise AttributeError(f"a value of {type} has no {name}")
        with placed("Series.apply"):
            raise UnsupportedError(f"Series.apply: {name} of a value of {type} cannot be converted")

    def _must_be_there(self) -> None:
        """What is missing has no such method: pandas would raise an error."""
        assert self.trace.paths is not None
        self.trace.paths.fail_where(self.column.missing())

    def __bool__(self) -> bool:
        paths = self.trace.paths
        if paths is None:
            return super().__bool__()
        column = self.column
        if not column.type.is_bool:
            differs: Any = self != ("" if column.type.is_text else 0)
            column = differs.column
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

    def __hash__(self) -> int:  # type: ignore[override]
        """Which key of the function's dictionaries it equals decides the branch."""
        paths = self.trace.paths
        if paths is None:
            raise TypeError("unhashable type")
        value = self.column.value.value
        if value not in paths.assumed:
            paths.assumed[value] = NO_KEY
            frame = sys._getframe(1)
            if _makes_tables(frame.f_code):
                self._refuse(
                    "it is looked up in a table that is made for each value: make it once, before the function"
                )
            keys = list(dict.fromkeys([*paths.keys, *keys_in_sight(frame)]))
            suitable = [key for key in keys if isinstance(key, str) == self.column.type.is_text]
            if len(suitable) > MOST_KEYS:
                self._refuse(f"it is looked up among more than {MOST_KEYS} keys: use Series.map with the table")
            for key in [True, False] if self.column.type.is_bool else suitable:
                equal: Any = Series(self.trace, self.real, self.column) == key
                if paths.decide(equal.column):
                    paths.assumed[value] = key
                    break
        assumed = paths.assumed[value]
        return id(self) if assumed is NO_KEY else hash(assumed)

    def __eq__(self, other: object) -> Any:
        paths = self.trace.paths
        assumed = None if paths is None else paths.assumed.get(self.column.value.value)
        if assumed is not None and isinstance(other, str | int | float):
            return assumed is not NO_KEY and bool(other == assumed)
        return _EQUAL(self, other)

    def __format__(self, spec: str) -> str:
        with placed("Series.apply"):
            return marked(self, spec, sys._getframe(1))

    __str__ = None  # type: ignore[assignment]


_EQUAL = Series.__eq__


def known_keys(function: Any) -> list[Any]:
    """The texts and numbers in a function and in the dictionaries that it sees: what it may look up values by."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    names = getattr(function, "__globals__", {})
    seen = [names.get(name) for name in code.co_names]
    seen += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    found = [key for constant in code.co_consts for key in _keys_of(constant, ())]
    return list(dict.fromkeys([*found, *_keys_of(seen, ())]))


def _makes_tables(code: CodeType) -> bool:
    """Whether code has comprehensions of dictionaries or sets: their keys are not in sight while it runs."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    if any(part.co_name in ("<dictcomp>", "<setcomp>") for part in inner):
        return True
    return any(step.opname in ("MAP_ADD", "SET_ADD") for step in dis.get_instructions(code))


def keys_in_sight(frame: FrameType) -> list[Any]:
    """The same of the code that is running: what its names stand for, and what is in there."""
    code = frame.f_code
    names = code.co_names
    seen = [*frame.f_locals.values(), *(frame.f_globals[name] for name in names if name in frame.f_globals)]
    return [key for value in (*code.co_consts, *seen) for key in _keys_of(value, names)]


def _keys_of(value: Any, names: tuple[str, ...], depth: int = 4) -> Iterator[Any]:
    """Texts and numbers in containers, and in what objects and modules have under some names."""
    if isinstance(value, bool | Proxy) or depth == 0:
        return
    if isinstance(value, str | int | float):
        yield value
    elif isinstance(value, Mapping):
        for part in (*value, *(item for item in value.values() if isinstance(item, _CONTAINERS))):
            yield from _keys_of(part, names, depth - 1)
    elif isinstance(value, _CONTAINERS):
        for part in value:
            yield from _keys_of(part, names, depth - 1)
    elif isinstance(value, FunctionType):
        yield from _keys_of([*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()], names, depth - 1)
    else:
        for name in names:
            if name in getattr(value, "__dict__", ()) or name in vars(type(value)):
                held = getattr(value, name, None)
                if isinstance(held, _CONTAINERS):
                    yield from _keys_of(held, names, depth - 1)


_CONTAINERS = (Mapping, list, tuple, set, frozenset)
MOST_KEYS = 100


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


class IsoDate(NamedTuple):
    """What isocalendar gives for a single time."""

    year: Any
    week: Any
    weekday: Any


def _time_part(x: Element, name: str) -> Any:
    """A part of a Timestamp or Timedelta, or a method of it."""
    if name in _NOT_OF_NAT:
        x._must_be_there()
    if name in ("weekday", "isoweekday"):
        return lambda: element(x.dt.dayofweek + (name == "isoweekday"))
    if name in ("isocalendar", "week", "weekofyear"):
        frame = x.dt.isocalendar()
        parts = [element(frame.series(part).astype("float64")) for part in ("year", "week", "day")]
        return (lambda: IsoDate(*parts)) if name == "isocalendar" else parts[1]
    if name in _TIME_METHODS:
        method = getattr(x.dt, name)
        return lambda *args, **kwargs: element(method(*args, **kwargs))
    return element(getattr(x.dt, name))


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


def length_of(value: Any) -> Any:
    if isinstance(value, Element):
        value._must_be_there()
        return element(value.str.len().astype("int64"))
    if isinstance(value, Parts):
        return element(value.parts.str.len().astype("int64"))
    return len(value)


def _isinstance(value: Any, kinds: Any) -> bool:
    """A text or time that may be missing is a float then, or NaT."""
    classes: Any = tuple(_CLASSES.get(kind, kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    if not isinstance(value, Element):
        return isinstance(value, classes)
    own = python_type(value.column.type)
    missing = value.column.missing()
    is_own = any(issubclass(own, kind) for kind in classes)
    if not (value.column.type.is_text or value.column.type.is_time) or missing is None:
        return is_own
    assert value.trace.paths is not None
    absent = type(_nat()) if value.column.type.is_time else float
    is_absent = any(issubclass(absent, kind) for kind in classes)
    if is_own == is_absent:
        return is_own
    is_missing = value.trace.paths.decide(Column(missing, BOOL, value.column.rows))
    return is_missing == is_absent


def _nat() -> Any:
    import pandas

    return pandas.NaT


def python_type(type: ColumnType) -> builtins.type:
    import pandas

    if type.is_text:
        return str
    if type.is_time:
        found: builtins.type = pandas.Timestamp if type.meaning == "datetime" else pandas.Timedelta
        return found
    return bool if type.is_bool else int if type.is_int else float


class _Math(ModuleType):
    """The module math, on values that are followed."""

    _NAMES: ClassVar = {
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


def _type(value: Any, *rest: Any) -> Any:
    """The type of a value, as the function that is followed knows it: text that is missing is a float."""
    if rest:
        return type(value, *rest)
    if not _is_element(value):
        return _STAND_INS.get(type(value), type(value))
    own = python_type(value.column.type)
    found = own if _isinstance(value, own) else type(_nat()) if value.column.type.is_time else float
    return _STAND_INS.get(found, found)


def _hash(value: Any) -> Any:
    """A number that Python makes anew in each process."""
    if _is_element(value):
        value._refuse("a hash is another number in each process: use map with a dictionary")
    return hash(value)


_STAND_INS: dict[Any, Any] = {int: _int, float: _float, str: _str}
_CLASSES: dict[Any, Any] = {stand_in: original for original, stand_in in _STAND_INS.items()}
_BUILTINS: dict[str, Any] = {
    "int": _int,
    "float": _float,
    "str": _str,
    "len": length_of,
    "isinstance": _isinstance,
    "type": _type,
    "hash": _hash,
}


def _refuse_catching(function: Any) -> None:
    """Where an error is caught, what the function gives hangs on an error that a graph does not raise."""
    code = getattr(function, "__code__", None)
    steps = {step.opname for step in dis.get_instructions(code)} if code is not None else set()
    if "PUSH_EXC_INFO" in steps and "WITH_EXCEPT_START" not in steps:
        raise UnsupportedError(
            "the function is opaque: it catches exceptions. Test the value instead, as by str.isdigit"
        )


def _refuse_identity(function: Any) -> None:
    """`t is pd.NaT` is false for every stand-in, and would take the wrong branch."""
    code = getattr(function, "__code__", None)
    if code is None or not {"NaT", "NA"} & set(code.co_names):
        return
    if any(step.opname == "IS_OP" for step in dis.get_instructions(code)):
        raise UnsupportedError("a value is compared with NaT or NA by `is`: use pd.isna")


@contextmanager
def python_functions(function: Any) -> Iterator[None]:
    """While it lasts, what Python has built in takes values that are followed, in the names that a function sees."""
    _refuse_identity(function)
    _refuse_catching(function)
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
