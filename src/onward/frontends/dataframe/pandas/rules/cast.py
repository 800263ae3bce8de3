"""Types: astype, to_numeric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.types import INT64, NAT, TEXT, ColumnType
from onward.frontends.dataframe.columns.column import Column, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series


@rule("Series.astype")
def astype(call: Call, x: Series, dtype: Any, copy: Any = None, errors: str = "raise") -> Any:
    if errors != "raise":
        raise call.refuse("errors='ignore' gives a type that depends on the data: use pd.to_numeric(errors='coerce')")
    column, target = x.column, _target(call, x, dtype)
    source = column.type
    if target == source:
        return column
    if target.categories is not None or source.categories is not None:
        if target.categories is not None:
            return call.part("part: to category", column, target)
        column = _labels(call, x)
        return column if column.type == target else cast(call, column, target)
    return cast(call, column, target)


def _labels(call: Call, x: Series) -> Column:
    """Categories as what they are. Intervals have whole borders in pandas, or, as soon as one row has none, floats."""
    import pandas

    if isinstance(x.real.dtype.categories, pandas.IntervalIndex):
        raise call.refuse("the text of intervals depends on the data: give labels to pd.cut")
    return call.part("part: to labels", x.column)  # type: ignore[no-any-return]


def _target(call: Call, x: Series, dtype: Any) -> ColumnType:
    """The type that pandas gives, whatever the sample holds."""
    import pandas

    if isinstance(dtype, str) and dtype == "category":
        raise call.refuse("the categories would be those of the sample: name them, pd.CategoricalDtype([…])")
    found = pandas.api.types.pandas_dtype(dtype)
    if isinstance(found, np.dtype) and found.kind == "O":
        return x.column.type.uncategorized()
    return type_of_dtype(call, found)


def type_of_dtype(call: Call, dtype: Any) -> ColumnType:
    import pandas

    from onward.formats.dataframe.pandas import type_of

    if isinstance(dtype, np.dtype) and dtype.kind in "US":
        return TEXT
    return type_of(pandas.Series([], dtype=dtype))


def cast(call: Call, column: Column, target: ColumnType) -> Column:
    source = column.type
    if source.is_text or target.is_text:
        return _text(call, column, target)
    if source.is_time or target.is_time:
        return _time(call, column, target)
    if target.is_bool:
        return _to_bool(column, target)
    if target.is_int:
        return _to_int(call, column, target)
    if source.masked and not target.masked:
        return column.cast(target)
    return column.cast(target)


def _to_bool(column: Column, target: ColumnType) -> Column:
    """Anything but 0 is true, and so is what is missing, where there is no NA."""
    op = column.op
    value = column.value if column.type.is_bool else op.Cast(column.value, to=int(ir.DataType.BOOL))
    if column.type.is_float:
        value = op.Not(op.Equal(column.value, op.like(0.0, column.value)))
    if target.masked:
        return Column(value, target, column.rows, column.missing())
    if column.null is not None:
        if column.type.masked:
            made = Column(value, target, column.rows)
            return guarded(made, column.null, "astype(bool) of values that are missing")
        value = op.Or(value, column.null)
    return Column(value, target, column.rows)


def _to_int(call: Call, column: Column, target: ColumnType) -> Column:
    """Without the fraction. Where pandas raises an error, the model fails."""
    op, missing = column.op, column.missing()
    if column.type.is_float:
        bad = op.Or(op.IsNaN(column.value), op.IsInf(column.value))
        if target.masked:
            whole = op.Floor(column.value)
            is_cut = op.And(op.Not(bad), op.Not(op.Equal(whole, column.value)))
            value = op.Where(bad, op.like(0.0, column.value), column.value).cast(target.dtype)
            made = Column(value, target, column.rows, missing)
            return guarded(made, is_cut, f"astype({target}) of numbers that are not whole")
        made = Column(op.Where(bad, op.like(0.0, column.value), column.value).cast(target.dtype), target, column.rows)
        return guarded(made, bad, "astype(int) of values that are missing or infinite")
    made = Column(column.value.cast(target.dtype), target, column.rows, column.null if target.masked else None)
    if column.null is not None and not target.masked:
        return guarded(made, column.null, "astype(int) of values that are missing")
    return made


def _time(call: Call, column: Column, target: ColumnType) -> Column:
    if column.type.meaning == target.meaning:
        return call.part("part: to unit", column, target.unit)  # type: ignore[no-any-return]
    if target == INT64 and column.type.is_time:
        # What is missing is the lowest integer, in pandas too.
        value = (
            column.value
            if column.null is None
            else column.op.Where(column.null, column.op.like(NAT, column.value), column.value)
        )
        return Column(value, INT64, column.rows)
    raise call.refuse(f"{column.type} to {target} cannot be converted")


def _text(call: Call, column: Column, target: ColumnType) -> Column:
    if column.type.is_text and target.is_text:
        return replace(column, type=target)
    name = "part: to text" if target.is_text else "part: from text"
    return call.part(name, column, target)  # type: ignore[no-any-return]


@rule("DataFrame.astype")
def frame_astype(call: Call, frame: Frame, dtype: Any, copy: Any = None, errors: str = "raise") -> Frame:
    made = frame.copied()
    for name in list(frame):
        wanted = dtype.get(name) if isinstance(dtype, Mapping) else dtype
        if wanted is not None:
            made.put(name, frame.series(name).astype(wanted))
    return made


@rule("pandas.to_numeric")
def to_numeric(call: Call, arg: Any, errors: str = "raise", downcast: Any = None) -> Any:
    if downcast is not None:
        raise call.refuse("downcast gives a type that depends on the data: use astype")
    column = arg.column
    if not column.type.is_text:
        return column
    return call.part("part: numbers of text", column, errors == "coerce")


@rule("Series.convert_dtypes")
def convert_dtypes(call: Call, x: Series) -> Any:
    raise call.refuse("the type would depend on the data: use astype")
