"""Values of Python and pandas as columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL, FLOAT64, INT64, TEXT, TICKS, ColumnType, number_type
from onward.frontends.dataframe.columns.column import (
    Column,
    Rows,
    aligned,
    brought_to,
    null_of,
    scalar,
)
from onward.frontends.dataframe.pandas.dispatch import Call, Proxy
from onward.frontends.dataframe.pandas.proxies import Frame, Index, Scalar, Series


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or NA."""
    import pandas

    if isinstance(value, Proxy):
        return False
    return value is None or (pandas.api.types.is_scalar(value) and bool(pandas.isna(value)))


def as_names(key: Any) -> list[Any]:
    """The names of columns that were given as one name or several."""
    is_several = isinstance(key, list | tuple | set) or hasattr(key, "tolist")
    return list(key) if is_several and not isinstance(key, np.generic) else [key]


def column_of(call: Call, value: Any, like: ColumnType | None = None) -> Column:
    """A value as a column: of a number, of the type that stands beside it where that can hold it."""
    import pandas

    if isinstance(value, Series | Scalar):
        return value.column
    if isinstance(value, Index):
        return call.part("part: row labels", value).column  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, Frame | Index | list | tuple | dict | np.ndarray) or hasattr(value, "iloc"):
        raise call.refuse(
            f"a {type(value).__name__} stands where a column of the frame or a single value is needed; "
            "data that the function brings along can be mapped, merged or tested with isin"
        )
    if is_missing(value):
        return null_of(call.op, like or FLOAT64)
    if like is not None and like.is_time and isinstance(value, str):
        value = pandas.Timestamp(value) if like.meaning == "datetime" else pandas.Timedelta(value)
    if not isinstance(value, str | np.generic | pandas.Timestamp | pandas.Timedelta):
        if hasattr(value, "year") and hasattr(value, "month"):
            value = pandas.Timestamp(value)
        elif hasattr(value, "total_seconds"):
            value = pandas.Timedelta(value)
    return literal(call, value, like)


def literal(call: Call, value: Any, like: ColumnType | None = None) -> Column:
    import pandas

    if isinstance(value, np.datetime64 | np.timedelta64):
        value = pandas.Timestamp(value) if isinstance(value, np.datetime64) else pandas.Timedelta(value)
    if isinstance(value, pandas.Timestamp | pandas.Timedelta):
        if getattr(value, "tzinfo", None) is not None:
            raise call.refuse("a time zone cannot be converted: use times without one")
        unit = like.unit if like is not None and like.is_time else value.unit
        if TICKS[value.unit] > TICKS[unit] and value.as_unit(unit) != value:
            unit = value.unit
        meaning = "datetime" if isinstance(value, pandas.Timestamp) else "duration"
        ticks = value.as_unit(unit)._value
        return scalar(call.op, ticks, ColumnType(ir.DataType.INT64, meaning, unit))
    if isinstance(value, str):
        return scalar(call.op, value, TEXT)
    if isinstance(value, bool | np.bool_):
        return scalar(call.op, bool(value), BOOL)
    if isinstance(value, np.generic):
        return scalar(call.op, value, number_type(value.dtype))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise call.refuse(f"{value} is too large for int64")
        if like is not None and ((like.is_int and _fits(value, like)) or like.is_float):
            return scalar(call.op, value, replace(like, masked=False))
        return scalar(call.op, value, INT64)
    if isinstance(value, float):
        return scalar(call.op, value, replace(like, masked=False) if like is not None and like.is_float else FLOAT64)
    raise call.refuse(f"a {type(value).__name__} has no form in ONNX")


def _fits(value: int, like: ColumnType) -> bool:
    info = np.iinfo(like.dtype.numpy())
    return bool(info.min <= value <= info.max)


def beside(call: Call, *columns: Column) -> list[Column]:
    """Columns with the same rows: those of rows that were chosen from others are put back at their places."""
    spread = [column for column in columns if not column.is_scalar]
    if not spread or all(column.rows is spread[0].rows for column in spread):
        return list(columns)
    for target in spread:
        found = [aligned(column, target.rows) for column in columns]
        if all(column is not None for column in found):
            return [widened(column) for column in found if column is not None]
    raise call.refuse(
        "columns of different rows stand side by side: one of them was filtered, sorted, grouped or joined before. "
        "Compute both before or both after that step"
    )


def at_labels(call: Call, column: Column, rows: Rows) -> Column:
    """A column at the labels of rows, missing where it has none: so pandas sets what a column is filled by."""
    found = brought_to(column, rows)
    if found is None:
        raise call.refuse(
            "the column has other rows than what it stands beside: it was filtered, sorted, grouped or joined "
            "differently"
        )
    return widened(found)


def widened(column: Column) -> Column:
    """Integers that may be missing are floats in pandas."""
    if column.null is not None and column.type.is_int and not column.type.masked and column.type.categories is None:
        return column.cast(FLOAT64)
    return column


def to_type(call: Call, column: Column, type: ColumnType) -> Column:
    """The same values in another type of numbers, or ticks in another unit."""
    if column.type.is_time or type.is_time:
        if column.type.meaning != type.meaning:
            raise call.refuse(f"{column.type} and {type} do not go together")
        return in_unit(column, type.unit)
    if column.type.is_text != type.is_text:
        raise call.refuse(f"{column.type} and {type} do not go together")
    return column.cast(type)


def in_unit(column: Column, unit: str) -> Column:
    """Ticks in a finer unit, exactly."""
    here, there = TICKS[column.type.unit], TICKS[unit]
    if here == there:
        return column
    if there < here:
        raise UnsupportedError(
            f"times in {column.type.unit} are not whole in {unit}: use .dt.as_unit or .dt.floor first"
        )
    column = column.masked()
    return column.of(column.value * (there // here), replace(column.type, unit=unit))


def common_type(call: Call, a: Column, b: Column) -> ColumnType:
    """The type in which two columns are compared or chosen between."""
    first, second = a.type.uncategorized(), b.type.uncategorized()
    if first.is_time and second.is_time and first.meaning == second.meaning:
        return first if TICKS[first.unit] >= TICKS[second.unit] else second
    if first.is_text and second.is_text:
        return replace(first, masked=first.masked or second.masked)
    plain = not (first.meaning or second.meaning or first.is_text or second.is_text)
    if not plain:
        raise call.refuse(f"{first} and {second} do not go together")
    dtype = np.result_type(first.dtype.numpy(), second.dtype.numpy())
    return number_type(dtype, masked=first.masked or second.masked)
