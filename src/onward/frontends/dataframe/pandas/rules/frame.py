"""Columns of a frame: chosen, added, renamed, left out."""

from __future__ import annotations

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
from onward.frontends.dataframe.pandas.rules.selection import kept, selected
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
    raise call.refuse("a branch depends on whether there are rows, which is not known before the model runs")


@rule("DataFrame.infer_objects", "Series.infer_objects", "DataFrame.convert_dtypes")
def infer_objects(call: Call, x: Any, copy: Any = None) -> Any:
    if call.name.endswith("convert_dtypes"):
        raise call.refuse("the types would depend on the data: use astype")
    return x


@rule("DataFrame.T", "DataFrame.transpose")
def transpose(call: Call, frame: Frame, *args: Any) -> Any:
    raise call.refuse("a transpose makes columns of rows, and how many there are is not known before the model runs")


def _declare_writers() -> None:
    for name in ("csv", "parquet", "feather", "json", "pickle", "excel", "hdf", "sql", "html", "string", "dict"):

        def writer(call: Call, x: Any, *args: Any, **options: Any) -> Any:
            raise call.refuse("it writes what the data holds: return the frame, and write what the model gives")

        rule(f"DataFrame.to_{name}", f"Series.to_{name}")(writer)


_declare_writers()
