"""Aggregates of Polars: one value of all rows, or of each group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import ONE, Column, both, null_of
from onward.frontends.dataframe.polars.compare import BOOLEAN
from onward.frontends.dataframe.polars.parts import part_of, solid
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, explicit, literal_value, rule, spoken
from onward.frontends.dataframe.tensors.rows import groups as grouped
from onward.frontends.dataframe.tensors.rows import stats
from onward.frontends.dataframe.tensors.rows.quantile import between
from onward.graph.build import Tensor


def _numbers(column: Column, what: str) -> Column:
    if column.type.is_text:
        raise UnsupportedError(f"`{what}` of text has no form in a graph")
    return column


@rule("agg.sum")
def total(scope: Scope, expr: Expr) -> Column:
    column = _numbers(scope(expr.args[0]), "sum")
    type = scope.type(expr)
    part = part_of(scope, column)
    part = part.with_value(part.value.cast(type.dtype if not type.dtype.is_integer() else ir.DataType.INT64))
    return part.result(part.apply(stats.total, grouped.sums, part.known), type)


@rule("agg.mean")
def mean(scope: Scope, expr: Expr) -> Column:
    column = _numbers(scope(expr.args[0]), "mean")
    type = scope.type(expr)
    if type.meaning:
        raise UnsupportedError("the mean of dates and times has no form in a graph: take that of `dt.timestamp()`")
    part = part_of(scope, column)
    value = part.apply(stats.mean, grouped.means, part.known)
    empty = part.none(part.known)
    return part.result(value, type, empty)


@rule("agg.count")
def count(scope: Scope, expr: Expr) -> Column:
    (with_nulls,) = expr.options
    part = part_of(scope, scope(expr.args[0]))
    return part.result(part.count(part.present if with_nulls else part.known), scope.type(expr))


@rule("len")
def length(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    if scope.grouping is None:
        return Column(scope.op.Reshape(scope.rows.count, scope.op.ints([1, 1])).cast(type.dtype), type, ONE)
    groups = scope.grouping.within(scope.rows)
    return Column(grouped.sizes(groups).cast(type.dtype), type, scope.grouping.rows)


@rule("null_count")
def null_count(scope: Scope, expr: Expr) -> Column:
    part = part_of(scope, scope(expr.args[0]))
    missing = None if part.known is None else scope.op.Not(part.known)
    found = both(part.present, missing)
    if missing is None:
        found = scope.op.constant(np.asarray([[False]]))
    return part.result(part.count(found), scope.type(expr))


@rule("bool.HasNulls")
def has_nulls(scope: Scope, expr: Expr) -> Column:
    counted = null_count(scope, replace(expr, kind="null_count", dtype=pl.Int64()))
    return Column(scope.op.Greater(counted.value, scope.op.like(0, counted.value)), BOOLEAN, counted.rows)


@rule("agg.min", "agg.max")
def extreme(scope: Scope, expr: Expr) -> Column:
    """Of those that are neither null nor NaN; NaN if there is no other."""
    largest = expr.kind == "agg.max"
    if expr.options[0]:
        raise UnsupportedError("`nan_min` and `nan_max` have no form in a graph: use `min` and `max`")
    column = scope(expr.args[0])
    if column.type.categories is not None:
        raise UnsupportedError("the smallest or largest category has no form in a graph: take that of `to_physical()`")
    op, type = scope.op, scope.type(expr)
    part = part_of(scope, column)
    valid = part.known
    if column.type.is_float:
        valid = both(valid, op.Not(op.IsNaN(part.value)))
    value = part.apply(
        stats.largest if largest else stats.smallest, grouped.maxima if largest else grouped.minima, valid
    )
    if column.type.is_float:
        value = op.Where(part.none(valid), op.like(float("nan"), value), value)
    return part.result(value, type, part.none(part.known))


@rule("agg.std", "agg.var")
def spread(scope: Scope, expr: Expr) -> Column:
    ddof = int(expr.options[0])
    column = _numbers(scope(expr.args[0]), "std")
    type = scope.type(expr)
    if type.meaning:
        raise UnsupportedError("the spread of times has no form in a graph: take that of `dt.total_seconds()`")
    part = part_of(scope, column)
    is_std = expr.kind == "agg.std"
    value = part.apply(
        stats.deviation if is_std else stats.variance,
        grouped.deviations if is_std else grouped.variances,
        part.known,
        ddof=ddof,
    )
    number = part.count(part.known)
    few = scope.op.LessOrEqual(number, scope.op.like(ddof, number))
    return part.result(value, type, few)


@rule("agg.median")
def median(scope: Scope, expr: Expr) -> Column:
    return _quantile(scope, expr, 0.5, "median")


@rule("quantile")
def quantile(scope: Scope, expr: Expr) -> Column:
    share = literal_value(expr.args[1], "the share of a quantile")
    how = str(expr.options[0])
    if how not in ("linear", "lower", "higher", "midpoint", "nearest") or not isinstance(share, int | float):
        raise UnsupportedError(f"a quantile with the interpolation {how!r} has no form in a graph: use 'linear'")
    return _quantile(scope, expr, float(share), how)


def _quantile(scope: Scope, expr: Expr, share: float, how: Any) -> Column:
    """NaN is above all numbers, so a place among them gives NaN."""
    column = _numbers(scope(expr.args[0]), "quantile")
    op, type = scope.op, scope.type(expr)
    if type.meaning:
        raise UnsupportedError("a quantile of times has no form in a graph: take that of `dt.timestamp()`")
    part = part_of(scope, column)
    nan = op.IsNaN(part.value) if column.type.is_float else None
    raised = part if nan is None else part.with_value(op.Where(nan, op.like(float("inf"), part.value), part.value))
    below, above = (
        raised.apply(_whole_quantile, grouped.quantiles, part.known, share=share, how=side)
        for side in ("lower", "higher")
    )
    number = part.count(part.known)
    at = op.Sub(number, op.like(1, number)).cast(ir.DataType.DOUBLE) * share
    low, high, weight = between(at, "linear")
    up = {"lower": weight > 1.0, "nearest": weight >= 0.5}.get(how, weight > 0.0)
    if how in ("lower", "higher", "nearest"):
        value = op.Where(up, above, below)
    else:
        # On the line from the lower one: from -inf to a number it is NaN, from a number to inf it is inf.
        middle = op.Mul(op.Add(below, above), op.like(0.5, below))
        between_both = middle if how == "midpoint" else below + weight * (above - below)
        value = op.Where(op.Equal(below, above), below, between_both)
    if nan is not None:
        plain = part.count(both(part.known, op.Not(nan)))
        value = op.where(op.GreaterOrEqual(op.Where(up, high, low), plain), float("nan"), value)
    return part.result(value, type, op.Equal(number, op.like(0, number)))


def _whole_quantile(x: Tensor, share: float, how: Any, valid: Tensor | None) -> Tensor:
    return stats.quantile(x, share, how, valid, as_numpy=False)


@rule("agg.first", "agg.last")
def first_or_last(scope: Scope, expr: Expr) -> Column:
    last = expr.kind == "agg.last"
    column = scope(expr.args[0])
    if column.is_scalar:
        return column
    type = scope.type(expr)
    part = part_of(scope, column)
    if part.groups is None:
        return at_place(scope, solid(scope, column, spoken(expr.kind)), -1 if last else 0, type)
    rows, found = grouped.first_rows(part.groups, part.value, part.present, last)
    base = explicit(column).expanded()
    null = scope.op.Not(found)
    if base.null is not None:
        null = scope.op.Or(null, scope.op.Gather(base.null, rows, axis=0))
    made = Column(scope.op.Gather(base.value, rows, axis=0), type, part.rows)
    return made if part.present is None and base.null is None else replace(made, null=null)


def at_place(scope: Scope, column: Column, place: int, type: ColumnType) -> Column:
    """The value at a place, counted from the end if negative; null if there is none."""
    op = scope.op
    column = explicit(column).expanded()
    extra = null_of(op, column.type)
    # One null at the far end stands for what is not there.
    parts = [column.value, extra.value] if place >= 0 else [extra.value, column.value]
    values = op.Concat(*parts, axis=0)
    none = (
        column.null
        if column.null is not None
        else op.Expand(op.constant(np.asarray([[False]])), op.Concat(column.rows.count, op.ints([1]), axis=0))
    )
    yes = op.constant(np.asarray([[True]]))
    masks = op.Concat(*([none, yes] if place >= 0 else [yes, none]), axis=0)
    count = column.rows.count
    at = (
        op.Where(op.Less(op.ints([place]), count), op.ints([place]), count)
        if place >= 0
        else (op.Where(op.Less(op.ints([-place - 1]), count), op.Add(count, op.ints([place + 1])), op.ints([0])))
    )
    return Column(op.Gather(values, at, axis=0), type, ONE, op.Gather(masks, at, axis=0))


@rule("agg.n_unique")
def n_unique(scope: Scope, expr: Expr) -> Column:
    """Null is one of the values, and so is NaN."""
    column = scope(expr.args[0])
    op, type = scope.op, scope.type(expr)
    part = part_of(scope, column)
    valid, extra = part.known, []
    if part.known is not None and column.missing() is not None:
        extra.append(both(part.present, op.Not(part.known)))
    if column.type.is_float:
        nan = op.IsNaN(part.value)
        extra.append(both(valid, nan))
        valid = both(valid, op.Not(nan))
    value = part.apply(stats.distinct_count, grouped.distinct_counts, valid)
    for mask in extra:
        some = op.Not(part.none(mask))
        value = op.Add(value, some.cast(ir.DataType.INT64))
    return part.result(value, type)


@rule("product")
def product(scope: Scope, expr: Expr) -> Column:
    column = _numbers(scope(expr.args[0]), "product")
    type = scope.type(expr)
    part = part_of(scope, column)
    part = part.with_value(part.value.cast(type.dtype if not type.dtype.is_integer() else ir.DataType.INT64))
    return part.result(part.apply(stats.product, grouped.products, part.known), type)


@rule("bool.Any", "bool.All")
def any_or_all(scope: Scope, expr: Expr) -> Column:
    (ignore_nulls,) = expr.options
    column = scope(expr.args[0])
    part = part_of(scope, column)
    is_any = expr.kind == "bool.Any"
    value = part.apply(
        stats.any_true if is_any else stats.all_true, grouped.anys if is_any else grouped.alls, part.known
    )
    if ignore_nulls or part.known is None or column.missing() is None:
        return part.result(value, BOOLEAN)
    op = scope.op
    lost = op.Not(part.none(both(part.present, op.Not(part.known))))
    return part.result(value, BOOLEAN, op.And(lost, op.Not(value) if is_any else value))


@rule("arg_max", "arg_min")
def arg_extreme(scope: Scope, expr: Expr) -> Column:
    if expr.options:
        raise UnsupportedError("`arg_sort` has no form in a graph: use `rank('ordinal')`, or sort the frame")
    column = scope(expr.args[0])
    if scope.grouping is not None or column.type.categories is not None:
        raise UnsupportedError(f"`{expr.kind}` has no form in a graph here: sort by the column and take the first")
    column = solid(scope, column, expr.kind)
    op = scope.op
    part = part_of(scope, column)
    valid = part.known
    if column.type.is_float:
        valid = both(valid, op.Not(op.IsNaN(part.value)))
    value = stats.extreme_row(part.value, valid, largest=expr.kind == "arg_max")
    none = part.none(part.known)
    if column.type.is_float:
        only_nan = op.And(part.none(valid), op.Not(none))
        first = stats.extreme_row(op.Cast(op.IsNaN(part.value), to=int(ir.DataType.INT64)), part.known)
        value = op.Where(only_nan, first, value)
    return part.result(value, scope.type(expr), none)


@rule("skew", "kurtosis")
def moments(scope: Scope, expr: Expr) -> Column:
    """From the means of powers of distances to the mean; without bias if it is to be so."""
    column = _numbers(scope(expr.args[0]), expr.kind)
    if scope.grouping is not None:
        raise UnsupportedError(f"`{expr.kind}` in groups has no form in a graph")
    op, type = scope.op, scope.type(expr)
    part = part_of(scope, column)
    number = part.count(part.known)
    n = number.cast(ir.DataType.DOUBLE)
    value = part.value.cast(ir.DataType.DOUBLE)
    apart = op.Sub(value, stats.mean(value, part.known))
    powers = [stats.total(op.Pow(apart, op.like(float(each), apart)), part.known) / n for each in (2, 3, 4)]
    if expr.kind == "skew":
        result = powers[1] / op.Pow(powers[0], op.like(1.5, n))
        if not expr.options[0]:
            result = op.where(number > 2, op.Sqrt((n - 1) * n) / (n - 2) * result, float("nan"))
    else:
        fisher, bias = expr.options
        if not bias:
            raise UnsupportedError("`kurtosis(bias=False)` has no form in a graph: leave the bias in")
        result = powers[2] / (powers[0] * powers[0]) - (3.0 if fisher else 0.0)
    return part.result(result, type, op.Equal(number, op.like(0, number)))


@rule("corr")
def correlation(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    how, *rest = expr.options
    if scope.grouping is not None or how not in ("pearson", "covariance"):
        raise UnsupportedError("`corr` and `cov` have a form in a graph of all rows only, and `corr` after Pearson")
    op, type = scope.op, scope.type(expr)
    first, second = part_of(scope, a), part_of(scope, b)
    valid = both(first.known, second.known)
    x, y = first.value.cast(ir.DataType.DOUBLE), second.value.cast(ir.DataType.DOUBLE)
    number = first.count(valid)
    if how == "pearson":
        return first.result(stats.correlation(x, y, valid), type, op.Equal(number, op.like(0, number)))
    ddof = int(rest[0]) if rest else 1
    return first.result(stats.covariance(x, y, valid, ddof), type, op.LessOrEqual(number, op.like(ddof, number)))
