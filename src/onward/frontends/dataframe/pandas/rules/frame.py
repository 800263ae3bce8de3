"""Columns of a frame: chosen, added, renamed, left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from onward.formats.dataframe.types import BOOL
from onward.frontends.dataframe.columns.column import (
    Column,
    Rows,
    aligned,
)
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import BLANK, Deferred, Frame, Index, Scalar, Series, joined, unlabelled
from onward.frontends.dataframe.pandas.rules.selection import kept, selected, told_apart
from onward.frontends.dataframe.pandas.values import at_labels, column_of, is_missing
from onward.hub.wording import quote


@rule("DataFrame.__setitem__")
def setitem(call: Call, frame: Frame, key: Any, value: Any) -> None:
    if hasattr(key, "tolist") and not isinstance(key, Series):
        key = key.tolist()
    if isinstance(key, list):
        if isinstance(value, Frame):
            parts = [value.series(name) for name in value]
        elif isinstance(value, list | tuple) and len(value) == len(key):
            parts = list(value)
        else:
            parts = [value] * len(key)
        if len(parts) != len(key):
            raise call.refuse("there are as many columns as names to be given")
        for name, part in zip(key, parts, strict=True):
            frame[name] = part
        return
    if isinstance(key, Series):
        raise call.refuse("values of all columns are set where a condition holds: name the column, with df.loc")
    frame.put(key, as_part(call, frame, value))


def as_part(call: Call, frame: Frame, value: Any) -> Series | Scalar:
    """A value that becomes a column of a frame."""
    import pandas

    if isinstance(value, Index):
        value = call.part("part: row labels", value)
    if frame.rows is BLANK:
        if not isinstance(value, Series):
            raise call.refuse("a new frame begins with a column of the frame that the function is given")
        frame.rows, frame.real = value.column.rows, pandas.DataFrame(index=value.real.index)

    if isinstance(value, Frame):
        if len(value.columns) != 1:
            raise call.refuse("a frame of several columns is given for one")
        value = value.series(value.columns[0])
    if isinstance(value, Scalar):
        real = pandas.Series([value.real] * len(frame.real), index=frame.real.index)
        return joined(frame.trace, _of_rows(value.column, frame.rows), real)
    if isinstance(value, Series):
        return aligned_part(call, frame, value)
    if (
        isinstance(value, list | tuple)
        or hasattr(value, "iloc")
        or (hasattr(value, "__array__") and not _is_single(value))
    ):
        raise call.refuse("a list has the length of the sample, not of what the model is given")
    if is_missing(value):
        raise call.refuse("a column that is missing throughout has no type: give it one, such as float('nan') * df.x")
    column = column_of(call, value)
    real = pandas.Series([value] * len(frame.real), index=frame.real.index)
    if not len(real):
        real = real.astype(type(value) if not isinstance(value, str) else "str")
    return joined(frame.trace, _of_rows(column, frame.rows), real)


def _is_single(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 0


def _of_rows(column: Column, rows: Rows) -> Column:
    return Column(column.value, column.type, rows, column.null)


def aligned_part(call: Call, frame: Frame, value: Series) -> Series | Scalar:
    column = at_labels(call, value.column, frame.rows)
    if value.real.index is frame.real.index:
        real = value.real
    elif value.column.rows.is_array and len(value.real) == len(frame.real):
        real = value.real.set_axis(frame.real.index)
    else:
        real = value.real.reindex(frame.real.index)
    return joined(frame.trace, column, real)


@rule("DataFrame.assign")
def assign(call: Call, frame: Frame, **columns: Any) -> Frame:
    made = frame.copied()
    for name, value in columns.items():
        made[name] = value(made) if callable(value) and not hasattr(value, "trace") else value
    return made


@rule("DataFrame.insert")
def insert(call: Call, frame: Frame, loc: int, column: Any, value: Any, allow_duplicates: bool = False) -> None:
    frame[column] = value
    names = [name for name in frame if name != column]
    names.insert(loc, column)
    _reorder(frame, names)


def _reorder(frame: Frame, names: list[Any]) -> None:
    frame.columns_by_name = {name: frame.columns_by_name[name] for name in names}
    frame.real = frame.real[names]


@rule("DataFrame.pop")
def pop(call: Call, frame: Frame, item: Any) -> Series:
    found = frame.series(item)
    del frame[item]
    return found


@rule("DataFrame.get")
def get(call: Call, frame: Frame, key: Any, default: Any = None) -> Any:
    return frame[key] if isinstance(key, list) or key in frame else default


@rule("DataFrame.copy", "Series.copy")
def copy(call: Call, x: Any, deep: bool = True) -> Any:
    return x.copied() if isinstance(x, Frame) else Series(x.trace, x.real.copy(), x.column)


@rule("DataFrame.drop")
def drop(
    call: Call,
    frame: Frame,
    labels: Any = None,
    *,
    axis: Any = 0,
    index: Any = None,
    columns: Any = None,
    errors: str = "raise",
) -> Any:
    names = columns if columns is not None else labels if axis in (1, "columns") else None
    rows = index if index is not None else labels if axis in (0, "index") else None
    if isinstance(rows, Index) and names is None:
        return _without(call, frame, rows)
    if names is None or index is not None:
        raise call.refuse("rows by their labels cannot be converted: choose them by a condition")
    gone = [names] if isinstance(names, str) or not hasattr(names, "__iter__") else list(names)
    if errors != "ignore" and (unknown := [name for name in gone if name not in frame]):
        raise call.refuse(f"the frame has no column {quote(str(unknown[0]))}")
    return selected(frame, [name for name in frame if name not in gone])


def _without(call: Call, frame: Frame, gone: Index) -> Frame:
    """The frame without rows that were chosen from it."""
    chosen = Column(call.op.constant(np.asarray([[True]])), BOOL, gone.rows).expanded()
    back = aligned(chosen, frame.rows)
    if back is None or back.null is None:
        raise call.refuse("rows are dropped that were not chosen from this frame: choose them by a condition")
    left = Series(
        frame.trace,
        frame.real.index.to_series().isin(gone.real).map(lambda g: not g),
        Column(back.null, BOOL, frame.rows),
    )
    return kept(call, frame, left)


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


@rule("Series.rename")
def series_rename(call: Call, x: Series, index: Any = None) -> Series:
    if callable(index) or isinstance(index, Mapping):
        raise call.refuse("labels of rows cannot be converted: give the column a name")
    return Series(x.trace, x.real.rename(index), x.column)


@rule("Series.to_frame")
def to_frame(call: Call, x: Series, name: Any = None) -> Frame:
    label = name if name is not None else 0 if x.name is None else x.name
    return Frame(x.trace, x.real.to_frame(label), {label: Deferred(x.column)}, x.column.rows)


@rule("DataFrame.squeeze")
def squeeze(call: Call, frame: Frame, axis: Any = None) -> Any:
    if len(frame.columns) != 1 or axis not in (1, "columns"):
        raise call.refuse("whether one row is left depends on the data: choose the column by name")
    return frame.series(frame.columns[0])


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


@rule("DataFrame.pipe", "Series.pipe")
def pipe(call: Call, x: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(func, tuple):
        function, name = func
        return function(*args, **{name: x}, **kwargs)
    return func(x, *args, **kwargs)


@rule("DataFrame.shape")
def shape(call: Call, frame: Frame) -> tuple[Scalar, int]:
    from onward.frontends.dataframe.pandas.rules.reduce import count_of_rows

    return count_of_rows(call, frame.rows, len(frame.real)), len(frame.columns)


@rule("Series.values", "Series.array", "Series.to_numpy", "DataFrame.values", "DataFrame.to_numpy")
def values(call: Call, x: Any, dtype: Any = None, **options: Any) -> Any:
    """The same without labels: it stands beside columns of the same rows, and is computed with as they are."""
    if isinstance(x, Frame):
        raise call.refuse("a frame as one array has one dtype: compute with its columns")
    made = Series(x.trace, x.real.rename(None), unlabelled(x.column))
    return made if dtype is None else made.astype(dtype)


@rule("Series.ndim", "DataFrame.ndim")
def ndim(call: Call, x: Any) -> int:
    return 2 if isinstance(x, Frame) else 1


@rule("DataFrame.items")
def items(call: Call, frame: Frame) -> list[tuple[Any, Series]]:
    return [(name, frame.series(name)) for name in frame]


@rule("DataFrame.keys")
def keys(call: Call, frame: Frame) -> Any:
    return frame.columns


@rule("DataFrame.empty", "Series.empty")
def empty(call: Call, x: Any) -> Any:
    raise call.refuse("whether there are rows is not known before the model runs")


@rule("DataFrame.infer_objects", "Series.infer_objects", "DataFrame.convert_dtypes")
def infer_objects(call: Call, x: Any, copy: Any = None) -> Any:
    if call.name.endswith("convert_dtypes"):
        raise call.refuse("the types would depend on the data: use astype")
    return x
