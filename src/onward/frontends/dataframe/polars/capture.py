"""A function on frames of Polars as an ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from onward.errors import OnwardError, UnsupportedError
from onward.formats.dataframe.polars import column_type, own_name
from onward.frontends.dataframe.columns.table import OLDEST, Field, Table
from onward.frontends.dataframe.polars import rules
from onward.frontends.dataframe.polars.facade import Trace, frame_given, plan_of
from onward.frontends.dataframe.polars.frames import Steps
from onward.frontends.dataframe.polars.plan import Reader, source
from onward.model import Model

LIBRARY = "polars"


def captured(function: Callable[[Any], Any], sample: pl.DataFrame | pl.LazyFrame, opset: int) -> Model:
    """The model of a function. Of the sample only names and dtypes of columns are read.

    A function is given a LazyFrame if the sample is one, and otherwise what looks like a DataFrame and records what is done to
    it. What it returns is a frame, a series or an expression.
    """
    lazily = isinstance(sample, pl.LazyFrame)
    schema = dict(sample.collect_schema())
    name = getattr(function, "__name__", type(function).__name__)
    empty, marker = source(schema, name)
    trace = Trace(empty)
    with trace.running():
        result = called(function, empty if lazily else frame_given(trace, empty), name)
        return finished(trace, result, marker, schema, opset)


def called(function: Callable[[Any], Any], argument: Any, name: str) -> Any:
    """What a function returns; errors of Polars that follow from missing data are told so."""
    try:
        return function(argument)
    except OnwardError:
        raise
    except pl.exceptions.ComputeError as error:
        if isinstance(error.__cause__, OnwardError):
            raise error.__cause__ from error
        found = str(error)
        if "needs rows of the frame" in found:
            raise UnsupportedError(found.partition("UnsupportedError: ")[2].split("\n")[0] or found) from error
        raise
    except TypeError as error:
        if "truth value of an Expr is ambiguous" in str(error):
            raise UnsupportedError(
                f"the function {name!r} branches on values of the frame, which are not known: use `pl.when`"
            ) from error
        raise


def finished(trace: Trace, result: Any, marker: Any, schema: dict[str, pl.DataType], opset: int) -> Model:
    """The model of what a function returned."""
    plan, is_series = plan_of(trace, result)
    node = Reader(marker, trace.references).read(plan)
    table = _Fields(schema, max(opset, OLDEST))
    frame = Steps(table)(node)
    outputs = []
    for name, dtype in node.schema.items():
        type, column = column_type(dtype, f"the column {name!r} of the result"), frame.columns[name]
        if column.type.dtype != type.dtype or column.type.meaning != type.meaning or column.type.unit != type.unit:
            raise UnsupportedError(f"the column {name!r} of the result became {column.type}, not {type}")
        outputs.append((name, replace(column, type=type), own_name(dtype)))
    return table.finish(outputs, is_series=is_series)


class _Fields(Table):
    """The columns of a sample; one that has no form in a graph is refused when it is read."""

    def __init__(self, schema: dict[str, pl.DataType], opset: int) -> None:
        self.refused: dict[str, UnsupportedError] = {}
        fields = []
        for name, dtype in schema.items():
            try:
                type = column_type(dtype, f"the column {name!r}")
            except UnsupportedError as error:
                self.refused[name] = error
                continue
            fields.append(Field(name, type, own=own_name(dtype)))
        super().__init__(fields, LIBRARY, opset)

    def column(self, name: str) -> Any:
        if name in self.refused:
            raise self.refused[name]
        return super().column(name)


_ = rules
