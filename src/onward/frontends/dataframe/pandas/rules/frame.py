"""Columns of a frame: chosen, added, renamed, left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL
from onward.frontends.dataframe.columns.column import (
    ONE,
    Column,
    Rows,
    aligned,
    filtered,
    guarded,
    looked_up,
    taken,
    truth,
)
from onward.frontends.dataframe.pandas.dispatch import Call, UnknownColumnError, rule, unwrapped
from onward.frontends.dataframe.pandas.proxies import BLANK, Deferred, Frame, Index, Scalar, Series, joined, unlabelled
from onward.frontends.dataframe.pandas.values import as_names, at_labels, beside, column_of, is_missing
from onward.graph.build import Tensor
from onward.hub.wording import quote


@rule("DataFrame.__getitem__")
def getitem(call: Call, frame: Frame, key: Any) -> Any:
    if isinstance(key, Series):
        return kept(call, frame, key)
    if isinstance(key, list | tuple) or (hasattr(key, "tolist") and not hasattr(key, "column")):
        names = list(key)
        if names and all(isinstance(name, bool) for name in names):
            raise call.refuse("a list of booleans depends on the number of rows")
        return selected(frame, names)
    if isinstance(key, slice):
        return sliced(call, frame, key)
    if isinstance(key, Frame):
        return frame.where(key)
    if isinstance(key, str):
        raise UnknownColumnError(f"{call.name}: the frame has no column {quote(key)}")
    if isinstance(key, int | float):
        raise UnknownColumnError(f"{call.name}: the frame has no column {key}")
    raise call.refuse(f"{type(key).__name__} as a key cannot be converted")


def told_apart(names: list[Any]) -> None:
    """Refuse columns of one name: which of them is meant later on could not be said."""
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise UnsupportedError(f"two columns are called {quote(str(twice))}: give them names of their own")


def selected(frame: Frame, names: list[Any]) -> Frame:
    told_apart(names)
    if unknown := [name for name in names if name not in frame]:
        raise UnknownColumnError(f"the frame has no column {quote(str(unknown[0]))}")
    real = frame.real[names]
    return Frame(frame.trace, real, {name: frame.columns_by_name[name] for name in names}, frame.rows)


def kept(call: Call, frame: Frame, condition: Series) -> Frame:
    """The rows where a condition holds."""
    test = condition.column
    if not frame.rows.takes(test.rows):
        if aligned(Column(call.op.constant(_FALSE), BOOL, frame.rows), test.rows) is None:
            raise call.refuse("the condition has other rows than the frame")
        condition = Series(call.trace, condition.real.reindex(frame.real.index), at_labels(call, test, frame.rows))
    positions, rows = chosen_rows(replace(condition.column, rows=frame.rows))
    mask = condition.real.fillna(False).astype(bool)
    return at_rows(frame, positions, rows, frame.real[mask.to_numpy()])


def chosen_rows(test: Column) -> tuple[Tensor, Rows]:
    _, rows = filtered([], truth(test), test.rows)
    assert rows.positions is not None
    return rows.positions, rows


def at_rows(frame: Frame, positions: Tensor, rows: Rows, real: Any) -> Frame:
    """The frame at some of its rows."""
    columns = {
        name: deferred.then(lambda column: taken(column, positions, rows))
        for name, deferred in frame.columns_by_name.items()
    }
    keep_labels(frame.trace, frame.rows, positions, rows)
    return Frame(frame.trace, real, columns, rows)


def keep_labels(trace: Any, old: Rows, positions: Tensor, rows: Rows) -> None:
    if old in trace.labels:
        trace.labels[rows] = [(name, taken(column, positions, rows)) for name, column in trace.labels[old]]


def sliced(call: Call, owner: Any, key: slice) -> Any:
    """Rows by their number, from either end."""
    if any(
        part is not None and (hasattr(part, "trace") or not isinstance(part, int)) for part in (key.start, key.stop)
    ):
        raise call.refuse("rows are chosen by fixed numbers only")
    op, rows = call.op, owner.rows if isinstance(owner, Frame) else owner.column.rows
    step = key.step or 1
    everything = op.Range(op.index(0), op.Squeeze(rows.count), op.index(1))
    end = (2**62 if step > 0 else -(2**62)) if key.stop is None else key.stop
    start = (0 if step > 0 else 2**62) if key.start is None else key.start
    positions = op.Slice(everything, op.ints([start]), op.ints([end]), op.ints([0]), op.ints([step]))
    made = Rows(op.names.value("rows"), lambda: op.Shape(positions), rows, positions)
    if isinstance(owner, Frame):
        return at_rows(owner, positions, made, owner.real.iloc[key])
    keep_labels(call.trace, rows, positions, made)
    return joined(call.trace, taken(owner.column, positions, made), owner.real.iloc[key])


@rule("Series.__getitem__")
def series_getitem(call: Call, x: Series, key: Any) -> Any:
    if isinstance(key, slice):
        return sliced(call, x, key)
    rows = x.column.rows
    if isinstance(key, int) and rows.parent is None and rows not in call.trace.labels:
        if key < 0:
            raise call.refuse("a row before the first has no number: use .iloc[-1]")
        return single(call, x, key)
    if not isinstance(key, Series):
        raise call.refuse("a single row by its label cannot be converted: what it holds depends on the data")
    test, column = beside(call, key.column, x.column)
    positions, rows = chosen_rows(test)
    keep_labels(call.trace, column.rows, positions, rows)
    mask = key.real.fillna(False).astype(bool).to_numpy()
    return joined(call.trace, taken(column, positions, rows), x.real[mask])


def single(call: Call, x: Series, place: int) -> Column:
    """The value in one row, from either end; the model fails where there is no such row."""
    op = call.op
    column = x.column.expanded()
    many = op.Squeeze(column.rows.count)
    at = op.index(place) if place >= 0 else many + place
    inside = op.And(op.GreaterOrEqual(at, op.index(0)), op.Less(at, many))
    outside = op.Reshape(op.Not(inside), op.ints([1, 1]))
    position = op.Reshape(op.Where(inside, at, op.index(0)), op.ints([1]))
    made = looked_up(column, position, ONE, outside)
    return guarded(made, outside, f"there is no row {place}")


@rule("DataFrame.head", "Series.head")
def head(call: Call, x: Any, n: int = 5) -> Any:
    return sliced(call, x, slice(0, n) if n >= 0 else slice(None, n))


@rule("DataFrame.tail", "Series.tail")
def tail(call: Call, x: Any, n: int = 5) -> Any:
    return sliced(call, x, slice(-n, None) if n > 0 else slice(0, 0) if n == 0 else slice(-n, None))


@rule("DataFrame.iloc.__getitem__", "Series.iloc.__getitem__")
def iloc(call: Call, owner: Any, key: Any) -> Any:
    if isinstance(key, tuple) and len(key) == 2 and isinstance(owner, Frame):
        rows, columns = key
        names = owner.columns[columns]
        is_one = isinstance(columns, int | np.integer)
        part = owner.series(names) if is_one else selected(owner, list(names))
        return part if rows == slice(None) else iloc(call, part, rows)
    if isinstance(key, slice):
        return sliced(call, owner, key)
    if isinstance(key, int) and isinstance(owner, Series):
        return single(call, owner, key)
    raise call.refuse("single rows of a frame cannot be converted: use slices")


@rule("DataFrame.loc.__getitem__")
def loc(call: Call, frame: Frame, key: Any) -> Any:
    rows, columns = key if isinstance(key, tuple) else (key, slice(None))
    if callable(rows) and not isinstance(rows, Series):
        rows = rows(frame)
    part = frame
    if isinstance(rows, Series):
        part = kept(call, frame, rows)
    elif not (isinstance(rows, slice) and rows == slice(None)):
        raise call.refuse("rows by their labels cannot be converted: choose them by a condition")
    if isinstance(columns, slice):
        if columns == slice(None):
            return part
        return selected(part, list(part.real.loc[:, columns].columns))
    if isinstance(columns, list | tuple) or hasattr(columns, "tolist"):
        return selected(part, as_names(columns))
    return part[columns]


@rule("Series.loc.__getitem__")
def series_loc(call: Call, x: Series, key: Any) -> Any:
    if not isinstance(key, Series):
        raise call.refuse("rows by their labels cannot be converted: choose them by a condition")
    return x[key]


@rule("DataFrame.loc.__setitem__")
def loc_assign(call: Call, frame: Frame, key: Any, value: Any) -> None:
    if not isinstance(key, tuple) or len(key) != 2:
        raise call.refuse("name the column too: df.loc[condition, 'column'] = …")
    rows, columns = key
    if callable(rows) and not isinstance(rows, Series):
        rows = rows(frame)
    names = columns if isinstance(columns, list) else [columns]
    for name in names:
        part = value[name] if isinstance(value, Frame) else value
        if isinstance(rows, slice) and rows == slice(None):
            frame[name] = part
        elif isinstance(rows, Series):
            _assign_where(call, frame, name, rows, part)
        else:
            raise call.refuse("rows by their labels cannot be converted: choose them by a condition")


def _assign_where(call: Call, frame: Frame, name: Any, condition: Series, value: Any) -> None:
    if isinstance(value, Series):
        column = at_labels(call, value.column, condition.column.rows)
        value = Series(value.trace, value.real.reindex(condition.real.index), column)
    if name in frame:
        before = frame.series(name)
        if before.column.type.is_time and isinstance(value, str):
            value = column_of(call, value, before.column.type)
        frame.put(name, before.mask(condition, value))
        return
    if is_missing(value):
        raise call.refuse(f"column {quote(str(name))} would be all missing: give it a type first")
    if isinstance(value, Series):
        frame.put(name, value.where(condition))
        return
    from onward.frontends.dataframe.pandas.rules.choose import choice

    real = frame.real.copy(deep=False)
    real.loc[condition.real.to_numpy(), name] = unwrapped(value)
    made = choice(call, condition.column, value, None)
    frame.put(name, joined(frame.trace, made, real[name]))


@rule("Series.loc.__setitem__", "Series.__setitem__")
def series_assign(call: Call, x: Series, key: Any, value: Any) -> None:
    if not isinstance(key, Series):
        raise call.refuse("rows by their labels cannot be converted: choose them by a condition")
    after = x.mask(key, value)
    x.column, x.real = after.column, after.real


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


def _false() -> Any:
    import numpy as np

    return np.asarray([[False]])


_FALSE = _false()


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
    raise call.refuse("whether there are rows is not known before the model runs")


@rule("DataFrame.infer_objects", "Series.infer_objects", "DataFrame.convert_dtypes")
def infer_objects(call: Call, x: Any, copy: Any = None) -> Any:
    if call.name.endswith("convert_dtypes"):
        raise call.refuse("the types would depend on the data: use astype")
    return x


__all__ = ["Index", "at_rows", "chosen_rows", "keep_labels", "kept", "selected"]
