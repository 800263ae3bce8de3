"""Names of columns: rename, prefixes, and columns that are chosen by name or dtype."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame
from onward.frontends.dataframe.pandas.rules.selection import selected, told_apart


@rule("DataFrame.rename")
def rename(
    call: Call,
    frame: Frame,
    mapper: Any = None,
    *,
    columns: Any = None,
    index: Any = None,
    axis: Any = None,
    errors: str = "ignore",
) -> Any:
    names = columns if columns is not None else mapper if axis in (1, "columns") else None
    if names is None or index is not None:
        raise call.refuse("labels of rows cannot be converted: rename columns")
    mapped = [names.get(name, name) if isinstance(names, Mapping) else names(name) for name in frame]
    return _with_names(frame, mapped)


def _with_names(frame: Frame, names: list[Any]) -> Frame:
    told_apart(names)
    target = frame.copied()
    target.columns_by_name = dict(zip(names, frame.columns_by_name.values(), strict=True))
    target.real = frame.real.set_axis(names, axis=1)
    return target


@rule("DataFrame.columns=")
def set_columns(call: Call, frame: Frame, names: Any) -> None:
    made = _with_names(frame, list(names))
    frame.columns_by_name, frame.real = made.columns_by_name, made.real


@rule("DataFrame.set_axis")
def set_axis(call: Call, frame: Frame, labels: Any, *, axis: Any = 0) -> Any:
    if axis not in (1, "columns"):
        raise call.refuse("labels of rows cannot be converted")
    return _with_names(frame, list(labels))


@rule("DataFrame.add_prefix")
def add_prefix(call: Call, frame: Frame, prefix: str) -> Any:
    return _with_names(frame, [f"{prefix}{name}" for name in frame])


@rule("DataFrame.add_suffix")
def add_suffix(call: Call, frame: Frame, suffix: str) -> Any:
    return _with_names(frame, [f"{name}{suffix}" for name in frame])


@rule("DataFrame.filter")
def filter_names(
    call: Call, frame: Frame, items: Any = None, like: Any = None, regex: Any = None, axis: Any = 1
) -> Any:
    if axis not in (None, 1, "columns"):
        raise call.refuse("labels of rows cannot be converted")
    if items is not None:
        return selected(frame, [name for name in items if name in frame])
    test = (lambda name: like in str(name)) if like is not None else re.compile(regex).search
    return selected(frame, [name for name in frame if test(str(name))])


@rule("DataFrame.select_dtypes")
def select_dtypes(call: Call, frame: Frame, include: Any = None, exclude: Any = None) -> Any:
    return selected(frame, list(frame.real.select_dtypes(include, exclude).columns))


@rule("DataFrame.reindex")
def reindex(call: Call, frame: Frame, *, columns: Any = None, fill_value: Any = None, axis: Any = None) -> Any:
    if columns is None:
        raise call.refuse("labels of rows cannot be converted: reindex columns")
    result = frame.copied()
    for name in columns:
        if name not in frame:
            result[name] = first_number(call, frame) * float("nan") if fill_value is None else fill_value
    return selected(result, list(columns))


def first_number(call: Call, frame: Frame) -> Any:
    for name in frame:
        if frame.real[name].dtype.kind in "biuf":
            return frame.series(name)
    raise call.refuse("a column that is missing throughout has no type: give a fill_value")
