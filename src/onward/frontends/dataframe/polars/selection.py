"""Expressions that choose rows, put them in order, or look at each group of them: filter, sort, head, over."""

from __future__ import annotations

from dataclasses import replace

from onward.errors import UnsupportedError
from onward.frontends.dataframe.columns.column import ONE, Column, Rows, full, guarded, ordered, taken, truth
from onward.frontends.dataframe.polars.aggregate import at_place
from onward.frontends.dataframe.polars.frames import grouping_by, sliced
from onward.frontends.dataframe.polars.parts import MaskedRows, masked_rows, solid, sort_key, within
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Grouping, Scope, explicit, literal_value, of_rows, rule, spoken
from onward.frontends.dataframe.tensors.rows import order, running
from onward.frontends.dataframe.tensors.rows.rows import scattered
from onward.frontends.dataframe.tensors.rows.sorting import SortKey, sort_order, sorted_rows
from onward.graph.build import Tensor


@rule("filter")
def filter_rows(scope: Scope, expr: Expr) -> Column:
    column, condition = scope.all(expr)
    if column.is_scalar:
        column = of_rows(column, condition.rows)
    if column.is_scalar:
        raise UnsupportedError("a filter of a single value has no form in a graph: use `pl.when`")
    rows = masked_rows(scope, column.rows, truth(condition), ("filter", id(expr.args[1])))
    return replace(column.expanded(), rows=rows)


@rule("drop_nulls", "drop_nans")
def drop(scope: Scope, expr: Expr) -> Column:
    column = scope(expr.args[0])
    op = scope.op
    if column.is_scalar:
        raise UnsupportedError(f"`{expr.kind}` of a single value has no form in a graph: use `pl.when`")
    bad = column.missing() if expr.kind == "drop_nulls" else op.IsNaN(column.value) if column.type.is_float else None
    if bad is None:
        return column
    null = column.missing()
    if expr.kind == "drop_nans" and null is not None:
        bad = op.And(bad, op.Not(null))
    rows = masked_rows(scope, column.rows, op.Not(bad), (expr.kind, id(expr.args[0])))
    made = explicit(column).expanded()
    return replace(made, rows=rows, null=None if expr.kind == "drop_nulls" else made.null)


@rule("slice")
def slice_rows(scope: Scope, expr: Expr) -> Column:
    offset = literal_value(expr.args[1], "the offset of a slice")
    length = literal_value(expr.args[2], "the length of a slice")
    column = scope(expr.args[0])
    if column.is_scalar:
        raise UnsupportedError("a slice of a single value has no form in a graph")
    if scope.grouping is not None:
        return _slice_in_groups(scope, expr, column, int(offset), length)
    column = solid(scope, column, "slice")
    key = ("slice", id(column.rows), int(offset), length)
    positions: Tensor = scope.shared(key, lambda: sliced(scope.op, column.rows, int(offset), length))
    return _cut(scope, column, positions, key)


def _cut(scope: Scope, column: Column, positions: Tensor, key: object) -> Column:
    rows: Rows = scope.shared(("cut", key), lambda: ordered([], positions, column.rows)[1])
    return taken(column, positions, rows)


def _slice_in_groups(scope: Scope, expr: Expr, column: Column, offset: int, length: int | None) -> Column:
    """The first or last rows of each group."""
    op, groups = scope.op, within(scope, column)
    if groups is None or isinstance(column.rows, MaskedRows) or offset < 0:
        raise UnsupportedError("a slice of rows of groups, but for the first ones, has no form in a graph")
    place = running.running_count(groups)
    mask = op.GreaterOrEqual(place, op.like(offset, place))
    if length is not None:
        mask = op.And(mask, op.Less(place, op.like(offset + int(length), place)))
    rows = masked_rows(scope, column.rows, mask, ("slice", offset, length))
    return replace(column.expanded(), rows=rows)


@rule("gather_every")
def gather_every(scope: Scope, expr: Expr) -> Column:
    offset, step = (int(each) for each in expr.options)
    column = solid(scope, scope(expr.args[0]), "gather_every")
    if scope.grouping is not None or column.is_scalar:
        raise UnsupportedError("`gather_every` of groups or single values has no form in a graph")
    op, key = scope.op, ("every", id(column.rows), offset, step)
    positions: Tensor = scope.shared(
        key,
        lambda: op.Range(
            op.index(offset),
            op.Squeeze(op.Where(op.Less(column.rows.count, op.ints([offset])), op.ints([offset]), column.rows.count)),
            op.index(step),
        ),
    )
    return _cut(scope, column, positions, key)


@rule("gather")
def gather(scope: Scope, expr: Expr) -> Column:
    (is_scalar,) = expr.options
    if not is_scalar or scope.grouping is not None:
        raise UnsupportedError("`gather` has no form in a graph: use `get(n)`, `head` or a filter of the frame")
    place = literal_value(expr.args[1], "the place of `get`")
    column = solid(scope, scope(expr.args[0]), "get")
    if column.is_scalar:
        raise UnsupportedError("`get` of a single value has no form in a graph")
    op = scope.op
    least = int(place) if int(place) >= 0 else -int(place) - 1
    found = at_place(scope, column, int(place), scope.type(expr))
    return guarded(found, op.LessOrEqual(column.rows.count, op.ints([least])), "a place that a column does not have")


def put_in_order(scope: Scope, column: Column, by: list[SortKey]) -> Column:
    """The rows in an order, of each group in its own places."""
    op, groups = scope.op, within(scope, column)
    positions = sort_order(by)
    if groups is not None:
        grouped, places = (
            op.Gather(positions, sorted_rows(op.Gather(groups.codes, positions))),
            sorted_rows(groups.codes),
        )
        positions = scattered(grouped, places, places)
    column = explicit(column).expanded()

    def sorted_(x: Tensor) -> Tensor:
        return full(op.Gather(x, positions, axis=0), column.rows)

    return replace(column, value=sorted_(column.value), null=None if column.null is None else sorted_(column.null))


@rule("sort")
def sort(scope: Scope, expr: Expr) -> Column:
    _, nulls_last, descending = expr.options
    column = solid(scope, scope(expr.args[0]), "sort")
    if column.is_scalar:
        return column
    return put_in_order(scope, column, [sort_key(column, descending=bool(descending), nulls_last=bool(nulls_last))])


@rule("sort_by")
def sort_by(scope: Scope, expr: Expr) -> Column:
    _, nulls_last, descending = expr.options
    column, *found = scope.all(expr)
    column = solid(scope, column, "sort_by")
    if column.is_scalar:
        raise UnsupportedError("`sort_by` of a single value has no form in a graph")
    found = [of_rows(solid(scope, each, "sort_by"), column.rows) for each in found]
    by = [
        sort_key(each, descending=bool(down), nulls_last=bool(last))
        for each, down, last in zip(found, descending, nulls_last, strict=True)
    ]
    return put_in_order(scope, column, by)


@rule("unique", "unique_stable")
def unique(scope: Scope, expr: Expr) -> Column:
    column = solid(scope, scope(expr.args[0]), "unique")
    if scope.grouping is not None or column.is_scalar:
        raise UnsupportedError("`unique` in groups has no form in a graph: use `n_unique`")
    again = order.duplicated([sort_key(column)], "first")
    rows = masked_rows(scope, column.rows, scope.op.Not(again), ("unique", id(expr.args[0])))
    return replace(explicit(column).expanded(), rows=rows)


@rule("over")
def over(scope: Scope, expr: Expr) -> Column:
    count, has_order, _, _, mapping = expr.options
    if "rows" not in str(mapping).lower():
        raise UnsupportedError(f"`over` with the mapping strategy {mapping!r} has no form in a graph: leave it out")
    if scope.grouping is not None:
        raise UnsupportedError("`over` inside of groups has no form in a graph: compute it before `group_by`")
    function, keys = expr.args[0], expr.args[1 : 1 + count]
    if has_order:
        return _over_in_order(scope, expr, function, keys)
    inner = _grouped_scope(scope, keys)
    return _back_to_rows(inner, inner(function), spoken(expr.kind))


def _grouped_scope(base: Scope, keys: tuple[Expr, ...]) -> Scope:
    """The same columns in groups; the groups of the same keys are made once."""

    def make() -> Scope:
        if base.rows is ONE:
            raise UnsupportedError("`over` in a frame of one row of totals has no form in a graph")
        if not keys:
            raise UnsupportedError("`over` without keys has no form in a graph: leave it out")
        found = [of_rows(base(each), base.rows) for each in keys]
        return base.in_groups(grouping_by(base.op, found, base.rows))

    made: Scope = base.shared(("over", tuple(id(each) for each in keys)), make)
    return made


def _back_to_rows(inner: Scope, column: Column, what: str) -> Column:
    grouping: Grouping | None = inner.grouping
    assert grouping is not None
    if column.is_scalar:
        return of_rows(column, inner.rows)
    if column.rows is grouping.rows:
        return inner.spread(column, inner.rows)
    if column.rows is not inner.rows:
        raise UnsupportedError(f"`{what}` of rows that were filtered in a group has no form in a graph: aggregate them")
    return column


def _over_in_order(scope: Scope, expr: Expr, function: Expr, keys: tuple[Expr, ...]) -> Column:
    """Work it out on sorted rows, and put the results back into their places."""
    count, _, descending, nulls_last, _ = expr.options
    by = expr.args[1 + count]
    op = scope.op

    def make() -> tuple[Scope, Tensor]:
        column = of_rows(scope(by), scope.rows)
        positions = sort_order([sort_key(column, descending=bool(descending), nulls_last=bool(nulls_last))])
        return scope.rearranged(positions), positions

    key = ("sorted", id(by), bool(descending), bool(nulls_last))
    moved, positions = scope.shared(key, make)
    inner = _grouped_scope(moved, keys)
    column = _back_to_rows(inner, inner(function), spoken(expr.kind)).expanded()
    numbers = op.Range(op.index(0), op.Squeeze(scope.rows.count), op.index(1))
    back = scattered(numbers, positions, numbers)

    def put(x: Tensor) -> Tensor:
        return full(op.Gather(x, back, axis=0), scope.rows)

    return Column(put(column.value), column.type, scope.rows, None if column.null is None else put(column.null))
