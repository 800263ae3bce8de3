"""Which rule says what a method of pandas means, and how it is asked.

Pandas itself runs on the sample beside the trace. So a rule knows the dtype that pandas gives, and what it makes is
wrapped together with what pandas made.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import BOOL, FLOAT64, TEXT, ColumnType, number_type
from onward.frontends.dataframe.columns.column import Column, Rows
from onward.frontends.dataframe.columns.table import Table
from onward.frontends.dataframe.pandas.paths import Paths
from onward.frontends.dataframe.tensors.rows.keys import Groups
from onward.graph.build import Builder
from onward.registry import Registry

Rule = Callable[..., Any]
RULES: Registry[Rule] = Registry("rule")
rule = RULES.register
"""Declares the rule of `Series.fillna`, `DataFrame.assign`, `pandas.cut`, `numpy.where`, `Series.str.upper`, …

It is given the call and what pandas would be given, and returns a column, columns by name, or a proxy."""
OWN = Path(__file__).parents[3]
STANDARD = sysconfig.get_paths()["stdlib"]


@dataclass
class Trace:
    """A function that is being followed."""

    table: Table
    freeze: frozenset[str] = frozenset()
    labels: dict[Rows, list[tuple[Any, Column]]] = field(default_factory=dict)
    """Of rows that are groups, or that were given an index: the columns that name them."""
    unique: dict[Rows, list[Any]] = field(default_factory=dict)
    """Of rows that were groups: the columns that name each of them once."""
    steps: list[tuple[str, Column, Any]] = field(default_factory=list)
    """Every step: where it stands, what it gives, and what pandas gives for the sample."""
    counts: list[tuple[ir.Value, Rows]] = field(default_factory=list)
    """The numbers of rows that were asked for, and of which rows."""
    frozen: set[str] = field(default_factory=set)
    paths: Paths | None = None
    """While a function of single values is followed: the way through its branches."""
    within: tuple[Groups, Rows] | None = None
    """While a function of each group is followed: the groups, and the rows that they are of."""

    def groups_of(self, column: Column) -> Groups | None:
        """The groups within which a column is computed; None outside of functions of groups."""
        return self.within[0] if self.within is not None and self.within[1].takes(column.rows) else None

    @property
    def op(self) -> Builder:
        return self.table.op


class Proxy:
    """What stands for an object of pandas while a function is followed."""

    __slots__ = ("real", "trace")
    __pandas_priority__ = 5000
    kind = ""

    def __init__(self, trace: Trace, real: Any) -> None:
        self.trace = trace
        self.real = real


class Call:
    """One call of a method: what pandas gives for it on the sample, and how values become columns."""

    def __init__(self, trace: Trace, name: str, run: Callable[[], Any]) -> None:
        self.trace = trace
        self.name = name
        self._run = run
        self._real: Any = None
        self._has_run = False
        self.is_array = False
        """Whether pandas gives values without labels."""
        self.index: Any = None
        """The labels of the rows that it is called with."""

    @property
    def op(self) -> Builder:
        return self.trace.op

    @property
    def real(self) -> Any:
        if not self._has_run:
            found = self._run()
            self._real, self._has_run = as_series(found), True
            self.is_array = self._real is not found
            if self.is_array and self.index is not None and len(self.index) == len(self._real):
                self._real.index = self.index
        return self._real

    @property
    def type(self) -> ColumnType:
        """The type of what pandas gives."""
        return type_of_value(self.real)

    def part(self, name: str, *args: Any) -> Any:
        """What another rule makes of a part of this call: rules of one family do not import those of another."""
        found = RULES.get(name)
        if found is None:
            raise self.refuse("it cannot be converted")
        return found(self, *args)

    def refuse(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"{self.name}: {why}")


def as_series(real: Any) -> Any:
    """What numpy gives for columns, as a column without a name."""
    import pandas

    if isinstance(real, pandas.Index):
        return pandas.Series(real.to_numpy())
    if not isinstance(real, np.ndarray) or real.ndim != 1:
        return real
    if real.dtype.kind not in "USO":
        return pandas.Series(real)
    made = pandas.Series(real.astype(object))
    is_text = all(isinstance(item, str) for item in made.dropna())
    return made.astype("str") if is_text and made.notna().any() else made


def type_of_value(real: Any) -> ColumnType:
    """Of a Series, or of a single value."""
    import pandas

    if hasattr(real, "dtype") and hasattr(real, "dropna"):
        return type_of(real)
    if isinstance(real, bool | np.bool_):
        return BOOL
    if isinstance(real, str):
        return TEXT
    if isinstance(real, pandas.Timestamp | pandas.Timedelta):
        meaning = "datetime" if isinstance(real, pandas.Timestamp) else "duration"
        return ColumnType(ir.DataType.INT64, meaning, real.unit)
    if isinstance(real, np.generic) and real.dtype.kind in "iuf":
        return number_type(real.dtype)
    if isinstance(real, np.datetime64 | np.timedelta64):
        return type_of_value(pandas.Series([real]))
    if isinstance(real, int):
        return number_type(np.dtype(np.int64))
    if isinstance(real, float) or real is None or real is pandas.NA:
        return FLOAT64
    raise UnsupportedError(f"{type(real).__name__} is not a value of a column")


def unwrapped(value: Any) -> Any:
    """What pandas is given in place of proxies, however nested."""
    if isinstance(value, Proxy):
        return value.real
    if isinstance(value, list):
        return [unwrapped(item) for item in value]
    if type(value) is tuple:
        return tuple(unwrapped(item) for item in value)
    if isinstance(value, slice):
        return slice(unwrapped(value.start), unwrapped(value.stop), unwrapped(value.step))
    if isinstance(value, Mapping) and has_proxy(value):
        return {key: unwrapped(item) for key, item in value.items()}
    return value


def has_proxy(value: Any) -> bool:
    if isinstance(value, Proxy):
        return True
    if isinstance(value, list | tuple):
        return any(has_proxy(item) for item in value)
    return isinstance(value, Mapping) and any(has_proxy(item) for item in value.values())


def first_proxy(values: Any) -> Proxy | None:
    """The first proxy in arguments, however nested."""
    if isinstance(values, Proxy):
        return values
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return next((found for value in values if (found := first_proxy(value)) is not None), None)
    return None


def ask(call: Call, /, *args: Any, **kwargs: Any) -> Any:
    """What the rule says that a call means."""
    name = call.name
    found = RULES.get(name)
    with placed(name):
        if found is None:
            raise UnsupportedError(f"{name} cannot be converted")
        try:
            inspect.signature(found).bind(call, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedError(f"{name} cannot be converted as it is called: {error}") from error
        return found(call, *args, **kwargs)


class UnknownColumnError(UnsupportedError, KeyError):
    """A column is asked for that the frame does not have."""

    __str__ = UnsupportedError.__str__


class TracedError(UnsupportedError):
    """A refusal that says where in the function it is. It counts also where the function catches it."""

    seen: ClassVar[list[TracedError]] = []
    is_expected = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        if not self.is_expected:
            TracedError.seen.append(self)


class NoLengthError(TracedError, TypeError):
    """The same where Python asks for a length by the way, as `list` does, and goes on without one."""

    is_expected = True


class NoColumnError(TracedError, KeyError):
    """The same where pandas raises a KeyError, which the function may expect."""

    is_expected = True
    __str__ = TracedError.__str__


@contextmanager
def placed(name: str) -> Iterator[None]:
    """Say in which line of the user's function it was refused."""
    try:
        yield
    except TracedError:
        raise
    except UnsupportedError as error:
        where = user_line()
        told = str(error) if name in str(error) else f"{name}: {error}"
        kind = NoColumnError if isinstance(error, KeyError) else TracedError
        raise kind(f"{where}: {told}" if where else told) from error


def is_asked_by_user() -> bool:
    """Whether the code that asks, two calls up, is the user's own."""
    return not _is_library(sys._getframe(2).f_code.co_filename)


def user_line() -> str:
    """The line of the user's function that is running: `features.py, line 12 (df.x.foo())`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_library(frame.f_code.co_filename):
            return _line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def failed_line(error: BaseException) -> str:
    """The line of the user's function in which an error came up."""
    found, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not _is_library(path):
            found = _line(path, trace.tb_lineno)
        trace = trace.tb_next
    return found


def is_own(error: BaseException) -> bool:
    """Whether it came up in Onward's own code, not in the function or in what the function calls."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(OWN)


def _line(path: str, number: int) -> str:
    text = linecache.getline(path, number).strip()
    place = f"{Path(path).name}, line {number}"
    return f"{place} ({text})" if text else place


def _is_library(path: str) -> bool:
    """Whether code is of Onward, of Python itself, or of a package that is installed, and not the user's own."""
    if path.startswith(("<frozen ", "<__array_function__")) or Path(path).is_relative_to(OWN):
        return True
    if path.startswith(STANDARD) or path.endswith((".pyx", ".pxi")):
        return True
    return any(f"/{name}/" in path for name in ("site-packages", "dist-packages"))
