"""Rows before and after: shift, diff, cumulative sums, ffill; of all rows, or within groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.formats.dataframe.types import FLOAT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, chosen
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series
from onward.frontends.dataframe.pandas.values import column_of, is_missing, widened
from onward.frontends.dataframe.tensors.rows import running
from onward.frontends.dataframe.tensors.rows.keys import Groups
from onward.graph.build import Tensor


def present(column: Column) -> Tensor | None:
    """Where it is there; None if it is everywhere."""
    missing = column.missing()
    return None if missing is None else column.op.Not(missing)


def shifted(call: Call, column: Column, periods: int, fill_value: Any = None, within: Groups | None = None) -> Column:
    column = column.expanded()
    value, found = running.shift(column.value, periods, within)
    null = None if column.null is None else running.shift(column.null, periods, within)[0]
    made = Column(value, column.type, column.rows, null)
    if fill_value is None or is_missing(fill_value):
        return widened(made.with_null(column.op.Not(found)))
    other = column_of(call, fill_value, column.type)
    if other.type.dtype != column.type.dtype:
        made, other = made.cast(FLOAT64), other.cast(FLOAT64)
    return chosen(found, made, other, made.type, column.rows)


def difference(call: Call, column: Column, periods: int, within: Groups | None = None) -> Column:
    column = column.expanded()
    if column.type.is_time:
        raise call.refuse("of times it is converted as df.t - df.t.shift()")
    if column.type.is_bool or column.type.is_text or column.type.masked:
        raise call.refuse(f"it is for numbers, not for {column.type}")
    wide = column.cast(FLOAT64) if column.type.is_int else column
    if column.type.is_int and not column.type.dtype.is_signed() and within is None:
        # Unsigned numbers are subtracted as such, modulo their size.
        size = float(np.iinfo(column.type.dtype.numpy()).max) + 1
        value, found = running.difference(wide.value, periods, within)
        op = value.op
        value = op.Where(value < 0.0, value + size, value)
        return Column(value, FLOAT64, column.rows).with_null(op.Not(found))
    value, found = running.difference(wide.value, periods, within)
    return Column(value, wide.type, column.rows).with_null(column.op.Not(found))


def change(call: Call, column: Column, periods: int, within: Groups | None = None) -> Column:
    column = column.expanded()
    value, found = running.relative_change(column.value, periods, within)
    type = column.type if column.type.is_float and within is None else FLOAT64
    return Column(value.cast(type.dtype), type, column.rows).with_null(column.op.Not(found))


def accumulated(call: Call, name: str, column: Column, within: Groups | None = None) -> Column:
    """The sum or extreme so far; a row that is missing stays so, and does not count."""
    column = column.expanded()
    type = column.type
    if type.is_text or type.masked or type.meaning:
        raise call.refuse(f"it is for numbers, not for {type}")
    valid = present(column)
    if name in ("cumsum", "cumprod"):
        if name == "cumprod":
            value = running.running_product(column.value, valid, within)
        else:
            value = running.running_sum(column.value, valid, within, nan_after_infinity=within is not None)
        made = Column(value, type if type.is_float else ColumnType(value.dtype), column.rows)
    else:
        value = running.running_extreme(column.value, name == "cummax", valid, within)
        made = Column(value, type, column.rows)
    if within is not None and within.dropped is not None:
        made = made.with_null(column.op.unsqueeze(within.dropped, [1]))
    return widened(made if valid is None else made.with_null(column.op.Not(valid)))


def filled(
    call: Call, column: Column, backward: bool, limit: int | None = None, within: Groups | None = None
) -> Column:
    """With the last value before, or the next behind, where it is missing."""
    column = column.masked().expanded()
    valid = present(column)
    if valid is None:
        return column
    value, found = running.fill_forward(column.value, valid, limit, backward, within)
    made = Column(value, column.type, column.rows)
    return made.with_null(column.op.Not(found))


@rule("Series.shift")
def shift(call: Call, x: Series, periods: int = 1, freq: Any = None, axis: Any = 0, fill_value: Any = None) -> Column:
    _plain_number(call, periods)
    if freq is not None:
        raise call.refuse("freq cannot be converted")
    return shifted(call, x.column, periods, fill_value, call.trace.groups_of(x.column))


@rule("Series.diff")
def diff(call: Call, x: Series, periods: int = 1) -> Any:
    _plain_number(call, periods)
    if x.column.type.is_time:
        return x - x.shift(periods)
    return difference(call, x.column, periods, call.trace.groups_of(x.column))


@rule("Series.pct_change")
def pct_change(call: Call, x: Series, periods: int = 1, fill_method: Any = None, freq: Any = None) -> Column:
    _plain_number(call, periods)
    return change(call, x.column, periods, call.trace.groups_of(x.column))


def _plain_number(call: Call, periods: Any) -> None:
    if not isinstance(periods, int):
        raise call.refuse("the number of rows is fixed and whole")


def _declare() -> None:
    for name in ("cumsum", "cummax", "cummin", "cumprod"):

        def so_far(call: Call, x: Series, axis: Any = 0, skipna: bool = True, name: str = name) -> Column:
            if x.column.type.is_float and (not skipna or x.column.rows.is_array):
                raise call.refuse("what is missing would make all that follow missing: use the column, and skipna=True")
            return accumulated(call, name, x.column, call.trace.groups_of(x.column))

        rule(f"Series.{name}", *(["numpy.cumsum"] if name == "cumsum" else []))(so_far)

        def of_frame(call: Call, frame: Frame, axis: Any = 0, name: str = name) -> Any:
            return {column: getattr(frame.series(column), name)().column for column in frame}

        rule(f"DataFrame.{name}")(of_frame)
    for name in ("shift", "diff", "pct_change", "ffill", "bfill"):

        def rowwise(call: Call, frame: Frame, *args: Any, name: str = name, **options: Any) -> Any:
            if options.pop("axis", 0) not in (0, "index"):
                raise call.refuse("across columns it cannot be converted")
            made = {column: getattr(frame.series(column), name)(*args, **options).column for column in frame}
            return made

        rule(f"DataFrame.{name}")(rowwise)


_declare()


@rule("Series.ffill", "Series.pad")
def ffill(call: Call, x: Series, *, axis: Any = 0, limit: int | None = None) -> Column:
    return filled(call, x.column, False, limit, call.trace.groups_of(x.column))


@rule("Series.bfill")
def bfill(call: Call, x: Series, *, axis: Any = 0, limit: int | None = None) -> Column:
    return filled(call, x.column, True, limit, call.trace.groups_of(x.column))


@rule("Series.interpolate")
def interpolate(call: Call, x: Series, method: str = "linear", **options: Any) -> Column:
    if method != "linear" or any(value is not None for value in options.values()):
        raise call.refuse("it is converted as a line between neighbours only")
    if call.trace.groups_of(x.column) is not None or not x.column.type.is_float:
        raise call.refuse("it is for floats, outside of groups")
    column = x.column.expanded()
    valid = present(column)
    assert valid is not None
    value, found = running.interpolate(column.value, valid)
    return Column(value, column.type, column.rows).with_null(column.op.Not(found))
