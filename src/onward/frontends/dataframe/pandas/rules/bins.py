"""Numbers in bins: cut, qcut and searchsorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import FLOAT64, INT64
from onward.frontends.dataframe.columns.column import Column, constant, taken
from onward.frontends.dataframe.columns.column import Rows as RowSpace
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
    if any(isinstance(edge, Series | Scalar) for edge in edges):
        raise call.refuse("the borders of bins are data: take them from the sample, with onward.fitted")
    return _binned(call, x, edges, right, labels, include_lowest)


@rule("pandas.qcut")
def qcut(call: Call, x: Series, q: Any, labels: Any = None, **options: Any) -> Column:
    raise call.refuse(
        "the borders of bins would depend on the data: compute them once, "
        "edges = train.x.quantile([…]), and use pd.cut(df.x, edges)"
    )


def _binned(call: Call, x: Series, edges: list[Any], right: bool, labels: Any, include_lowest: bool) -> Column:
    column, op = x.column, call.op
    if column.type.is_time:
        borders = [int(_ticks(call, edge, column)) for edge in edges]
        value, keys = column.value, np.asarray(borders, np.int64)
    elif column.type.is_number:
        value, keys = _numbers(column, edges)
    else:
        raise call.refuse(f"it is for numbers and times, not for {column.type}")
    number = bins.positions(value, keys, right=right)
    if include_lowest and right:
        number = op.Where(op.Equal(value, op.constant(keys[:1])), op.index(1), number)
    inside = op.And(op.Greater(number, op.index(0)), op.Less(number, op.index(len(edges))))
    missing = column.missing()
    if missing is not None:
        inside = op.And(inside, op.Not(missing))
    place = op.Where(inside, number - 1, op.index(0))
    outside = op.Not(inside)
    if labels is False:
        return Column(place, INT64, column.rows).cast(FLOAT64).with_null(outside)
    return _labelled(call, column, place, outside)


def _labelled(call: Call, column: Column, place: Tensor, outside: Tensor) -> Column:
    import pandas

    type = type_of(call.real)
    op = call.op
    if type.categories is None:
        raise call.refuse("labels that are no categories cannot be converted")
    inner = type.uncategorized()
    rows = RowSpace(op.names.value("table"), lambda: op.ints([len(type.categories or ())]))
    labels = [str(label) if inner.is_text else label for label in type.categories]
    if isinstance(call.real.dtype.categories, pandas.IntervalIndex):
        labels = [str(label) for label in call.real.dtype.categories]
    table = constant(op, labels, inner, rows)
    positions = Column(place, INT64, column.rows).expanded().value
    made = taken(table, positions, column.rows)
    return Column(made.value, type, column.rows, None).with_null(outside)


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
    from onward.frontends.dataframe.pandas.rules.choose import as_column

    edges = np.asarray(bins, np.float64)
    if len(edges) > 1 and not (np.diff(edges) > 0).all():
        raise call.refuse("the borders must go up")
    made = sorted_positions(x.column, edges, right=not right)
    return as_column(call, made)


@rule("numpy.searchsorted")
def searchsorted(call: Call, a: Any, v: Any, side: str = "left") -> Any:
    from onward.frontends.dataframe.pandas.rules.choose import as_column

    if isinstance(a, Series):
        raise call.refuse("the sorted numbers are data: they must be known beforehand")
    return as_column(call, sorted_positions(v.column, np.asarray(a, np.float64), right=side == "right"))


def sorted_positions(column: Column, edges: Any, right: bool) -> Column:
    """How many of the borders lie below a number; with `right`, also those that equal it. NaN lies above all."""
    op = column.op
    value = column.value.cast(ir.DataType.DOUBLE)
    number = bins.positions(value, edges, right=not right)
    made = op.Where(op.IsNaN(value), op.index(len(edges)), number)
    return Column(made, INT64, column.rows)
