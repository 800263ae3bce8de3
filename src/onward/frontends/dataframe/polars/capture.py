"""A function on frames of Polars as an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from onward.errors import OnwardError, UnsupportedError
from onward.formats.dataframe.polars import column_type, dtype_of, own_name
from onward.formats.dataframe.schema import schema_of
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.columns.table import Field, Table
from onward.frontends.dataframe.polars import rules  # noqa: F401
from onward.frontends.dataframe.polars.facade import Trace, TracedFrame, plan_of
from onward.frontends.dataframe.polars.frames import Frame, Steps
from onward.frontends.dataframe.polars.plan import NEEDS_ROWS, REFERENCE, Node, Reader, needs_rows, source
from onward.hub.wording import quote
from onward.model import Model

LIBRARY = "polars"


def captured(
    function: Callable[[Any], Any], sample: pl.DataFrame | pl.LazyFrame, opset: int, never_null: Sequence[str] = ()
) -> Model:
    """The model of a function. Of the sample only names and dtypes of columns are read.

    A function is given a LazyFrame if the sample is one, and otherwise what looks like a DataFrame and records what is
    done to it. What it returns is a frame, a series or an expression.
    """
    schema = dict(sample.collect_schema())
    lazily = isinstance(sample, pl.LazyFrame)
    trace, node, is_series = traced(function, schema, lazily=lazily)
    table = Fields(schema, opset, never_null)
    model = table.finish(typed_outputs(node, Steps(table)(node)), is_series=is_series)
    if trace.references:
        _compare_schema(function, sample, model)
    return model


def traced(function: Callable[[Any], Any], schema: dict[str, pl.DataType], *, lazily: bool) -> tuple[Trace, Node, bool]:
    """The plan of what a function does to a frame of a schema, and whether its result is a series."""
    name = getattr(function, "__name__", type(function).__name__)
    empty, marker = source(schema, name)
    trace = Trace(empty)
    with trace.running():
        result = called(function, empty if lazily else TracedFrame(trace, empty), name)
        plan, is_series = plan_of(trace, result)
        return trace, Reader(marker, trace.references).read(plan), is_series


def called(function: Callable[[Any], Any], argument: Any, name: str) -> Any:
    """What a function returns. An error that follows from values that are not known is told so."""
    try:
        return function(argument)
    except OnwardError:
        raise
    except (TypeError, AttributeError, ValueError, pl.exceptions.PolarsError) as error:
        text = str(error)
        if "truth value of an Expr is ambiguous" in text:
            raise UnsupportedError(
                f"the function {quote(name)} branches on values of the frame, which are not known: use `pl.when`"
            ) from error
        if NEEDS_ROWS in text:
            raise UnsupportedError(needs_rows(name)) from error
        if any(word in text for word in _OURS):
            raise UnsupportedError(
                f"the function {quote(name)} needs values of the frame while it runs, which are not known: write it "
                f"with expressions ({text.splitlines()[0]})"
            ) from error
        raise


_OURS = ("Expr", "Traced", REFERENCE, "PyCapsule")
"""What errors of Polars and Python speak of where a column stands in the place of values."""


def typed_outputs(node: Node, frame: Frame) -> list[tuple[str, Column, str]]:
    """The columns of a result, which have the types that Polars has there."""
    outputs = []
    for name, dtype in node.schema.items():
        type, column = column_type(dtype, f"the column {quote(name)} of the result"), frame.columns[name]
        if column.type.dtype != type.dtype or column.type.meaning != type.meaning or column.type.unit != type.unit:
            raise UnsupportedError(f"the column {quote(name)} of the result became {column.type}, not {type}")
        outputs.append((name, replace(column, type=replace(type, masked=column.type.masked)), own_name(dtype)))
    return outputs


def _compare_schema(function: Callable[[Any], Any], sample: pl.DataFrame | pl.LazyFrame, model: Model) -> None:
    """Refuse where names or dtypes follow from values: a statistic that is a number of Python has no dtype."""
    found = schema_of(model.ir)
    assert found is not None
    made = function(sample)
    if isinstance(made, pl.Series):
        made = made.to_frame()
    if not isinstance(made, pl.DataFrame | pl.LazyFrame):
        return
    wanted = dict(made.collect_schema())
    given = {column.name: dtype_of(column) for column in found.outputs}
    for (name, dtype), (own, kind) in zip(wanted.items(), given.items(), strict=True):
        if name != own or dtype != kind:
            raise UnsupportedError(
                f"the column {quote(own)} of the result would be {kind}, and is {quote(name)} of {dtype} in Polars, as "
                "a number of Python is no column: name it with `alias`, and give it a dtype with `cast`"
            )


class Fields(Table):
    """The columns of a sample; one that has no form in a graph is refused when it is read."""

    def __init__(self, schema: dict[str, pl.DataType], opset: int, never_null: Sequence[str] = ()) -> None:
        self.refused: dict[str, UnsupportedError] = {}
        fields = []
        for name, dtype in schema.items():
            try:
                type = column_type(dtype, f"the column {quote(name)}")
            except UnsupportedError as error:
                self.refused[name] = error
                continue
            fields.append(Field(name, type, name not in never_null, own_name(dtype)))
        super().__init__(fields, LIBRARY, opset)

    def column(self, name: str) -> Any:
        if name in self.refused:
            raise self.refused[name]
        return super().column(name)
