"""Whether two frames are the same: names, rows, nulls and values; dtypes as far as the data do not decide them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl

RELATIVE = {"float": 1e-12, "float32": 2e-6}
WIDER = {"int": {"int", "float"}, "float32": {"float32", "float"}}
"""The kinds that may stand for one, beside itself."""

INFERRED = {
    "boolean": "bool",
    "integer": "int",
    "floating": "float",
    "mixed-integer-float": "float",
    "string": "text",
    "datetime64": "time",
    "datetime": "time",
    "timedelta64": "duration",
    "timedelta": "duration",
}
"""The kinds of what pandas finds in a column of objects."""


@dataclass(frozen=True)
class Plain:
    """A column as plain values, None where one is missing."""

    name: str | None
    kind: str
    values: list[Any]


def same(expected: Any, found: Any, near: float = 0.0) -> str | None:
    """What differs first, or None: names and their order, the number of rows, then nulls and values by column.

    Floats may be off by 1e-12 of themselves (2e-6 in single precision) and by `near`; all else is exact.
    """
    wanted, got = plain(expected), plain(found)
    names = [column.name for column in got]
    if len(wanted) != len(got) or any(w.name not in (None, n) for w, n in zip(wanted, names, strict=True)):
        return f"columns {names}, not {[column.name for column in wanted]}"
    for one, other in zip(wanted, got, strict=True):
        if len(one.values) != len(other.values):
            return f"column {other.name}: {len(other.values)} rows, not {len(one.values)}"
        if one.kind != "none" and other.kind not in WIDER.get(one.kind, {one.kind}):
            return f"column {other.name}: {other.kind}, not {one.kind}"
        for row, (a, b) in enumerate(zip(one.values, other.values, strict=True)):
            if not equal(a, b, RELATIVE.get(one.kind, 0.0), near if one.kind in RELATIVE else 0.0):
                return f"column {other.name}, row {row}: {b!r}, not {a!r}"
    return None


def equal(wanted: Any, got: Any, relative: float, near: float) -> bool:
    if wanted is None or got is None:
        return wanted is got
    if relative and (isinstance(wanted, float) or isinstance(got, float)):
        if math.isnan(wanted) or math.isnan(got):
            return math.isnan(wanted) and math.isnan(got)
        if math.isinf(wanted) or math.isinf(got):
            return bool(wanted == got)
        return bool(wanted == got) or abs(wanted - got) <= relative * abs(wanted) + near
    return bool(wanted == got)


def plain(frame: Any) -> list[Plain]:
    """The columns of a frame or series of pandas, Polars or narwhals; named levels of an index come first."""
    frame = nw.to_native(frame, pass_through=True)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.Series):
        frame = frame.to_frame()
    if isinstance(frame, pl.DataFrame):
        return [Plain(s.name, polars_kind(s.dtype), s.to_list()) for s in frame.get_columns()]
    nameless = isinstance(frame, pd.Series) and frame.name is None
    if isinstance(frame, pd.Series):
        frame = frame.to_frame()
    levels = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index() if levels else frame.reset_index(drop=True)
    columns = [pandas_column(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
    if nameless:
        columns[-1] = Plain(None, columns[-1].kind, columns[-1].values)
    return columns


def polars_kind(dtype: pl.DataType) -> str:
    """The dtype itself, which data do not decide in Polars; categories are text."""
    if dtype in (pl.Enum, pl.Categorical):
        return str(pl.String())
    return {pl.Float64(): "float", pl.Float32(): "float32"}.get(dtype, str(dtype))


def pandas_column(name: str, series: pd.Series) -> Plain:
    """Missing is None, also NaN; what has no value, for want of rows or of all of them, is of no kind."""
    kind = pandas_kind(series.dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    missing = series.isna().tolist()
    values = [None if gone else value for gone, value in zip(missing, series.tolist(), strict=True)]
    values = [str(value) if isinstance(value, pd.Interval) else value for value in values]
    if all(missing):
        kind = "none"
    elif not kind:
        inferred = pd.api.types.infer_dtype(values, skipna=True)
        kind = INFERRED.get(inferred, inferred)
    return Plain(name, kind, values)


def pandas_kind(dtype: Any) -> str:
    """The kind of a dtype, or nothing where the values have to tell it."""
    types = pd.api.types
    if isinstance(dtype, pd.CategoricalDtype) or types.is_object_dtype(dtype):
        return ""
    if types.is_bool_dtype(dtype):
        return "bool"
    if types.is_integer_dtype(dtype):
        return "int"
    if types.is_float_dtype(dtype):
        return "float32" if str(dtype).lower() == "float32" else "float"
    if types.is_datetime64_any_dtype(dtype):
        return "time"
    if types.is_timedelta64_dtype(dtype):
        return "duration"
    return "text" if types.is_string_dtype(dtype) else str(dtype)
