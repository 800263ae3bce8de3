"""Frames of pandas as feeds of a model, and its results as frames."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidDataError, UnsupportedError
from onward.formats.dataframe.schema import ColumnSchema, TableSchema
from onward.formats.dataframe.types import BOOL, TEXT, ColumnType, number_type
from onward.hub.wording import quote

Array = npt.NDArray[Any]


def type_of(column: Any) -> ColumnType:
    """What a column (a Series or an Index) holds."""
    import pandas

    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        labels = dtype.categories
        if isinstance(labels.dtype, pandas.IntervalDtype):
            labels = pandas.Index([str(label) for label in labels])
        inner = type_of(labels) if len(labels) else TEXT
        return replace(inner, categories=tuple(labels.tolist()), ordered=bool(dtype.ordered))
    if isinstance(dtype, pandas.StringDtype):
        return replace(TEXT, masked=dtype.na_value is pandas.NA)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        raise UnsupportedError(
            "it has a time zone, which ONNX has no data for: convert to UTC and drop it, .dt.tz_convert('UTC')"
            ".dt.tz_localize(None), before the function"
        )
    if isinstance(dtype, np.dtype):
        if dtype.kind in "biuf":
            return number_type(dtype)
        if dtype.kind in "mM":
            unit = np.datetime_data(dtype)[0]
            return ColumnType(ir.DataType.INT64, "datetime" if dtype.kind == "M" else "duration", unit)
        if dtype.kind == "O":
            return _of_objects(column)
    if getattr(dtype, "numpy_dtype", None) is not None and dtype.kind in "biuf":
        return number_type(np.dtype(dtype.numpy_dtype), masked=True)
    raise UnsupportedError(f"columns of the dtype {dtype} have no form in ONNX")


def _of_objects(column: Any) -> ColumnType:
    present = column.dropna().tolist()
    if all(isinstance(item, str) for item in present):
        return TEXT
    if all(isinstance(item, bool | np.bool_) for item in present):
        return BOOL
    kinds = sorted({type(item).__name__ for item in present})
    raise UnsupportedError(f"it holds objects of Python ({', '.join(kinds)}): give it one dtype, with astype")


def may_be_null(column: Any) -> bool:
    """Whether a column of its dtype can have nulls at all."""
    return not (isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu")


def feeds(frame: Any, schema: TableSchema) -> dict[str, Array]:
    """The columns of a frame as a model takes them."""
    made: dict[str, Array] = {}
    places: dict[str, list[int]] = {}
    by_name: set[int] = set()
    for place, name in enumerate(frame.columns):
        places.setdefault(str(name), []).append(place)
        if isinstance(name, str):
            by_name.add(place)
    for column in schema.inputs:
        found = places.get(column.name, [])
        if not found:
            raise InvalidDataError(f"the frame has no column {quote(column.name)}, which the model takes")
        if len(found) > 1:
            raise InvalidDataError(f"the frame has {len(found)} columns {quote(column.name)}: which is meant is open")
        # A column by its name takes a third of the time of one by its place.
        series = frame[column.name] if found[0] in by_name else frame.iloc[:, found[0]]
        made |= column_feeds(series, column)
    return made


def column_feeds(series: Any, column: ColumnSchema) -> dict[str, Array]:
    if _is_as_fed(series.dtype, column):
        values = series.to_numpy()
        return {column.tensor: (values.view(np.int64) if column.type.is_time else values).reshape(-1, 1)}
    missing = series.isna().to_numpy(dtype=bool)
    if column.type.categories is not None:  # As pandas makes a column of these categories: other labels are none.
        missing = missing | ~series.isin(list(column.type.categories)).to_numpy(dtype=bool)
    made = {column.tensor: _values(series, column, missing).reshape(-1, 1)}
    if column.null:
        made[column.null] = missing.reshape(-1, 1)
    elif missing.any() and not (column.type.is_time or column.type.is_float):
        raise InvalidDataError(f"column {quote(column.name)} has missing values, which the model does not take")
    return made


def _is_as_fed(dtype: Any, column: ColumnSchema) -> bool:
    """Whether an array of numpy is what the model takes, as it is: most columns of most frames."""
    type = column.type
    if not isinstance(dtype, np.dtype) or type.categories is not None or column.null:
        return False
    if type.is_time:
        return bool(dtype == np.dtype(f"{'M' if type.meaning == 'datetime' else 'm'}8[{type.unit}]"))
    return not type.is_text and dtype == type.dtype.numpy() and (dtype.kind != "f" or type.nan_is_null)


def _values(series: Any, column: ColumnSchema, missing: Array) -> Array:
    type = column.type
    dtype = type.dtype.numpy() if not type.is_text else np.dtype(object)
    try:
        if type.is_time:
            return _ticks(series, type)
        if type.is_text:
            return _texts(series, column, missing)
        if type.is_float:
            return _floats(series, np.dtype(dtype))
        values = series.to_numpy(dtype=object) if missing.any() else series.to_numpy()
        if missing.any():
            values = np.where(missing, 0, values)
        made = np.asarray(values).astype(dtype)
        if len(made) and not (made == np.asarray(values)).all():
            raise ValueError(f"numbers that {dtype} does not hold")
        return made
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(f"column {quote(column.name)} is of {series.dtype}, not of {type}: {error}") from error


def _ticks(series: Any, type: ColumnType) -> Array:
    """Times as ticks of a unit, if they are whole and within its range."""
    kind = "M" if type.meaning == "datetime" else "m"
    missing = series.isna().to_numpy(dtype=bool)
    if getattr(series.dtype, "tz", None) is not None:
        raise ValueError("it has a time zone: drop it, .dt.tz_convert('UTC').dt.tz_localize(None)")
    if series.dtype.kind != kind:
        if series.dtype.kind not in "OV" and not missing.all():
            raise ValueError("these are no times")
        if any(isinstance(item, str | int | float) for item in series[~missing]):
            raise ValueError("these are no times: use pd.to_datetime or pd.to_timedelta")
    given = np.asarray(series.to_numpy() if series.dtype.kind == kind else series.to_numpy(dtype=f"{kind}8[us]"))
    made = given.astype(f"{kind}8[{type.unit}]")
    if not (made.astype(given.dtype) == given)[~missing].all():
        raise ValueError(f"times that ticks of {type.unit} do not hold")
    return made.view(np.int64)


def _floats(series: Any, dtype: np.dtype[Any]) -> Array:
    """Numbers as floats; integers only if they stay what they are."""
    if series.dtype.kind not in "biuf" and any(isinstance(item, str) for item in series):
        raise ValueError("these are texts: use pd.to_numeric")
    values = np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    with np.errstate(over="ignore"):
        made = values.astype(dtype)
    if (np.isinf(made) & ~np.isinf(values)).any():
        raise ValueError(f"numbers that {dtype} does not hold")
    if series.dtype.kind in "iu" and series.dtype.itemsize == 8:
        whole = series[series.notna()]
        if (whole.abs() > 2**53).any() and not (whole.astype("float64").astype(object) == whole.astype(object)).all():
            raise ValueError("integers that are not exact as floats")
    return made


def _texts(series: Any, column: ColumnSchema, missing: Array) -> Array:
    import pandas

    values = series.to_numpy(dtype=object)
    made = np.empty(len(values), object)
    made[:] = np.where(missing, "", values) if missing.any() else values
    is_text = isinstance(series.dtype, pandas.StringDtype)
    if not is_text and (wrong := next((item for item in made if not isinstance(item, str)), None)):
        raise InvalidDataError(f"column {quote(column.name)} is text, and has {wrong!r} in it")
    return made


def frame_of(outputs: Mapping[str, Array], schema: TableSchema) -> Any:
    """What a model gave, as a frame, or a Series where that is what the function gives."""
    import pandas

    columns = {column.name: _cells(outputs, column) for column in schema.outputs}
    frame = pandas.DataFrame(columns, copy=False)
    return frame.iloc[:, 0] if schema.is_series else frame


def _cells(outputs: Mapping[str, Array], column: ColumnSchema) -> Any:
    """A column of a result: an array where that is enough, which is faster than a Series."""
    import pandas

    type, values = column.type, outputs[column.tensor].reshape(-1)
    missing = outputs[column.null].reshape(-1) if column.null else np.zeros(len(values), bool)
    if type.is_time:
        return values.view(f"{'M' if type.meaning == 'datetime' else 'm'}8[{type.unit}]")
    if type.categories is not None:
        return pandas.Categorical(_gaps(values, missing), dtype=_categories(type.categories, type.ordered))
    if type.masked and not type.is_text:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = column.own or ("boolean" if type.is_bool else type.dtype.numpy().name.title().replace("Ui", "UI"))
            made = pandas.Series(values).astype(own)
            made[missing] = pandas.NA
            return made
    if type.is_text:
        return pandas.Series(_gaps(values, missing), dtype=column.own or "str").array
    if missing.any() or (type.is_bool and column.own == "object"):
        return pandas.Series(_gaps(values, missing), dtype=object)
    return values


@lru_cache(256)
def _categories(labels: tuple[Any, ...], ordered: bool) -> Any:
    import pandas

    return pandas.CategoricalDtype(list(labels), ordered)


def _gaps(values: Array, missing: Array) -> Array:
    made = values.astype(object)
    made[missing] = np.nan
    return made
