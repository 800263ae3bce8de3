"""One value for each group of rows: sums, means, extremes, medians and more, over the rows that count.

Columns and masks have a row for each row of the table, results one for each group: (G, 1). `valid` says which rows
count; in pandas NaN does not, and the mask says so. A group in which none counts has a sum of 0 and a product of 1;
what else it has is NaN for floats and 0, False or "" for other dtypes, and `counts` tells that it is nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.keys import Groups, spread
from onward.frontends.dataframe.tensors.rows.quantile import Interpolation, between, mixed
from onward.frontends.dataframe.tensors.rows.rows import (
    BOOL,
    FLOAT64,
    FLOATS,
    INT64,
    Sortable,
    as_number,
    both,
    changes,
    chosen,
    column,
    extreme,
    flat,
    length,
    nothing,
    positions,
    scalar,
    scattered,
    select,
    shown,
    sortable,
    sum_dtype,
    summable,
    zero,
)
from onward.frontends.dataframe.tensors.rows.sorting import Prepared, argsort, sorted_rows
from onward.graph.build import Tensor


def reduced(groups: Groups, x: Tensor, reduction: str, start: float) -> Tensor:
    """The values of a (N,) tensor, one reduction for each group: (G,). Rows in no group are put aside."""
    op = x.op
    slots = groups.count if groups.dropped is None else groups.count + 1
    result = scattered(x, groups.codes, op.Expand(op.like(start, x), slots), reduction)
    return result if groups.dropped is None else op.Slice(result, op.ints([0]), groups.count, op.ints([0]))


def sizes(groups: Groups) -> Tensor:
    """The rows of each group, whether they count or not: (G, 1) int64."""
    ones = groups.codes.op.Expand(groups.codes.op.index(1), length(groups.codes))
    return column(reduced(groups, ones, "add", 0))


def counts(groups: Groups, x: Tensor, valid: Tensor | None) -> Tensor:
    """The rows of each group that count: (G, 1) int64."""
    return sizes(groups) if valid is None else column(reduced(groups, shown(valid, x).cast(INT64), "add", 0))


def sums(groups: Groups, x: Tensor, valid: Tensor | None = None, min_count: int = 0) -> Tensor:
    """Floats in their dtype, whole numbers and bools in int64 or uint64. Fewer than `min_count` rows give NaN."""
    return _accumulated(groups, x, valid, min_count, "add", 0)


def products(groups: Groups, x: Tensor, valid: Tensor | None = None, min_count: int = 0) -> Tensor:
    """As `sums`, of products."""
    return _accumulated(groups, x, valid, min_count, "mul", 1)


def _accumulated(
    groups: Groups, x: Tensor, valid: Tensor | None, min_count: int, reduction: str, start: float
) -> Tensor:
    values = flat(summable(x, "a sum or product"))
    taken = chosen(values, None if valid is None else shown(valid, x), start)
    result = column(reduced(groups, taken, reduction, start)).cast(sum_dtype(x))
    if min_count <= 0 or x.dtype not in FLOATS:
        return result
    enough = counts(groups, x, valid) >= min_count
    return x.op.where(enough, result, float("nan"))


def means(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """In float64, or in float32 for float32."""
    number = as_number(x, "a mean")
    mean = sums(groups, number, valid) / counts(groups, x, valid).cast(FLOAT64)
    return mean.cast(x.dtype) if x.dtype in FLOATS else mean


def variances(groups: Groups, x: Tensor, valid: Tensor | None = None, ddof: int = 1) -> Tensor:
    """Sums of squared distances from the mean of the group; NaN unless more than `ddof` rows count.

    The first value of the group is subtracted before: the variance of equal values is 0, without rounding.
    """
    op = x.op
    number = as_number(x, "a variance")
    number = number - spread(groups, firsts(groups, number, valid))
    count = counts(groups, x, valid)
    distance = number - spread(groups, sums(groups, number, valid) / count.cast(FLOAT64))
    total = sums(groups, distance * distance, valid)
    result = op.where(count > ddof, total / (count - ddof).cast(FLOAT64), float("nan"))
    return result.cast(x.dtype) if x.dtype in FLOATS else result


def deviations(groups: Groups, x: Tensor, valid: Tensor | None = None, ddof: int = 1) -> Tensor:
    """Standard deviations."""
    dtype = x.dtype if x.dtype in FLOATS else FLOAT64
    return x.op.Sqrt(variances(groups, x.cast(FLOAT64), valid, ddof)).cast(dtype)


def minima(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """The smallest value of any dtype, strings too. No row that counts may be NaN."""
    return _extremes(groups, x, valid, largest=False)


def maxima(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """As `minima`, of the largest value."""
    return _extremes(groups, x, valid, largest=True)


def _extremes(groups: Groups, x: Tensor, valid: Tensor | None, largest: bool) -> Tensor:
    op = x.op
    key = sortable(flat(x))
    found = _extreme_keys(groups, x, key, valid, largest)
    if valid is None and not groups.may_be_empty:
        return column(key.back(found))
    some = flat(counts(groups, x, valid)) > 0
    inside = select(some, found, op.like(0, found))
    return column(select(some, key.back(inside), nothing(op, x.dtype)))


def _extreme_keys(groups: Groups, x: Tensor, key: Sortable, valid: Tensor | None, largest: bool) -> Tensor:
    worst = extreme(key.value.dtype, not largest)
    taken = chosen(key.value, None if valid is None else shown(valid, x), worst)
    return reduced(groups, taken, "max" if largest else "min", worst)


def extreme_rows(groups: Groups, x: Tensor, valid: Tensor | None = None, largest: bool = True) -> Tensor:
    """The first row with the largest or smallest value: (G,) int64. 0 for a group in which no row counts."""
    op = x.op
    key = sortable(flat(x))
    best = flat(spread(groups, column(_extreme_keys(groups, x, key, valid, largest))))
    return first_rows(groups, x, both(column(op.Equal(key.value, best)), valid))[0]


def first_rows(groups: Groups, x: Tensor, valid: Tensor | None = None, last: bool = False) -> tuple[Tensor, Tensor]:
    """The first or last row that counts, (G,) int64, and whether there is one, (G, 1)."""
    op = x.op
    rows = positions(x)
    none = op.index(-1) if last else scalar(length(x))
    taken = rows if valid is None else op.Where(shown(valid, x), rows, none)
    start = -1 if last else int(extreme(INT64, True))
    found = reduced(groups, taken, "max" if last else "min", start)
    inside = op.And(found >= 0, op.Less(found, length(x)))
    return op.Where(inside, found, op.index(0)), column(inside)


def firsts(groups: Groups, x: Tensor, valid: Tensor | None = None, last: bool = False) -> Tensor:
    """The first or last value that counts, of any dtype."""
    op = x.op
    rows, found = first_rows(groups, x, valid, last)
    if groups.may_be_empty:  # There may be no row at all to take a value from.
        x = op.Concat(x, op.Reshape(nothing(op, x.dtype), op.ints([1, 1])), axis=0)
    taken = op.Gather(x, rows, axis=0)
    return taken if valid is None and not groups.may_be_empty else select(found, taken, nothing(x.op, x.dtype))


def anys(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether any row that counts is true, or not 0: (G, 1) bool."""
    truth = _truth(x)
    hits = truth if valid is None else x.op.And(truth, valid)
    return counts(groups, x, hits) > 0


def alls(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether all rows that count are true, or not 0: (G, 1) bool."""
    op = x.op
    misses = op.Not(_truth(x))
    return op.Equal(counts(groups, x, misses if valid is None else op.And(misses, valid)), op.index(0))


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype == BOOL else x.op.Not(x.op.Equal(x, zero(x.op, x.dtype)))


def by_group_and_value(groups: Groups, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Sortable]:
    """The rows by group, then by value, those that do not count last; and the values in a dtype to compare."""
    op = x.op
    key = sortable(flat(x))
    null = None if valid is None else op.Not(shown(valid, x))
    order = argsort(Prepared(key.value, null, None, False, True))
    return op.Gather(order, sorted_rows(op.Gather(groups.codes, order))), key


def distinct_counts(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """How many different values count: (G, 1) int64. No row that counts may be NaN."""
    op = x.op
    order, key = by_group_and_value(groups, x, valid)
    codes = op.Gather(groups.codes, order)
    new = changes(codes, op.Gather(key.value, order))
    if valid is not None:
        new = op.And(new, op.Gather(shown(valid, x), order))
    moved = Groups(codes, groups.count, groups.first, groups.order, groups.starts, groups.dropped)
    return column(reduced(moved, new.cast(INT64), "add", 0))


def quantiles(
    groups: Groups, x: Tensor, share: float, how: Interpolation = "linear", valid: Tensor | None = None
) -> Tensor:
    """The value below which `share` of the rows that count lie; float64. No row that counts may be NaN."""
    op = x.op
    order, _ = by_group_and_value(groups, x, valid)
    values = op.Gather(flat(as_number(x, "a quantile")), order)
    if groups.may_be_empty:  # There may be no row at all to take a value from.
        values = op.Concat(values, op.Reshape(op.like(0, values), op.ints([1])), axis=0)
    count = flat(counts(groups, x, valid))
    begin = op.CumSum(flat(sizes(groups)), op.index(0), exclusive=1)
    some = count > 0
    at = op.Where(some, count - 1, op.index(0)).cast(FLOAT64) * share
    low, high, part = between(at, how)
    bounds = [op.Gather(values, op.Where(some, begin + place, op.index(0))) for place in (low, high)]
    return column(op.where(some, mixed(bounds[0], bounds[1], part, how), float("nan")))


def medians(groups: Groups, x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Medians, in float64, or in float32 for float32."""
    result = quantiles(groups, x, 0.5, "median", valid)
    return result.cast(x.dtype) if x.dtype in FLOATS else result


def aggregate_named(name: str) -> Callable[..., Tensor]:
    """The function for an aggregate by the name that pandas and Polars give it."""
    found = AGGREGATES.get(name)
    if found is None:
        raise UnsupportedError(f"the aggregate '{name}' cannot be converted: use one of {', '.join(AGGREGATES)}")
    return found


AGGREGATES: dict[str, Callable[..., Tensor]] = {
    "sum": sums,
    "prod": products,
    "mean": means,
    "min": minima,
    "max": maxima,
    "count": counts,
    "std": deviations,
    "var": variances,
    "median": medians,
    "nunique": distinct_counts,
    "first": firsts,
    "last": lambda groups, x, valid=None: firsts(groups, x, valid, last=True),
    "any": anys,
    "all": alls,
}
"""Aggregates of (groups, x, valid)."""
