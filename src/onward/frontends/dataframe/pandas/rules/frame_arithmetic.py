"""Operators and functions on whole frames, column by column."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, Proxy, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series, framed
from onward.frontends.dataframe.pandas.rules.arithmetic import OPERATORS
from onward.frontends.dataframe.pandas.rules.compare import COMPARISONS
from onward.hub.wording import quote


class Numbers(Proxy):
    """A number for each column, such as the means of a frame: it stands beside frames, and is asked by name."""

    __slots__ = ("by_name",)
    kind = "numbers by column"

    def __init__(self, trace: Any, real: Any, by_name: dict[Any, Any]) -> None:
        super().__init__(trace, real)
        self.by_name = by_name

    def __getitem__(self, name: Any) -> Any:
        return self.by_name[name]

    def __iter__(self) -> Any:
        return iter(self.by_name.values())

    def to_dict(self) -> dict[Any, Any]:
        return dict(self.by_name)

    def _each(self, function: Callable[[Any, Any], Any], other: Any, swapped: bool = False) -> Numbers:
        def side(name: Any) -> Any:
            return other.by_name[name] if isinstance(other, Numbers) else other

        made = {
            name: function(side(name), value) if swapped else function(value, side(name))
            for name, value in self.by_name.items()
        }
        given = other.real if isinstance(other, Proxy) else other
        real = function(given, self.real) if swapped else function(self.real, given)
        return Numbers(self.trace, real, made)


def _numbers_operators() -> None:
    for name in OPERATORS:
        function = getattr(operator, f"__{name}__")
        setattr(Numbers, f"__{name}__", lambda self, other, f=function: self._each(f, other))
        setattr(Numbers, f"__r{name}__", lambda self, other, f=function: self._each(f, other, swapped=True))


_numbers_operators()


def _side(call: Call, value: Any, name: Any, number: int) -> Any:
    """What stands beside a column of a frame."""
    if isinstance(value, Frame):
        if name not in value:
            raise call.refuse(f"one frame has a column {quote(str(name))}, the other has not")
        return value.series(name)
    if isinstance(value, Numbers):
        return value.by_name[name]
    if isinstance(value, Series):
        raise call.refuse("a column stands beside a frame, which pandas matches with the names of columns: use axis=0")
    if hasattr(value, "iloc"):
        return value[name]
    if isinstance(value, Mapping):
        return value[name]
    if isinstance(value, list | tuple | np.ndarray):
        return value[number]
    return value


def both_sides(call: Call, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Frame:
    frame = a if isinstance(a, Frame) else b
    if isinstance(a, Frame) and isinstance(b, Frame) and list(a) != list(b):
        raise call.refuse("the frames have different columns")
    made: dict[Any, Column] = {}
    for number, name in enumerate(frame):
        made[name] = function(_side(call, a, name, number), _side(call, b, name, number)).column
    return framed(call.trace, made, call.real)


def _declare() -> None:
    for name in (*OPERATORS, *COMPARISONS, "and", "or", "xor"):
        function = getattr(operator, f"__{name}__")

        def plain(call: Call, a: Any, b: Any, function: Any = function) -> Any:
            return both_sides(call, function, a, b)

        rule(f"DataFrame.__{name}__")(plain)
        if name in ("and", "or", "xor"):
            continue

        def method(call: Call, a: Any, b: Any, axis: Any = "columns", fill_value: Any = None, name: str = name) -> Any:
            if fill_value is not None:
                raise call.refuse("fill_value cannot be converted: use fillna first")
            function = getattr(operator, f"__{name}__")
            if axis in (0, "index") and isinstance(b, Series):
                return framed(call.trace, {n: function(a.series(n), b).column for n in a}, call.real)
            return both_sides(call, function, a, b)

        aliases = {"sub": ["subtract"], "mul": ["multiply"], "truediv": ["div", "divide"]}.get(name, [])
        rule(f"DataFrame.{name}", *(f"DataFrame.{alias}" for alias in aliases))(method)
    for name in ("neg", "pos", "abs", "invert"):
        function = getattr(operator, f"__{name}__")

        def unary(call: Call, frame: Frame, function: Any = function) -> Any:
            return framed(call.trace, {n: function(frame.series(n)).column for n in frame}, call.real)

        rule(f"DataFrame.__{name}__", *(["DataFrame.abs"] if name == "abs" else []))(unary)


_declare()


@rule("DataFrame.round")
def rounded(call: Call, frame: Frame, decimals: Any = 0) -> Any:
    made = frame.copied()
    for name in list(frame):
        wanted = decimals.get(name) if isinstance(decimals, Mapping) else decimals
        if wanted is not None and frame.real[name].dtype.kind == "f":
            made.put(name, frame.series(name).round(wanted))
    return made


@rule("DataFrame.clip")
def clip(call: Call, frame: Frame, lower: Any = None, upper: Any = None, axis: Any = None) -> Any:
    made = {}
    for number, name in enumerate(frame):
        low, high = _side(call, lower, name, number), _side(call, upper, name, number)
        made[name] = frame.series(name).clip(low, high).column
    return framed(call.trace, made, call.real)


def _declare_choices() -> None:
    for name in ("where", "mask"):

        def choose(call: Call, frame: Frame, cond: Any, other: Any = np.nan, name: str = name) -> Any:
            cond = cond(frame) if callable(cond) and not isinstance(cond, Proxy) else cond
            made = {}
            for number, label in enumerate(frame):
                test = cond.series(label) if isinstance(cond, Frame) else cond
                value = _side(call, other, label, number) if not isinstance(other, Series) else other
                made[label] = getattr(frame.series(label), name)(test, value).column
            return framed(call.trace, made, call.real)

        rule(f"DataFrame.{name}")(choose)


_declare_choices()


@rule("part: numbers")
def numbers(call: Call, by_name: dict[Any, Any]) -> Numbers:
    return Numbers(call.trace, call.real, by_name)


@rule("part: numbers by column")
def numbers_by_column(call: Call, name: str, frame: Frame, args: Any, options: dict[str, Any]) -> Numbers:
    """The same aggregate of every column."""
    labels = list(frame)
    if options.pop("numeric_only", False):
        labels = [label for label in labels if frame.real[label].dtype.kind in "biuf"]
    return Numbers(call.trace, call.real, {n: getattr(frame.series(n), name)(*args, **options) for n in labels})


@rule("DataFrame.agg", "DataFrame.aggregate")
def agg(call: Call, frame: Frame, func: Any, axis: Any = 0) -> Any:
    if isinstance(func, str):
        return getattr(frame, func)(axis=axis)
    if isinstance(func, Mapping) and all(isinstance(how, str) for how in func.values()):
        return Numbers(call.trace, call.real, {name: getattr(frame.series(name), how)() for name, how in func.items()})
    raise call.refuse("several numbers for a column at once: ask for one after the other")


@rule("DataFrame.dot", "DataFrame.__matmul__", "numpy.dot")
def dot(call: Call, frame: Frame, other: Any) -> Any:
    if isinstance(other, Proxy) or getattr(other, "ndim", 1) != 1:
        raise call.refuse("a frame is multiplied by one known number for each column")
    weights = other[list(frame)] if hasattr(other, "iloc") else other
    total: Any = None
    for name, weight in zip(frame, list(weights), strict=True):
        part = frame.series(name) * float(weight)  # type: ignore[operator]
        total = part if total is None else total + part
    return total


def _declare_functions() -> None:
    for name in (
        "sqrt",
        "exp",
        "log",
        "log1p",
        "log10",
        "log2",
        "absolute",
        "floor",
        "ceil",
        "sign",
        "square",
        "isnan",
    ):
        function = getattr(np, name)

        def of_frame(call: Call, frame: Frame, function: Any = function) -> Any:
            return framed(call.trace, {n: function(frame.series(n)).column for n in frame}, call.real)

        rule(f"DataFrame function {name}")(of_frame)


_declare_functions()


@rule("DataFrame.idxmax", "DataFrame.idxmin")
def idxmax(call: Call, frame: Frame, axis: Any = 0, skipna: bool = True, numeric_only: bool = False) -> Any:
    """The name of the column with the largest number of each row; the first of equal ones."""
    if axis not in (1, "columns"):
        raise call.refuse("labels of rows are not followed")
    largest = call.name.endswith("idxmax")
    names = list(frame)
    if any(not frame.column(name).type.is_number for name in names) or not all(isinstance(n, str) for n in names):
        raise call.refuse("it is converted for columns of numbers that are named by texts")
    from onward.frontends.dataframe.pandas.rules.choose import cases

    best = frame.max(axis=1) if largest else frame.min(axis=1)
    conditions = [frame.series(name) == best for name in names]
    return cases(call, conditions, names, None)
