"""Rows in order: sort_values, rank, nlargest, and rows that stand twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx_ir as ir

from onward.formats.dataframe.types import BOOL, FLOAT64, INT64
from onward.frontends.dataframe.columns.column import ONE, Column, Rows, taken
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series, joined
from onward.frontends.dataframe.pandas.rules.category import codes_of
from onward.frontends.dataframe.pandas.rules.selection import at_rows, keep_labels
from onward.frontends.dataframe.pandas.values import as_names
from onward.frontends.dataframe.tensors.rows import order
from onward.frontends.dataframe.tensors.rows.sorting import SortKey, sort_order
from onward.graph.build import Tensor


def sort_key(column: Column, *, ascending: bool = True, nulls_last: bool = True) -> SortKey:
    """A column to sort or group by; categories go by their order."""
    null = column.missing() if not column.type.nan_is_null else None
    value = column.expanded().value
    if column.type.categories is not None:
        value = codes_of(column.expanded()).value
    return SortKey(value, null, not ascending, nulls_last, column.type.nan_is_null)


@rule("DataFrame.sort_values")
def sort_values(
    call: Call,
    frame: Frame,
    by: Any,
    *,
    axis: Any = 0,
    ascending: Any = True,
    kind: Any = None,
    na_position: str = "last",
    ignore_index: bool = False,
    key: Any = None,
) -> Any:
    if axis not in (0, "index") or key is not None:
        raise call.refuse("rows are sorted by columns, without a key function")
    names = [by] if not isinstance(by, list) else by
    ups = [ascending] * len(names) if isinstance(ascending, bool) else list(ascending)
    keys = [
        sort_key(frame.column(name), ascending=up, nulls_last=na_position == "last")
        for name, up in zip(names, ups, strict=True)
    ]
    real = frame.real.sort_values(names, ascending=ups, na_position=na_position, kind="stable")
    made = in_order(frame, sort_order(keys), real)
    return made.reset_index(drop=True) if ignore_index else made


def in_order(frame: Frame, positions: Tensor, real: Any) -> Frame:
    op = positions.op
    rows = Rows(op.names.value("rows"), lambda: op.Shape(positions), frame.rows, positions)
    return at_rows(frame, positions, rows, real)


@rule("DataFrame.sort_index", "Series.sort_index")
def sort_index(call: Call, x: Any, ascending: bool = True) -> Any:
    """Back in the order of the rows that it was sorted from; groups stand by their keys already."""
    rows = x.rows if isinstance(x, Frame) else x.column.rows
    labels = call.trace.labels.get(rows)
    if labels is not None:
        keys = [sort_key(column, ascending=ascending) for _, column in labels]
    elif rows.parent is None and ascending:
        return x
    else:
        numbers = call.part("part: row labels", x.index).column
        keys = [SortKey(numbers.value, None, not ascending)]
    positions = sort_order(keys)
    real = x.real.sort_index(ascending=ascending)
    if isinstance(x, Frame):
        return in_order(x, positions, real)
    return _series_at(call, x, positions, real)


def _series_at(call: Call, x: Series, positions: Tensor, real: Any) -> Any:
    op = call.op
    rows = Rows(op.names.value("rows"), lambda: op.Shape(positions), x.column.rows, positions)
    keep_labels(call.trace, x.column.rows, positions, rows)
    return joined(call.trace, taken(x.column, positions, rows), real)


@rule("Series.sort_values")
def series_sort(
    call: Call,
    x: Series,
    *,
    ascending: bool = True,
    na_position: str = "last",
    ignore_index: bool = False,
    kind: Any = None,
) -> Any:
    positions = sort_order([sort_key(x.column, ascending=ascending, nulls_last=na_position == "last")])
    real = x.real.sort_values(ascending=ascending, na_position=na_position, kind="stable")
    made = _series_at(call, x, positions, real)
    return made.reset_index(drop=True) if ignore_index else made


@rule("Series.rank")
def rank(
    call: Call,
    x: Series,
    axis: Any = 0,
    method: Any = "average",
    numeric_only: bool = False,
    na_option: str = "keep",
    ascending: bool = True,
    pct: bool = False,
) -> Column:
    if na_option not in ("keep", "bottom", "top"):
        raise call.refuse(f"na_option={na_option!r} is not known")
    column = x.column
    key = sort_key(column, ascending=ascending, nulls_last=na_option != "top")
    made = order.rank(key, method, pct, na_option != "keep", call.trace.groups_of(column))
    return ranked(column, made, keeps_null=na_option == "keep", whole=method != "average" and not pct)


def ranked(column: Column, made: Tensor, *, keeps_null: bool, whole: bool = False) -> Column:
    """Ranks as a column; of a type that has NA they have it too, and are whole numbers where they can be."""
    if not column.type.masked:
        return Column(made, FLOAT64, column.rows)
    null = column.missing() if keeps_null else None
    made = made if null is None else column.op.Where(null, column.op.like(0, made), made)
    is_whole = whole and not column.type.is_text
    type = replace(FLOAT64, dtype=ir.DataType.UINT64 if is_whole else FLOAT64.dtype, masked=True)
    return Column(made.cast(type.dtype), type, column.rows, null)


@rule("DataFrame.rank")
def frame_rank(call: Call, frame: Frame, axis: Any = 0, *args: Any, **options: Any) -> Any:
    if axis not in (0, "index"):
        raise call.refuse("rows are ranked within a column, not across columns")
    return {name: frame.series(name).rank(0, *args, **options).column for name in call.real.columns}


@rule("DataFrame.nlargest", "DataFrame.nsmallest")
def frame_extremes(call: Call, frame: Frame, n: int, columns: Any, keep: str = "first") -> Any:
    if keep != "first":
        raise call.refuse("keep is 'first' only")
    names = as_names(columns)
    largest = call.name.endswith("nlargest")
    return frame.sort_values(names, ascending=not largest).head(n)


@rule("Series.nlargest", "Series.nsmallest")
def series_extremes(call: Call, x: Series, n: int = 5, keep: str = "first") -> Any:
    if keep != "first":
        raise call.refuse("keep is 'first' only")
    largest = call.name.endswith("nlargest")
    return x.sort_values(ascending=not largest).head(n)


def _keys(call: Call, frame: Frame, subset: Any) -> list[SortKey]:
    names = list(frame) if subset is None else as_names(subset)
    return [sort_key(frame.column(name)) for name in names]


def _keep(keep: Any) -> Any:
    return "none" if keep is False else keep


@rule("DataFrame.duplicated")
def duplicated(call: Call, frame: Frame, subset: Any = None, keep: Any = "first") -> Column:
    return Column(order.duplicated(_keys(call, frame, subset), _keep(keep)), BOOL, frame.rows)


@rule("Series.duplicated")
def series_duplicated(call: Call, x: Series, keep: Any = "first") -> Column:
    return Column(order.duplicated([sort_key(x.column)], _keep(keep)), BOOL, x.column.rows)


@rule("DataFrame.drop_duplicates")
def drop_duplicates(
    call: Call,
    frame: Frame,
    subset: Any = None,
    *,
    keep: Any = "first",
    ignore_index: bool = False,
) -> Any:
    made = frame[~frame.duplicated(subset, keep=keep)]
    return made.reset_index(drop=True) if ignore_index else made


@rule("Series.drop_duplicates")
def series_drop_duplicates(call: Call, x: Series, *, keep: Any = "first", ignore_index: bool = False) -> Any:
    made = x[~x.duplicated(keep=keep)]
    return made.reset_index(drop=True) if ignore_index else made


@rule("Series.is_unique")
def is_unique(call: Call, x: Series) -> Column:
    return Column(order.all_distinct([sort_key(x.column)]), BOOL, ONE)


@rule("Series.value_counts")
def value_counts(
    call: Call, x: Series, normalize: bool = False, sort: bool = True, ascending: bool = False, dropna: bool = True
) -> Any:
    if ascending:
        raise call.refuse("ascending counts cannot be converted: use sort_values behind it")
    if not sort:
        raise call.refuse("the order of unsorted counts is left open: leave out sort=False")
    column = x.column
    first, counts = order.value_counts([sort_key(column)], dropna, "count")
    op = call.op
    rows = Rows(op.names.value("groups"), lambda: op.Shape(first))
    label = "index" if x.name is None else str(x.name)
    call.trace.labels[rows] = [(label, taken(column, first, rows))]
    if not normalize:
        return Column(counts, INT64, rows)
    share = counts.cast(FLOAT64.dtype)
    return Column(share / op.ReduceSum(share, keepdims=0), FLOAT64, rows)


@rule("Series.mode")
def mode(call: Call, x: Series, dropna: bool = True) -> Any:
    positions = order.mode_rows(sort_key(x.column), dropna)
    op = call.op
    rows = Rows(op.names.value("rows"), lambda: op.Shape(positions))
    return joined(call.trace, taken(x.column, positions, rows), call.real)
