"""Tables that the function brings along: merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import TEXT, ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows, constant, looked_up, taken
from onward.frontends.dataframe.pandas.dispatch import Call, has_proxy, rule
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Series
from onward.frontends.dataframe.pandas.rules.order import sort_key
from onward.frontends.dataframe.pandas.values import as_names, is_missing, widened
from onward.frontends.dataframe.tensors.rows.join import JoinKey, TableKey, find_all_rows, find_computed_rows, find_rows
from onward.graph.build import Tensor
from onward.hub.wording import quote


@rule("DataFrame.merge", "pandas.merge")
def merge(
    call: Call,
    left: Any,
    right: Any,
    how: str = "inner",
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    left_index: bool = False,
    right_index: bool = False,
    sort: bool = False,
    suffixes: tuple[Any, Any] = ("_x", "_y"),
    copy: Any = None,
    indicator: Any = False,
    validate: Any = None,
) -> Frame:
    if not isinstance(left, Frame):
        raise call.refuse("the frame that the function is given stands on the left")
    if how not in ("left", "inner") or left_index or sort or (indicator and how != "left"):
        raise call.refuse("merges are converted with how='left' or how='inner', by columns, without sorting")
    if isinstance(right, Series):
        right = right.to_frame()
    own, other = _keys(call, left, right, on, left_on, right_on, right_index)
    if isinstance(right, Frame):
        if indicator:
            raise call.refuse("an indicator is converted for tables of the function's own")
        return _with_computed(call, left, right, own, other, how, suffixes, right_index)
    if has_proxy(right):
        raise call.refuse("the table that is merged is no frame")
    if hasattr(right, "to_frame") and not hasattr(right, "columns"):
        right = right.to_frame()
    mark = "_merge" if indicator is True else indicator or ""
    return _withconstant_column(call, left, right, own, other, how, suffixes, right_index, mark)


def _keys(
    call: Call, left: Frame, right: Any, on: Any, left_on: Any, right_on: Any, by_index: bool
) -> tuple[list[Any], list[Any]]:
    if on is not None:
        names = as_names(on)
        return names, names
    if left_on is not None and (right_on is not None or by_index):
        own = as_names(left_on)
        if by_index:
            return own, []
        return own, as_names(right_on)
    names = [name for name in left if name in list(right.columns)]
    if not names or by_index:
        raise call.refuse("name the columns to merge by: on=…")
    return names, names


def _withconstant_column(
    call: Call,
    left: Frame,
    right: Any,
    own: list[Any],
    other: list[Any],
    how: str,
    suffixes: Any,
    by_index: bool,
    mark: str,
) -> Frame:
    op = call.op
    keys = [_join_key(left.column(name)) for name in own]
    levels = [right.index.get_level_values(i) for i in range(right.index.nlevels)] if by_index else []
    tables = levels if by_index else [right[name] for name in other]
    for name, table in zip(own, tables, strict=True):
        if not _comparable(left.column(name).type, type_of(table)):
            raise call.refuse(f"the keys {quote(str(name))} are of different types")
    table_keys = [_table_key(table, left.column(name).type) for name, table in zip(own, tables, strict=True)]
    is_unique = not _has_duplicates(right, other, by_index)
    table_rows = Rows(op.names.value("table"), lambda: op.ints([len(right)]))
    brought = {
        name: constant_column(call, right[name], table_rows)
        for name in right.columns
        if by_index or name not in other or name not in own
    }
    if is_unique and how == "left":
        positions, found = find_rows(keys, table_keys)
        parts = {name: _at(column, positions, left.rows, found) for name, column in brought.items()}
        if mark:
            parts[mark] = Deferred(lambda: _indicator(call, found, left.rows))
        return _merged(call, *_numbered(call, left, parts), other, suffixes)
    rows_left, rows_right, found = find_all_rows(keys, table_keys, how == "left")
    rows = Rows(op.names.value("rows"), lambda: op.Shape(rows_left))
    columns = {name: d.then(lambda c: taken(c, rows_left, rows)) for name, d in left.columns_by_name.items()}
    outside = found if how == "left" else None
    if mark:
        raise call.refuse("an indicator is converted where each key stands once in the table")
    parts = {name: _at(column, rows_right, rows, outside) for name, column in brought.items()}
    return _merged(call, columns, parts, rows, other, suffixes)


def _indicator(call: Call, found: Tensor, rows: Rows) -> Column:
    op = call.op
    words = [op.strings(np.asarray([[word]], object)) for word in ("both", "left_only")]
    type = replace(TEXT, categories=("left_only", "right_only", "both"))
    return Column(op.Where(found, *words), type, rows)


def _at(column: Column, positions: Tensor, rows: Rows, found: Tensor | None) -> Deferred:
    if found is None:
        return Deferred(lambda: taken(column, positions, rows))
    return Deferred(lambda: widened(looked_up(column, positions, rows, column.op.Not(found))))


Parts = dict[Any, Deferred]


def _numbered(call: Call, left: Frame, parts: Parts) -> tuple[Parts, Parts, Rows]:
    """The columns of both sides where the rows stay those of the left one: numbered anew, as pandas does."""
    own, rows = dict(left.columns_by_name), left.rows
    if rows.parent is None and rows not in call.trace.labels:
        return own, parts, rows
    fresh = Rows(rows.name, lambda: rows.count, same=rows)

    def moved(columns: Parts) -> Parts:
        return {name: deferred.then(lambda column: replace(column, rows=fresh)) for name, deferred in columns.items()}

    return moved(own), moved(parts), fresh


def _merged(
    call: Call,
    columns: dict[Any, Deferred],
    parts: dict[Any, Deferred],
    rows: Rows,
    keys: list[Any],
    suffixes: Any,
) -> Frame:
    made: dict[Any, Deferred] = {}
    twice = {name for name in parts if name in columns}
    for name, column in columns.items():
        made[f"{name}{suffixes[0]}" if name in twice else name] = column
    for name, column in parts.items():
        made[f"{name}{suffixes[1]}" if name in twice else name] = column
    real = call.real
    if list(real.columns) != list(made):
        raise call.refuse("the columns come out in another order than here")
    return Frame(call.trace, _widest(real, made), made, rows)


def _widest(real: Any, columns: dict[Any, Deferred]) -> Any:
    """What pandas gives, with numbers that may be missing as floats whatever the sample holds."""
    real = real.copy(deep=False)
    for name, column in columns.items():
        type = real[name].dtype
        if isinstance(type, np.dtype) and type.kind in "iu" and column.get().type.is_float:
            real[name] = real[name].astype(np.float64)
    return real


def _comparable(a: ColumnType, b: ColumnType) -> bool:
    if a.is_text or b.is_text:
        return a.is_text and b.is_text
    return a.meaning == b.meaning and (not a.is_time or a.unit == b.unit)


def _has_duplicates(right: Any, names: list[Any], by_index: bool) -> bool:
    return bool(right.index.duplicated().any() if by_index else right.duplicated(names).any())


def _join_key(column: Column) -> JoinKey:
    column = column.expanded()
    null = column.missing() if not column.type.nan_is_null else None
    return JoinKey(column.value, null, column.type.nan_is_null)


def _table_key(series: Any, type: ColumnType) -> TableKey:
    missing = np.asarray(series.isna(), bool)
    if type.is_time:
        ticks = np.asarray(series.to_numpy()).astype(f"{'M' if type.meaning == 'datetime' else 'm'}8[{type.unit}]")
        return TableKey(ticks.view(np.int64), missing)
    values = np.asarray(series.to_numpy(dtype=object))
    if type.is_text:
        values = np.asarray([None if gone else str(value) for value, gone in zip(values, missing, strict=True)], object)
        return TableKey(values, missing)
    filled = np.asarray([0 if gone else value for value, gone in zip(values, missing, strict=True)])
    return TableKey(filled if len(filled) else filled.astype(np.float64), missing)


def constant_column(call: Call, series: Any, rows: Rows) -> Column:
    type = type_of(series)
    cells = [None if is_missing(value) else value for value in series.tolist()]
    if type.is_time:
        kind = "M" if type.meaning == "datetime" else "m"
        ticks = np.asarray(series.to_numpy()).astype(f"{kind}8[{type.unit}]").view(np.int64).tolist()
        cells = [None if cell is None else tick for cell, tick in zip(cells, ticks, strict=True)]
    return constant(call.op, cells, type, rows)


def _with_computed(
    call: Call, left: Frame, right: Frame, own: list[Any], other: list[Any], how: str, suffixes: Any, by_index: bool
) -> Frame:
    """With a table that groupby made: it has each key once."""
    labels = call.trace.labels.get(right.rows)
    unique = call.trace.unique.get(right.rows)
    names = [name for name, _ in labels or ()] if by_index or not set(other) <= set(right) else other
    if (
        how != "left"
        or (unique is None and labels is None)
        or set(names) != set(unique or [n for n, _ in labels or ()])
    ):
        raise call.refuse(
            "a many-to-many merge of rows with rows has no bounded size: merge with a table of the function's own, or "
            "with the result of a groupby (how='left')"
        )
    by_label = dict(labels or ())
    keys = [sort_key(left.column(name)) for name in own]
    table = [sort_key(by_label[name] if name in by_label else right.column(name)) for name in names]
    positions, found = find_computed_rows(keys, table)
    parts = {
        name: _at(right.column(name), positions, left.rows, found)
        for name in right
        if name not in names or name not in own
    }
    return _merged(call, *_numbered(call, left, parts), other, suffixes)


@rule("part: map by group")
def mapped_by_group(call: Call, x: Series, table: Series) -> Any:
    """The value of the group that a key names, of a column that groupby made."""
    labels = call.trace.labels.get(table.column.rows)
    if labels is None or len(labels) != 1:
        raise call.refuse("it is mapped by a column whose rows have no labels: map by the result of a groupby")
    (_, key), column = labels[0], x.column.expanded()
    if key.type.dtype != column.type.dtype or key.type.meaning != column.type.meaning:
        raise call.refuse("the keys are of another type than the column")
    positions, found = find_computed_rows([sort_key(column)], [sort_key(key)])
    missing = column.missing()
    outside = call.op.Not(found) if missing is None else call.op.Or(call.op.Not(found), missing)
    return widened(looked_up(table.column, positions, column.rows, outside))
