"""What depends on the rows before and after: shifts, differences, running values, ranks, windows; in groups too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx_ir as ir
import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, both, either, elementwise, full, is_full, scalar
from onward.frontends.dataframe.polars.arithmetic import in_ticks
from onward.frontends.dataframe.polars.choose import as_type, first_known
from onward.frontends.dataframe.polars.compare import BOOLEAN, equal_or_null
from onward.frontends.dataframe.polars.masks import picked
from onward.frontends.dataframe.polars.parts import solid, sort_key, within
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, explicit, literal_value, rule, spoken
from onward.frontends.dataframe.tensors.rows import order, running, window
from onward.graph.build import Tensor


def _of_rows(scope: Scope, expr: Expr) -> Column:
    """The argument, with an element in every row. A single value is a column of one row."""
    column = solid(scope, scope(expr.args[0]), spoken(expr.kind))
    if column.is_scalar:
        raise UnsupportedError(f"`{spoken(expr.kind)}` of a single value has no form in a graph")
    if scope.grouping is not None and column.rows is scope.grouping.rows:
        raise UnsupportedError(f"`{spoken(expr.kind)}` of the values of groups has no form in a graph: aggregate first")
    return explicit(column).expanded()


def _known(column: Column) -> Tensor | None:
    return None if column.null is None else column.op.Not(column.null)


def _like(column: Column, value: Tensor, type: ColumnType, null: Tensor | None) -> Column:
    made = value.cast(type.dtype)
    return Column(made if is_full(made) else full(made, column.rows), type, column.rows, null)


def _whole_number(expr: Expr, what: str) -> int:
    value = literal_value(expr, what)
    if not isinstance(value, int):
        raise UnsupportedError(f"{what} has to be a whole number")
    return value


def shifted(scope: Scope, column: Column, by: int) -> Column:
    """The row `by` before each; null where there is none."""
    groups = within(scope, column)
    value, found = running.shift(column.value, by, groups)
    null = column.op.Not(found)
    if column.null is not None:
        null = column.op.Or(null, running.shift(column.null, by, groups)[0])
    return _like(column, value, column.type, null)


@rule("shift")
def shift(scope: Scope, expr: Expr) -> Column:
    return shifted(scope, _of_rows(scope, expr), _whole_number(expr.args[1], "the number of rows of a shift"))


@rule("shift_and_fill")
def shift_and_fill(scope: Scope, expr: Expr) -> Column:
    column = _of_rows(scope, expr)
    by = _whole_number(expr.args[1], "the number of rows of a shift")
    type = scope.type(expr)
    _, filler = scope.beside(column, scope.typed(expr.args[2], type))
    groups = within(scope, column)
    value, found = running.shift(column.value, by, groups)
    null = None if column.null is None else running.shift(column.null, by, groups)[0]
    return picked(found, _like(column, value, type, null), as_type(filler, type), type, column.rows)


@rule("diff")
def diff(scope: Scope, expr: Expr) -> Column:
    if str(expr.options[0]) != "ignore":
        raise UnsupportedError("`diff` with `null_behavior='drop'` has no form in a graph: filter the frame after it")
    column = _of_rows(scope, expr)
    type = scope.type(expr)
    before = shifted(scope, column, _whole_number(expr.args[1], "the distance of a difference"))
    if type.meaning == "duration":
        a, b = (replace(in_ticks(each, type.unit)) for each in (column, before))
        return elementwise(lambda x, y: x.op.Sub(x, y), type, a, b)
    return elementwise(lambda x, y: x.op.Sub(x.cast(type.dtype), y.cast(type.dtype)), type, column, before)


@rule("pct_change")
def pct_change(scope: Scope, expr: Expr) -> Column:
    column = _of_rows(scope, expr)
    type = scope.type(expr)
    column = elementwise(lambda x: x.cast(type.dtype), type, column)
    before = shifted(scope, column, _whole_number(expr.args[1], "the distance of a change"))
    return elementwise(lambda x, y: x.op.Div(x.op.Sub(x, y), y), type, column, before)


@rule("fill_null_with_strategy")
def fill_with_strategy(scope: Scope, expr: Expr) -> Column:
    strategy, limit = str(expr.options[0]).lower(), expr.options[1]
    type = scope.type(expr)
    if strategy in ("forward", "backward"):
        return _filled(scope, _of_rows(scope, expr), backward=strategy == "backward", limit=limit)
    column = scope(expr.args[0])
    if strategy in ("zero", "one"):
        return first_known(column, scalar(scope.op, int(strategy == "one"), type))
    if strategy in ("mean", "min", "max"):
        dtype = pl.Float64() if strategy == "mean" and expr.dtype.is_integer() else expr.dtype
        inner = Expr(f"agg.{strategy}", dtype, expr.args, (False,))
        found = scope(inner)
        scope.shared(("kept", id(inner)), lambda: inner)
        column, found = scope.beside(column, found)
        return first_known(column, as_type(found, type))
    raise UnsupportedError(f"`fill_null` with the strategy {strategy!r} has no form in a graph")


def _filled(scope: Scope, column: Column, *, backward: bool, limit: int | None) -> Column:
    known = _known(column)
    if known is None:
        return column
    value, found = running.fill_forward(column.value, known, limit, backward, within(scope, column))
    return _like(column, value, column.type, column.op.Not(found))


@rule("cum_sum", "cum_count", "cum_min", "cum_max", "cum_prod")
def cumulative(scope: Scope, expr: Expr) -> Column:
    """Nulls stay null and are left out."""
    (reverse,) = expr.options
    if reverse:
        return _cumulative_reversed(scope, expr)
    return _cumulative(scope, expr, _of_rows(scope, expr))


def _cumulative(scope: Scope, expr: Expr, column: Column) -> Column:
    op, type = scope.op, scope.type(expr)
    known, groups = _known(column), within(scope, column)
    if expr.kind == "cum_count":
        ones = op.Expand(op.index(1), op.Shape(column.value))
        return _like(column, running.running_sum(ones, known, groups), type, None)
    if expr.kind == "cum_prod":
        product = running.running_product(column.value.cast(type.dtype), known, groups)
        return _like(column, product, type, column.null)
    if expr.kind == "cum_sum":
        wide = column.value.cast(type.dtype) if type.is_float else column.value.cast(ir.DataType.INT64)
        return _like(column, running.running_sum(wide, known, groups), type, column.null)
    if column.type.is_float:
        # NaN is passed over, but for rows before the first number.
        number = both(known, op.Not(op.IsNaN(column.value)))
        value = running.running_extreme(column.value, expr.kind == "cum_max", number, groups)
        zeros = op.Expand(op.index(1), op.Shape(column.value))
        so_far = running.running_sum(zeros, number, groups)
        none = op.Equal(so_far, op.like(0, so_far))
        return _like(column, op.Where(none, op.like(float("nan"), value), value), type, column.null)
    return _like(
        column, running.running_extreme(column.value, expr.kind == "cum_max", known, groups), type, column.null
    )


def _cumulative_reversed(scope: Scope, expr: Expr) -> Column:
    if scope.grouping is not None:
        raise UnsupportedError(f"`{expr.kind}` with `reverse` in groups has no form in a graph: sort the other way")
    column = turned(_of_rows(scope, expr))
    return turned(_cumulative(scope, expr, column))


def turned(column: Column) -> Column:
    """From the last row to the first."""
    column, op = column.expanded(), column.op

    def turn(x: Tensor) -> Tensor:
        return full(op.Slice(x, op.ints([-1]), op.ints([-(2**62)]), op.ints([0]), op.ints([-1])), column.rows)

    return replace(column, value=turn(column.value), null=None if column.null is None else turn(column.null))


@rule("rank")
def rank(scope: Scope, expr: Expr) -> Column:
    method, descending, _ = expr.options
    methods: dict[str, order.RankMethod] = {
        "average": "average",
        "min": "min",
        "max": "max",
        "dense": "dense",
        "ordinal": "first",
    }
    if method not in methods:
        raise UnsupportedError(f"`rank` with the method {method!r} has no form in a graph: use 'ordinal'")
    column = _of_rows(scope, expr)
    type = scope.type(expr)
    key = sort_key(column, descending=bool(descending), nulls_last=True)
    value = order.rank(key, methods[method], within=within(scope, column))
    if column.null is not None:
        value = scope.op.Where(column.null, scope.op.like(0, value), value)
    return _like(column, value, type, column.null)


_ROLLING: dict[str, window.Statistic] = {
    "rolling.Mean": "mean",
    "rolling.Sum": "sum",
    "rolling.Min": "min",
    "rolling.Max": "max",
    "rolling.Std": "std",
    "rolling.Var": "var",
    "rolling.Quantile": "median",
}


@rule(*_ROLLING)
def rolling(scope: Scope, expr: Expr) -> Column:
    size, least, weights, center, extra = expr.options
    if weights is not None:
        raise UnsupportedError("rolling windows with weights have no form in a graph: add shifted columns by hand")
    if expr.kind == "rolling.Quantile" and (float(extra[0]) != 0.5 or str(extra[1]) not in ("linear", "midpoint")):
        raise UnsupportedError("rolling quantiles have no form in a graph but for the median")
    column = _of_rows(scope, expr)
    op, type = scope.op, scope.type(expr)
    options: dict[str, Any] = {}
    if expr.kind in ("rolling.Std", "rolling.Var"):
        options["ddof"] = int(extra[0]) if extra else 1
    if column.type.meaning:
        raise UnsupportedError(f"`{spoken(expr.kind)}` of times has no form in a graph")
    known, value = _known(column), column.value
    nan = op.IsNaN(value) if column.type.is_float else None
    counted = known
    if nan is not None:
        # NaN makes every window NaN that it is in: windows are taken without it, and counted.
        value = op.Where(nan, op.like(0, value), value)
    result, enough = window.rolling(
        value, _ROLLING[expr.kind], int(size), int(least), counted, bool(center), within(scope, column), **options
    )
    null: Tensor | None = op.Not(enough)
    if nan is not None:
        odd = both(known, nan)
        assert odd is not None
        hits, _ = window.rolling(
            odd.cast(ir.DataType.DOUBLE), "sum", int(size), 0, None, bool(center), within(scope, column)
        )
        result = op.where(op.Greater(hits, op.like(0, hits)), float("nan"), result)
    if "ddof" in options:
        few, _ = window.rolling(value, "count", int(size), 0, counted, bool(center), within(scope, column))
        null = either(null, op.LessOrEqual(few, op.like(options["ddof"], few)))
    return _like(column, result, type, null)


@rule("ewm.Mean")
def ewm_mean(scope: Scope, expr: Expr) -> Column:
    alpha, adjust, _, least, ignore_nulls = expr.options
    if scope.grouping is not None:
        raise UnsupportedError("`ewm_mean` in groups has no form in a graph")
    column = _of_rows(scope, expr)
    op, type = scope.op, scope.type(expr)
    value = column.value.cast(ir.DataType.DOUBLE)
    result, enough = window.exponential_mean(
        value, float(alpha), int(least), _known(column), bool(adjust), bool(ignore_nulls)
    )
    made = _like(column, result, type, either(op.Not(enough), column.null))
    if column.type.is_float:
        odd = both(_known(column), op.Not(op.IsInf(value)))
        seen = running.running_sum(op.IsNaN(value).cast(ir.DataType.INT64), odd)
        made = replace(made, value=op.where(op.Greater(seen, op.like(0, seen)), float("nan"), made.value))
    return made


@rule("reverse")
def reverse(scope: Scope, expr: Expr) -> Column:
    if scope.grouping is not None:
        raise UnsupportedError("`reverse` in groups has no form in a graph: sort the other way")
    return turned(_of_rows(scope, expr))


@rule("interpolate")
def interpolate(scope: Scope, expr: Expr) -> Column:
    if str(expr.options[0]) != "linear" or scope.grouping is not None:
        raise UnsupportedError("`interpolate` has a form in a graph that is linear and not in groups only")
    column = _of_rows(scope, expr)
    op, type = scope.op, scope.type(expr)
    known = _known(column)
    if known is None:
        return elementwise(lambda x: x.cast(type.dtype), type, column)
    value, found = running.interpolate(column.value, known)
    after = running.fill_forward(column.value, known, backward=True)[1]
    return _like(column, value, type, op.Not(op.And(found, after)))


@rule("bool.IsDuplicated", "bool.IsUnique", "bool.IsFirstDistinct", "bool.IsLastDistinct")
def distinctness(scope: Scope, expr: Expr) -> Column:
    column = _of_rows(scope, expr)
    if scope.grouping is not None:
        raise UnsupportedError(
            f"`{spoken(expr.kind)}` in groups has no form in a graph: add the keys to the frame's own"
        )
    keep: dict[str, order.Keep] = {"bool.IsFirstDistinct": "first", "bool.IsLastDistinct": "last"}
    again = order.duplicated([sort_key(column)], keep.get(expr.kind, "none"))
    return _like(column, again if expr.kind == "bool.IsDuplicated" else scope.op.Not(again), BOOLEAN, None)


@rule("rle_id")
def rle_id(scope: Scope, expr: Expr) -> Column:
    """How often the value has changed so far."""
    column = _of_rows(scope, expr)
    op, type = scope.op, scope.type(expr)
    if scope.grouping is not None:
        raise UnsupportedError("`rle_id` in groups has no form in a graph")
    before, found = running.shift(column.value, 1)
    null = None if column.null is None else running.shift(column.null, 1)[0]
    same = equal_or_null(column, replace(column, value=before, null=null))
    new = op.And(op.Not(same.value), found)
    return _like(column, running.running_sum(new.cast(ir.DataType.INT64)), type, None)
