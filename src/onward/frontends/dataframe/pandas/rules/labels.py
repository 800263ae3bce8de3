"""Labels of rows: reset_index, set_index, and the numbers that rows have."""

from __future__ import annotations

from typing import Any

from onward.formats.dataframe.types import INT64
from onward.frontends.dataframe.columns.column import Column, Rows, positions_of, taken
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Index, Series
from onward.frontends.dataframe.pandas.rules.selection import told_apart
from onward.frontends.dataframe.pandas.values import as_names


@rule("DataFrame.reset_index", "Series.reset_index")
def reset_index(call: Call, x: Any, level: Any = None, *, drop: bool = False, name: Any = None) -> Any:
    if level is not None:
        raise call.refuse("levels of an index cannot be converted")
    rows = x.rows if isinstance(x, Frame) else x.column.rows
    labels = call.trace.labels.get(rows)
    fresh = Rows(rows.name, lambda: rows.count, same=rows)

    def moved(column: Column) -> Column:
        return Column(column.value, column.type, fresh, column.null)

    if isinstance(x, Series) and drop:
        return Series(x.trace, x.real.reset_index(drop=True), moved(x.column))
    if isinstance(x, Series):
        x = x.to_frame(name if name is not None else 0 if x.name is None else x.name)
    columns = {name: deferred.then(moved) for name, deferred in x.columns_by_name.items()}
    if labels is None and not drop:
        label = "level_0" if "index" in columns else "index"
        columns = {label: Deferred(moved(row_labels(call, x.rows)))} | columns
    elif labels is not None and not drop:
        told_apart([*(name for name, _ in labels), *columns])
        call.trace.unique[fresh] = [name for name, _ in labels]
        columns = {name: Deferred(moved(column)) for name, column in labels} | columns
    return Frame(x.trace, x.real.reset_index(drop=drop), columns, fresh)


def row_labels(call: Call, rows: Rows) -> Column:
    """The number that each row has in the frame that the function is given, or since the last reset_index."""
    if rows in call.trace.labels:
        raise call.refuse("the index names groups: use reset_index")
    if rows.parent is None or rows.positions is None:
        return Column(positions_of(call.op, rows), INT64, rows)
    return taken(row_labels(call, rows.parent), rows.positions, rows)


@rule("part: row labels")
def row_labels_part(call: Call, index: Index) -> Series:
    return Series(index.trace, index.real.to_series().astype("int64"), row_labels(call, index.rows))


@rule("DataFrame.set_index")
def set_index(call: Call, frame: Frame, keys: Any, *, drop: bool = True) -> Frame:
    names = as_names(keys)
    rows = Rows(frame.rows.name, lambda: frame.rows.count, same=frame.rows)

    def moved(column: Column) -> Column:
        return Column(column.value, column.type, rows, column.null)

    call.trace.labels[rows] = [(name, moved(frame.column(name))) for name in names]
    kept_names = [name for name in frame if not (drop and name in names)]
    columns = {name: frame.columns_by_name[name].then(moved) for name in kept_names}
    return Frame(frame.trace, frame.real.set_index(names if len(names) > 1 else names[0], drop=drop), columns, rows)
