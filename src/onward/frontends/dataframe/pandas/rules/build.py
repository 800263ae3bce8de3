"""Frames and columns that the function puts together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.frontends.dataframe.columns.column import Rows, aligned
from onward.frontends.dataframe.pandas.dispatch import Call, first_proxy, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Index, Series
from onward.frontends.dataframe.pandas.rules.below import below
from onward.frontends.dataframe.pandas.rules.selection import selected
from onward.hub.wording import quote


def _empty_like(value: Series | Frame | Index) -> Frame:
    """A frame of the same rows; those of an array are numbered, as pandas does it."""
    import pandas

    rows = value.rows if isinstance(value, Frame | Index) else value.column.rows
    index = value.real if isinstance(value, Index) else value.real.index
    if rows.is_array:
        whole = value.trace.table.rows
        rows = whole if rows.sequence is whole else Rows(rows.name, lambda: rows.count, same=rows)
        index = pandas.RangeIndex(len(index))
    return Frame(value.trace, pandas.DataFrame(index=index), {}, rows)


@rule("pandas.DataFrame")
def dataframe(call: Call, data: Any = None, index: Any = None, columns: Any = None, dtype: Any = None) -> Any:
    if isinstance(data, Frame):
        made = data if columns is None else selected(data, list(columns))
        return made.copied() if dtype is None else made.astype(dtype)
    if isinstance(data, Series):
        return data.to_frame(None if columns is None else columns[0])
    if isinstance(data, list) and data and all(isinstance(item, Series) for item in data):
        raise call.refuse("a list of columns would become rows: give them by name, in a dict")
    if data is None and isinstance(index, Index):
        return _empty_like(index)
    if not isinstance(data, Mapping):
        raise call.refuse("give the columns by name, in a dict")
    if index is not None and not isinstance(index, Index):
        raise call.refuse("an index that is not that of a frame cannot be converted")
    first = next((value for value in data.values() if isinstance(value, Series)), None) if index is None else index
    if not isinstance(first, Series | Index):
        raise call.refuse("none of the columns has rows that come from the frame")
    frame = _empty_like(first)
    for name, value in data.items():
        if index is None:
            _must_have_rows(call, frame, value)
        frame[name] = value
    made = frame if columns is None else selected(frame, list(columns))
    return made if dtype is None else made.astype(dtype)


@rule("pandas.Series")
def series(call: Call, data: Any = None, index: Any = None, dtype: Any = None, name: Any = None) -> Any:
    if isinstance(data, Mapping) and call.trace.paths is not None:
        return dict(data)
    label = data.name if name is None and isinstance(data, Series) else name
    like = index if index is not None else data
    if isinstance(like, Index | Series) and not isinstance(data, list | tuple | Mapping):
        frame = _empty_like(like)
        frame["value"] = data
        made = frame["value"].rename(label)
    else:
        raise call.refuse("give a column of the frame, or a single value and the index of the frame")
    return made if dtype is None else made.astype(dtype)


@rule("pandas.concat")
def concat(
    call: Call, objs: Any, *, axis: Any = 0, ignore_index: bool = False, keys: Any = None, join: str = "outer"
) -> Any:
    if isinstance(objs, Mapping):
        objs = [part.rename(name) if isinstance(part, Series) else part for name, part in objs.items()]
    if keys is not None and axis in (1, "columns") and all(isinstance(part, Series) for part in objs):
        objs = [part.rename(name) for part, name in zip(objs, keys, strict=True)]
    elif keys is not None:
        raise call.refuse("keys are names for columns that are put side by side (axis=1), and not for frames")
    if axis not in (1, "columns"):
        return below(call, [part for part in objs if part is not None], ignore_index, join)
    parts = [part for part in objs if part is not None]
    if any(not isinstance(part, Series | Frame) for part in parts):
        raise call.refuse("data that the function brings along has the rows of the sample: merge it instead")
    made = _empty_like(parts[0])
    for number, part in enumerate(parts):
        columns = {_label(part, number): part} if isinstance(part, Series) else {n: part.series(n) for n in part}
        for name, column in columns.items():
            if name in made:
                raise call.refuse(f"two columns are called {quote(str(name))}: rename one")
            _must_have_rows(call, made, column)
            made[name] = column
    return made


def _must_have_rows(call: Call, frame: Frame, value: Any) -> None:
    """Refuse a column that has rows which the frame has not, or in another order: there would be more of them."""
    if isinstance(value, Series) and aligned(value.column, frame.rows) is None:
        raise call.refuse(
            "columns of different rows are put side by side, and the first has not all of them: begin with one that has"
        )


def _label(part: Series, number: int) -> Any:
    return number if part.name is None else part.name


@rule("DataFrame.join")
def join(
    call: Call, frame: Frame, other: Any, on: Any = None, how: str = "left", lsuffix: str = "", rsuffix: str = ""
) -> Any:
    if isinstance(other, Frame | Series) and on is None and how == "left" and not lsuffix and not rsuffix:
        return concat(call, [frame, other], axis=1)
    if isinstance(other, Frame | Series) and isinstance(on, str | list) and how == "left":
        return frame.merge(other, left_on=on, right_index=True, how=how, suffixes=(lsuffix, rsuffix))
    if first_proxy(other) is None and isinstance(on, str) and how in ("left", "inner"):
        right = other if hasattr(other, "columns") else other.to_frame()
        key = right.index.name or "index"
        return frame.merge(right.reset_index(names=key), left_on=on, right_on=key, how=how).drop(
            columns=[] if key == on else [key]
        )
    raise call.refuse(
        "it is converted for columns of the same rows, or with on= and the result of a groupby or a table of the"
        " function's own"
    )


@rule("numpy.column_stack", "numpy.stack", "numpy.hstack", "numpy.vstack", "numpy.concatenate")
def stack(call: Call, *args: Any, **options: Any) -> Any:
    raise call.refuse("columns are put side by side by name: pd.concat([…], axis=1), or pd.DataFrame({…})")
