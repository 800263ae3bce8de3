"""A column and what pandas gives for the sample, brought to one type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import FLOAT64, ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import type_of_value


def settled(column: Column, real: Any) -> tuple[Column, Any]:
    """A column and what pandas gives in one type: the widest of what pandas would give for other data."""
    if column.null is not None and column.type.is_int and not column.type.masked and column.type.categories is None:
        column = column.cast(FLOAT64)
    found = type_of_value(real)
    if column.is_scalar and column.type.masked and _same_type(replace(column.type, masked=False), found):
        return column, real  # A number that may be NA: pandas has a plain one, or NA.
    if _same_type(column.type, found):
        return (column, real) if column.type.categories is not None else (replace(column, type=found), real)
    if column.type.masked and column.type.is_float and _same_type(replace(column.type, masked=False), found):
        return Column(column.value, found, column.rows).with_null(column.null), real
    numbers = column.type.is_float and (found.is_int or found.is_float or found.is_bool)
    if numbers and not column.type.masked and not found.masked:
        dtype = column.type.dtype.numpy()
        return column, real.astype(dtype) if hasattr(real, "astype") else dtype.type(real)
    if _is_all_missing(real):
        return column, _empty_as(column.type, real)
    raise UnsupportedError(f"the result is a column of {column.type} here, and of {found} in pandas")


def _is_all_missing(real: Any) -> bool:
    import pandas

    return bool(np.all(pandas.isna(real)))


def _empty_as(type: ColumnType, real: Any) -> Any:
    """What holds nothing, in the dtype that it has where it does."""
    if type.categories is not None or type.masked:
        return real
    if not hasattr(real, "iloc"):
        return type.dtype.numpy().type(0) if type.is_int else real
    kind = {"datetime": f"datetime64[{type.unit}]", "duration": f"timedelta64[{type.unit}]"}.get(type.meaning)
    if type.is_bool or type.is_int:
        return real if len(real) else real.astype(type.dtype.numpy())
    return real.astype("str" if type.is_text else kind or type.dtype.numpy())


def _same_type(a: ColumnType, b: ColumnType) -> bool:
    parts = ("dtype", "meaning", "unit", "masked")
    same = all(getattr(a, part) == getattr(b, part) for part in parts)
    return same and (a.categories is None) == (b.categories is None)
