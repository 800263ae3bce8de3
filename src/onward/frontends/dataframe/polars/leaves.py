"""What expressions begin with: columns, constants, and columns of other frames."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.polars import column_physical, column_type
from onward.formats.dataframe.types import NAT
from onward.frontends.dataframe.columns.column import Column, Rows, constant, scalar
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, rule
from onward.graph.build import Builder

Times = date | datetime | time | timedelta


@rule("column")
def column(scope: Scope, expr: Expr) -> Column:
    return scope.columns[expr.options[0]]


@rule("alias")
def alias(scope: Scope, expr: Expr) -> Column:
    return scope(expr.args[0])


@rule("reference")
def reference(scope: Scope, expr: Expr) -> Column:
    assert expr.node is not None
    return scope.reference(expr.node)


@rule("literal")
def literal(scope: Scope, expr: Expr) -> Column:
    (value,) = expr.options
    if isinstance(value, pl.Series):
        if len(value) != 1:
            raise UnsupportedError(
                f"a series of {len(value)} values beside columns fits frames of as many rows only: use `is_in`, "
                "`replace`, or a join with a frame"
            )
        value = value[0]
    if expr.dtype.base_type() == pl.Null:
        return scalar(scope.op, None, column_type(pl.Boolean()))
    type = scope.type(expr)
    return scalar(scope.op, physical(value, expr.dtype), type)


def physical(value: Any, dtype: pl.DataType) -> Any:
    """What stands in a tensor for a value of Polars."""
    if value is None or not dtype.is_temporal() or isinstance(value, int):
        return value
    number = pl.Series([value], dtype=dtype).to_physical()[0]
    if dtype.base_type() in (pl.Datetime, pl.Duration) and number == NAT:
        raise UnsupportedError("the earliest datetime of all stands for null in a model")
    return number


def constant_column(op: Builder, series: pl.Series, rows: Rows) -> Column:
    """A column of a constant table."""
    type = column_type(series.dtype, f"the column {series.name!r} of a constant frame")
    if type.is_text:
        return constant(op, series.cast(pl.String).to_list(), type, rows)
    return constant(op, series.cast(column_physical(series.dtype)).to_list(), type, rows)


def listed(expr: Expr, what: str) -> pl.Series:
    """The values of an argument that is a constant list."""
    inner = expr
    while inner.kind in ("cast", "alias"):
        inner = inner.args[0]
    if inner.kind != "literal":
        raise UnsupportedError(f"{what} have to be constants, not a column")
    (value,) = inner.options
    dtype = expr.dtype
    if isinstance(dtype, pl.List | pl.Array):
        dtype = pl.Series([], dtype=dtype).explode().dtype
    if isinstance(value, pl.Series):
        found = value.explode() if value.dtype.is_nested() else value
        return found.cast(dtype)
    values = list(value) if isinstance(value, list | tuple) else [value]
    return pl.Series(values, dtype=dtype, strict=False)
