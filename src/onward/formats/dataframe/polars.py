"""Frames of Polars as what a model is fed with, and its results as frames; and what its dtypes are in a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import polars as pl

from onward.errors import InvalidDataError, UnsupportedError
from onward.formats.dataframe.schema import ColumnSchema, TableSchema
from onward.formats.dataframe.types import NAT, ColumnType
from onward.hub.wording import quote

Array = npt.NDArray[Any]
CATEGORICAL = "Categorical"
"""What a column of text is called that Polars has as one of categories that are not fixed."""

_NUMBERS: dict[type[pl.DataType], ir.DataType] = {
    pl.Boolean: ir.DataType.BOOL,
    pl.Int8: ir.DataType.INT8,
    pl.Int16: ir.DataType.INT16,
    pl.Int32: ir.DataType.INT32,
    pl.Int64: ir.DataType.INT64,
    pl.UInt8: ir.DataType.UINT8,
    pl.UInt16: ir.DataType.UINT16,
    pl.UInt32: ir.DataType.UINT32,
    pl.UInt64: ir.DataType.UINT64,
    pl.Float32: ir.DataType.FLOAT,
    pl.Float64: ir.DataType.DOUBLE,
}


def column_type(dtype: pl.DataType, what: str = "a column") -> ColumnType:
    """What a dtype of Polars is in a graph."""
    kind = dtype.base_type()
    if kind in _NUMBERS:
        return ColumnType(_NUMBERS[kind], masked=True)
    if kind in (pl.String, pl.Categorical):
        return ColumnType(ir.DataType.STRING, masked=True)
    if isinstance(dtype, pl.Enum):
        return ColumnType(ir.DataType.STRING, categories=tuple(dtype.categories), ordered=True, masked=True)
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is not None:
            raise UnsupportedError(
                f"{what} has the time zone {quote(dtype.time_zone)}: use `dt.replace_time_zone(None)` before"
            )
        return ColumnType(ir.DataType.INT64, "datetime", dtype.time_unit, masked=True)
    if isinstance(dtype, pl.Duration):
        return ColumnType(ir.DataType.INT64, "duration", dtype.time_unit, masked=True)
    if kind == pl.Date:
        return ColumnType(ir.DataType.INT32, "date", masked=True)
    if kind == pl.Time:
        return ColumnType(ir.DataType.INT64, "time", masked=True)
    raise UnsupportedError(
        f"{what} is of the dtype {dtype}: models have numbers, booleans, text, categories, dates and times"
    )


def own_name(dtype: pl.DataType) -> str:
    """What the schema of a model says beside the type of a column."""
    return CATEGORICAL if dtype.base_type() == pl.Categorical else ""


def dtype_of(column: ColumnSchema) -> pl.DataType:
    """The dtype of Polars that a column of a model has."""
    type = column.type
    if type.categories is not None:
        return pl.Enum([str(item) for item in type.categories])
    if type.is_text:
        return pl.Categorical() if column.own == CATEGORICAL else pl.String()
    if type.meaning == "date":
        return pl.Date()
    if type.meaning == "time":
        return pl.Time()
    unit: Any = type.unit
    if type.is_time:
        return pl.Datetime(unit) if type.meaning == "datetime" else pl.Duration(unit)
    for dtype, kind in _NUMBERS.items():
        if kind == type.dtype:
            return dtype()
    raise InvalidDataError(f"Polars has no dtype for the column {quote(column.name)}, which is of {type}")


def feeds(frame: pl.DataFrame, schema: TableSchema) -> dict[str, Array]:
    """What a model is given for a frame. Only columns that the model reads have to be there."""
    made: dict[str, Array] = {}
    for column in schema.inputs:
        if column.name not in frame.columns:
            raise InvalidDataError(f"the frame has no column {quote(column.name)}, which the model reads")
        series = _as_dtype(frame.get_column(column.name), column)
        made[column.tensor] = _values(series, column.type).reshape(-1, 1)
        if column.null:
            if series.null_count():
                made[column.null] = series.is_null().to_numpy().reshape(-1, 1)
        elif series.null_count() and not column.type.is_time:
            raise InvalidDataError(f"the column {quote(column.name)} has nulls, and the model has none there")
    return made


def _as_dtype(series: pl.Series, column: ColumnSchema) -> pl.Series:
    wanted = dtype_of(column)
    if series.dtype == wanted or (series.dtype.base_type() == wanted.base_type() and wanted.base_type() == pl.Enum):
        return series
    if series.dtype == pl.Null or (series.dtype in (pl.String, pl.Categorical) and column.type.is_text):
        return series.cast(wanted)
    raise InvalidDataError(
        f"the column {quote(column.name)} is of the dtype {series.dtype}, and the model reads {wanted}: "
        f"use `cast(pl.{wanted})` before"
    )


def _values(series: pl.Series, type: ColumnType) -> Array:
    if type.is_text:
        return np.asarray(series.cast(pl.String).fill_null("").to_numpy(), dtype=object)
    numbers = series.to_physical()
    empty: Any = NAT if type.is_time else False if type.is_bool else 0
    return np.ascontiguousarray(numbers.fill_null(empty).to_numpy()).astype(type.dtype.numpy(), copy=False)


def frame_of(outputs: Mapping[str, Array], schema: TableSchema) -> pl.DataFrame | pl.Series:
    """What a model gave, as a frame, or a Series where that is what the function gives."""
    columns = [_series(outputs, column) for column in schema.outputs]
    return columns[0] if schema.is_series else pl.DataFrame(columns)


def _series(outputs: Mapping[str, Array], column: ColumnSchema) -> pl.Series:
    type, dtype = column.type, dtype_of(column)
    values = np.asarray(outputs[column.tensor]).reshape(-1)
    lost = np.asarray(outputs[column.null]).reshape(-1) if column.null else None
    if type.is_time:
        lost = values == NAT
    if type.is_text:
        series = pl.Series(column.name, [str(value) for value in values], dtype=pl.String)
    else:
        series = pl.Series(column.name, values, dtype=column_physical(dtype))
    if lost is not None and lost.any():
        series = series.set(pl.Series(lost), None)
    return series.cast(dtype)


def column_physical(dtype: pl.DataType) -> pl.DataType:
    """The dtype of the numbers that stand for a date or time."""
    if dtype.base_type() == pl.Date:
        return pl.Int32()
    return pl.Int64() if dtype.is_temporal() else dtype
