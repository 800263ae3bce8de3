"""Rows and columns of a frame, chosen and set: by a condition, by their numbers, by name."""

from __future__ import annotations

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
from onward.frontends.dataframe.pandas.proxies import Frame, Series, joined
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


def _false() -> Any:
    import numpy as np

    return np.asarray([[False]])


_FALSE = _false()
