"""Numbers in bins: cut, qcut and searchsorted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import FLOAT64, INT64
from onward.frontends.dataframe.columns.column import Column, from_table, full, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Scalar, Series
from onward.frontends.dataframe.pandas.values import literal
from onward.frontends.dataframe.tensors import bins
from onward.graph.build import Tensor


@rule("pandas.cut")
def cut(
    call: Call,
    x: Series,
    bins: Any,
    right: bool = True,
    labels: Any = None,
    retbins: bool = False,
    precision: int = 3,
    include_lowest: bool = False,
    duplicates: str = "raise",
    ordered: bool = True,
) -> Column:
    if isinstance(bins, int) or retbins:
        raise call.refuse("the borders of bins would depend on the data: name them, bins=[…]")
    edges = list(bins)
    if duplicates == "drop":
        edges = list(dict.fromkeys(edges))
    if any(isinstance(edge, Series | Scalar) for edge in edges):
        raise call.refuse("the borders of bins are data: take them from the sample, with onward.fitted")
    return _binned(call, x, edges, right, labels, include_lowest)


@rule("pandas.qcut")
def qcut(call: Call, x: Series, q: Any, labels: Any = None, **options: Any) -> Column:
    """By quantiles of the rows that the model is given, as pandas computes them."""
    if labels is None or options:
        raise call.refuse("the borders would be the labels, and depend on the data: give labels, or labels=False")
    shares = np.linspace(0, 1, q + 1) if isinstance(q, int) else np.asarray(q, float)
    edges = [x.quantile(float(share)) for share in shares]
    column, op = x.column, call.op
    if not column.type.is_number or column.type.masked:
        raise call.refuse(f"it is for numbers, not for {column.type}")
    value = column.cast(FLOAT64).value
    number: Any = None
    twice: Any = None
    for before, edge in zip([None, *edges[:-1]], edges, strict=True):
        above = op.Greater(value, edge.column.value).cast(ir.DataType.INT64)
        number = above if number is None else number + above
        if before is not None:
            same = op.Equal(before.column.value, edge.column.value)
            twice = same if twice is None else op.Or(twice, same)
    number = op.Where(op.Equal(value, edges[0].column.value), op.index(1), number)
    if labels is False:
        table = np.asarray([np.nan, *range(len(edges) - 1), np.nan])
        made = Column(op.Gather(op.constant(table), number), FLOAT64, column.rows)
    else:
        made = _labelled(call, column, number)
    return guarded(made, twice, "pandas.qcut: two borders of bins are equal")


def _binned(call: Call, x: Series, edges: list[Any], right: bool, labels: Any, include_lowest: bool) -> Column:
    column, op = x.column, call.op
    if column.type.is_time:
        borders = [int(_ticks(call, edge, column)) for edge in edges]
        value, keys = column.value, np.asarray(borders, np.int64)
    elif column.type.is_number:
        value, keys = _numbers(column, edges)
    else:
        raise call.refuse(f"it is for numbers and times, not for {column.type}")
    number = full(bins.positions(value, keys, right=right), column.rows)
    if include_lowest and right:
        number = op.Where(op.Equal(value, op.like(keys[0], value)), op.like(1, number), number)
    missing = None if column.type.is_float or column.type.is_time else column.missing()
    if missing is not None:
        number = op.Where(missing, op.like(0, number), number)
    if labels is False:
        table = np.asarray([np.nan, *range(len(edges) - 1), np.nan])
        return Column(op.Gather(op.constant(table), number), FLOAT64, column.rows)
    return _labelled(call, column, number, labels)


def _labelled(call: Call, column: Column, number: Tensor, names: Any = None) -> Column:
    """The label of each bin, counted from 1; null for the numbers below the first and above the last."""
    import pandas

    type, op = type_of(call.real), call.op
    if type.categories is None:
        raise call.refuse("labels that are no categories cannot be converted")
    inner = type.uncategorized()
    labels = [str(label) if inner.is_text else label for label in type.categories]
    if isinstance(call.real.dtype.categories, pandas.IntervalIndex):
        labels = [str(label) for label in call.real.dtype.categories]
    elif names is not None:  # Of several bins one label may be the same.
        labels = [str(name) if inner.is_text else name for name in names]
    return replace(from_table(op, [None, *labels, None], inner, number, column.rows), type=type)


def _numbers(column: Column, edges: list[Any]) -> tuple[Tensor, Any]:
    whole = all(float(edge).is_integer() and abs(edge) < 2**53 for edge in edges)
    if column.type.is_int and whole:
        return column.value.cast(ir.DataType.INT64), np.asarray([int(edge) for edge in edges], np.int64)
    return column.value.cast(ir.DataType.DOUBLE), np.asarray(edges, np.float64)


def _ticks(call: Call, edge: Any, column: Column) -> int:
    import pandas

    made = literal(call, pandas.Timestamp(edge), column.type)
    if made.type.unit != column.type.unit:
        raise call.refuse("the borders are finer than the unit of the column: use .dt.as_unit first")
    tensor = made.value.value.const_value
    assert tensor is not None
    return int(tensor.numpy().reshape(-1)[0])


@rule("numpy.digitize")
def digitize(call: Call, x: Series, bins: Any, right: bool = False) -> Any:
    edges = np.asarray(bins, np.float64)
    if len(edges) > 1 and not (np.diff(edges) > 0).all():
        raise call.refuse("the borders must go up")
    made = sorted_positions(x.column, edges, right=not right)
    return made


@rule("numpy.searchsorted")
def searchsorted(call: Call, a: Any, v: Any, side: str = "left") -> Any:
    if isinstance(a, Series):
        raise call.refuse("the sorted numbers are data: they must be known beforehand")
    return sorted_positions(v.column, np.asarray(a, np.float64), right=side == "right")


def sorted_positions(column: Column, edges: Any, right: bool) -> Column:
    """How many of the borders lie below a number; with `right`, also those that equal it. NaN lies above all."""
    op = column.op
    value = column.value.cast(ir.DataType.DOUBLE)
    number = full(bins.positions(value, edges, right=not right), column.rows).cast(ir.DataType.INT64)
    made = op.Where(op.IsNaN(value), op.index(len(edges)), number)
    return Column(made, INT64, column.rows)
