"""A function on frames of narwhals as an ONNX model: narwhals runs over frames of Polars that record.

Over a sample of pandas it is the same expressions on columns as pandas has them: NaN is the null of floats, comparisons
with nulls are false, and groups come as they appear. What narwhals does for pandas alone is not seen, so the dtypes of
the result are taken from the function on the sample, and names that differ are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import onnx_ir as ir
import polars as pl

from onward.advice.extras import require
from onward.errors import UnsupportedError
from onward.formats.dataframe.polars import dtype_of
from onward.formats.dataframe.schema import ColumnSchema
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.columns.table import Field, Table
from onward.frontends.dataframe.polars.arithmetic import in_unit
from onward.frontends.dataframe.polars.capture import captured as of_polars
from onward.frontends.dataframe.polars.capture import traced, typed_outputs
from onward.frontends.dataframe.polars.frames import Steps
from onward.hub.wording import quote
from onward.model import Model

FLOAT64 = ColumnType(ir.DataType.DOUBLE)


def captured(function: Callable[[Any], Any], sample: Any, opset: int, never_null: Sequence[str] = ()) -> Model:
    """The model of a function that takes a frame of narwhals, or is decorated by it to take a native one."""
    native = nw.to_native(sample, pass_through=True)
    own = _native_function(function)
    if isinstance(native, pl.DataFrame | pl.LazyFrame):
        return of_polars(own, native, opset, never_null)
    if not hasattr(native, "iloc"):
        raise UnsupportedError(
            f"a frame of narwhals over {type(native).__module__.split('.')[0]} has no form in a graph: use one over "
            "pandas or Polars"
        )
    require("pandas")
    return _of_pandas(own, native, opset, never_null)


def _native_function(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function on native frames."""

    def native(frame: Any) -> Any:
        return nw.to_native(function(nw.from_native(frame)), pass_through=True)

    native.__name__ = getattr(function, "__name__", "function")
    return native


class _Columns(Table):
    """The columns of a sample of pandas, in dtypes that Polars has too."""

    def __init__(self, sample: Any, opset: int, never_null: Sequence[str]) -> None:
        from onward.formats.dataframe.pandas import may_be_null, type_of

        fields, self.refused = [], {}
        self.dtypes: dict[str, pl.DataType] = {}
        for name in sample.columns:
            try:
                type = type_of(sample[name])
                self.dtypes[str(name)] = dtype_of(ColumnSchema(str(name), _in_polars(type), ""))
            except UnsupportedError as error:
                self.refused[str(name)] = UnsupportedError(f"the column {quote(str(name))}: {error}")
                self.dtypes[str(name)] = pl.Object()
                continue
            may_be = may_be_null(sample[name]) and str(name) not in never_null
            fields.append(Field(str(name), type, may_be, str(sample[name].dtype)))
        super().__init__(fields, "pandas", opset)
        self._read_once: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        if name in self.refused:
            raise self.refused[name]
        column = super().column(name)
        if column.type == _in_polars(column.type):
            return column
        if name not in self._read_once:
            self._read_once[name] = in_unit(column, _in_polars(column.type).unit)
        return self._read_once[name]


def _in_polars(type: ColumnType) -> ColumnType:
    """Polars has no ticks of a second."""
    if type.categories is not None and not type.is_text:
        raise UnsupportedError("categories that are no text are not taken by functions of narwhals")
    return replace(type, unit="ms") if type.unit == "s" else type


def _of_pandas(function: Callable[[Any], Any], sample: Any, opset: int, never_null: Sequence[str]) -> Model:
    table = _Columns(sample, opset, never_null)
    _, node, is_series = traced(function, table.dtypes, lazily=False)
    outputs = typed_outputs(node, Steps(table, nan_is_null=True)(node))
    wanted = _result_types(function, sample)
    names = [name for name, _, _ in outputs]
    if list(wanted) != names and not is_series:
        raise UnsupportedError(
            f"the columns of the result would be {', '.join(map(quote, names))}, and are "
            f"{', '.join(map(quote, wanted))} over pandas: name them with `alias`"
        )
    types = list(wanted.values())
    made = [(name, *_as_pandas(name, column, *types[number])) for number, (name, column, _) in enumerate(outputs)]
    return table.finish(made, is_series=is_series)


def _result_types(function: Callable[[Any], Any], sample: Any) -> dict[str, tuple[ColumnType, str]]:
    """The types that the columns have over pandas itself, and what pandas calls them."""
    from onward.formats.dataframe.pandas import type_of

    made = function(sample)
    frame = made if hasattr(made, "columns") else made.to_frame()
    return {str(name): (type_of(frame[name]), str(frame[name].dtype)) for name in frame.columns}


def _as_pandas(name: str, column: Column, wanted: ColumnType, own: str) -> tuple[Column, str]:
    """In the dtype that it has in pandas; integers that can go missing are floats there."""
    type = column.type
    if type.is_number and wanted.is_number:
        if column.missing() is not None and not type.is_float and not wanted.masked:
            return column.cast(FLOAT64), ""
        return column.cast(wanted), own
    if type.dtype != wanted.dtype or type.meaning != wanted.meaning:
        raise UnsupportedError(f"the column {quote(name)} of the result would be {type}, and is {wanted} over pandas")
    if type.is_bool and column.null is not None and not wanted.masked:
        return replace(column, type=wanted), "object"
    return replace(column, type=replace(wanted, unit=type.unit)), own
