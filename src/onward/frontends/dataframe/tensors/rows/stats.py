"""One value for a whole column: sums, means, extremes, quantiles, moments and correlation, over the rows that count.

Results are (1, 1). `valid` says which rows count; in pandas NaN does not, and the mask says so. If none counts, a
sum is 0, a product 1, a count 0, `any` false and `all` true; the rest is NaN for floats and 0, False or "" for other
dtypes, and `count` tells that it is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onward.frontends.dataframe.tensors.rows.keys import group_rows
from onward.frontends.dataframe.tensors.rows.quantile import Interpolation, between, mixed
from onward.frontends.dataframe.tensors.rows.rows import (
    BOOL,
    FLOAT64,
    FLOATS,
    INT64,
    STRING,
    as_number,
    both,
    chosen,
    extreme,
    first_value,
    flat,
    length,
    nothing,
    rows_of,
    select,
    shown,
    sortable,
    sum_dtype,
    summable,
    whole,
    zero,
)
from onward.frontends.dataframe.tensors.rows.sorting import SortKey
from onward.graph.build import Tensor


def _one(x: Tensor) -> Tensor:
    """A value as (1, 1)."""
    return x.op.Reshape(x, x.op.ints([1, 1]))


def count(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """How many rows count: int64."""
    return _one(length(x) if valid is None else x.op.ReduceSum(shown(valid, x).cast(INT64)))


def total(x: Tensor, valid: Tensor | None = None, min_count: int = 0) -> Tensor:
    """The sum: floats in their dtype, whole numbers and bools in int64 or uint64."""
    return _reduced(x, valid, "ReduceSum", 0, min_count)


def product(x: Tensor, valid: Tensor | None = None, min_count: int = 0) -> Tensor:
    """The product, in the dtypes of sums."""
    return _reduced(x, valid, "ReduceProd", 1, min_count)


def _reduced(x: Tensor, valid: Tensor | None, op_type: str, start: float, min_count: int) -> Tensor:
    op = x.op
    values = chosen(flat(summable(x, "a sum or product")), None if valid is None else shown(valid, x), start)
    if values.dtype == INT64:
        return _one(whole(values, "add" if op_type == "ReduceSum" else "mul", int(start))).cast(sum_dtype(x))
    result = _one(op.many(op_type, 1, values)[0]).cast(sum_dtype(x))
    if min_count <= 0:
        return result
    return op.where(count(x, valid) >= min_count, result, math.nan)


def mean(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """In float64, or in float32 for float32."""
    return _as_result(_mean(as_number(x, "a mean"), valid), x)


def _mean(x: Tensor, valid: Tensor | None) -> Tensor:
    return total(x, valid) / count(x, valid).cast(FLOAT64)


def _as_result(result: Tensor, x: Tensor) -> Tensor:
    return result.cast(x.dtype) if x.dtype in FLOATS else result


def variance(x: Tensor, valid: Tensor | None = None, ddof: int = 1) -> Tensor:
    """From the distances to the mean; NaN unless more than `ddof` rows count."""
    return _as_result(_variance(as_number(x, "a variance"), valid, ddof), x)


def _variance(x: Tensor, valid: Tensor | None, ddof: int) -> Tensor:
    number = count(x, valid)
    apart = x - _mean(x, valid)
    return x.op.where(number > ddof, total(apart * apart, valid) / (number - ddof).cast(FLOAT64), math.nan)


def deviation(x: Tensor, valid: Tensor | None = None, ddof: int = 1) -> Tensor:
    """The standard deviation."""
    return _as_result(x.op.Sqrt(_variance(as_number(x, "a deviation"), valid, ddof)), x)


def smallest(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """The smallest value of any dtype, strings too. No row that counts may be NaN."""
    return _extreme(x, valid, largest=False)


def largest(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """As `smallest`, of the largest value."""
    return _extreme(x, valid, largest=True)


def _extreme(x: Tensor, valid: Tensor | None, largest: bool) -> Tensor:
    op = x.op
    if x.dtype == STRING:
        texts = flat(x) if valid is None else op.Compress(flat(x), shown(valid, x), axis=0)
        distinct = op.many("Unique", 1, texts)[0]
        blank = op.Reshape(nothing(op, STRING), op.ints([1]))
        padded = op.Concat(blank, distinct, axis=0) if largest else op.Concat(distinct, blank, axis=0)
        return _one(op.Gather(padded, op.index(-1 if largest else 0)))
    key = sortable(flat(x))
    worst = extreme(key.value.dtype, not largest)
    taken = chosen(key.value, None if valid is None else shown(valid, x), worst)
    if taken.dtype in FLOATS:
        padded = op.Concat(taken, op.unsqueeze(op.like(worst, taken), [0]), axis=0)
        best = (op.ReduceMax if largest else op.ReduceMin)(padded)
    else:
        best = whole(taken.cast(INT64), "max" if largest else "min", int(worst)).cast(key.value.dtype)
    some = count(x, valid) > 0
    return select(some, _one(key.back(best)), nothing(op, x.dtype))


def median(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """The median, in float64, or in float32 for float32. No row that counts may be NaN."""
    return _as_result(quantile(x, 0.5, "median", valid), x)


def quantile(
    x: Tensor,
    share: float,
    how: Interpolation = "linear",
    valid: Tensor | None = None,
    as_numpy: bool = True,
) -> Tensor:
    """The value below which `share` of the rows that count lie; float64. No row that counts may be NaN.

    `as_numpy`: on a line or halfway to the next value, NaN where one of the two is infinite, even at a value itself, as
    in pandas; otherwise the value itself is given there, as in Polars.
    """
    op = x.op
    values = flat(as_number(x, "a quantile"))
    if valid is not None:
        values = op.Compress(values, shown(valid, x), axis=0)
    some = length(values) > 0
    last = op.Max(length(values), op.index(1)) - 1
    low, high, part = between(last.cast(FLOAT64) * share, how)
    if as_numpy and how in ("linear", "midpoint"):
        high = op.Where(op.Equal(low, high), op.Min(low + 1, last), high)
    bounds = _neighbours(values, low, high, upper=share > 0.5)
    return _one(op.where(some, mixed(bounds[0], bounds[1], part, how, as_numpy), math.nan))


def _neighbours(values: Tensor, low: Tensor, high: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """The values at two places, equal or beside each other, of those sorted; NaN if there is none.

    All up to the further one, from the nearer end, are found without sorting them, then the last two of these.
    """
    op = values.op
    far = length(values) - low if upper else high + 1
    found = op.many("TopK", 2, values, op.Min(far, length(values)), axis=0, largest=int(upper), sorted=0)[0]
    two = op.Min(length(found), op.ints([2]))
    last = op.many("TopK", 2, found, two, axis=0, largest=int(not upper), sorted=1)[0]
    padded = op.Concat(last, op.unsqueeze(op.like(math.nan, last), [0]), axis=0)
    further, nearer = op.Gather(padded, op.ints([0])), op.Gather(padded, high - low)
    return (further, nearer) if upper else (nearer, further)


def distinct_count(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """How many different values count: int64."""
    op = x.op
    null = None if valid is None else op.Not(valid)
    return _one(group_rows([SortKey(x, null)], drop_nulls=True).count)


def any_true(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether any row that counts is true, or not 0 or empty: bool."""
    hits = both(_truth(x), valid)
    return count(x, hits) > 0


def all_true(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether all rows that count are true, or not 0 or empty: bool."""
    op = x.op
    return op.Equal(count(x, both(op.Not(_truth(x)), valid)), op.index(0))


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype == BOOL else x.op.Not(x.op.Equal(x, zero(x.op, x.dtype)))


def skewness(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Without bias, as pandas's `skew`: NaN for fewer than 3 rows, or if all are equal."""
    op = x.op
    number, second, third, _ = _moments(x, valid)
    n = number.cast(FLOAT64)
    result = n * op.Sqrt(n - 1) / (n - 2) * (third / op.Pow(second, op.like(1.5, second)))
    return _as_result(op.where(number >= 3, result, math.nan), x)


def kurtosis(x: Tensor, valid: Tensor | None = None) -> Tensor:
    """Excess kurtosis without bias, as pandas's `kurt`: NaN for fewer than 4 rows, or if all are equal."""
    op = x.op
    number, second, _, fourth = _moments(x, valid)
    n = number.cast(FLOAT64)
    correction = (n - 1) * (n - 1) / ((n - 2) * (n - 3)) * 3
    result = n * (n + 1) * (n - 1) / ((n - 2) * (n - 3)) * (fourth / (second * second)) - correction
    return _as_result(op.where(number >= 4, result, math.nan), x)


def _moments(x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """How many rows count, and the sums of the second, third and fourth powers of distances to the mean.

    The first value is subtracted before: equal values have sums of 0, without rounding.
    """
    apart = _centred(as_number(x, "a moment"), valid)
    square = apart * apart
    second, third, fourth = (total(power, valid) for power in (square, square * apart, square * square))
    return count(x, valid), second, third, fourth


def _centred(x: Tensor, valid: Tensor | None) -> Tensor:
    apart = x - first_value(x, valid)
    return apart - _mean(apart, valid)


def correlation(x: Tensor, y: Tensor, valid: Tensor | None = None) -> Tensor:
    """Pearson's, float64, over rows that count in both: NaN for fewer than 2, or where one column is constant."""
    op = x.op
    a, b = (_centred(as_number(column, "a correlation"), valid) for column in (x, y))
    result = total(a * b, valid) / op.Sqrt(total(a * a, valid) * total(b * b, valid))
    bounded = op.Max(op.Min(result, op.like(1, result)), op.like(-1, result))
    return op.where(count(x, valid) >= 2, bounded, math.nan)


def covariance(x: Tensor, y: Tensor, valid: Tensor | None = None, ddof: int = 1) -> Tensor:
    """float64, over rows that count in both: NaN unless more than `ddof` do."""
    op = x.op
    a, b = as_number(x, "a covariance"), as_number(y, "a covariance")
    number = count(x, valid)
    products = (a - _mean(a, valid)) * (b - _mean(b, valid))
    return op.where(number > ddof, total(products, valid) / (number - ddof).cast(FLOAT64), math.nan)


def extreme_row(x: Tensor, valid: Tensor | None = None, largest: bool = True) -> Tensor:
    """The first row with the largest or smallest value that counts: (1, 1) int64, and 0 if none counts."""
    op = x.op
    key = sortable(flat(x)).value
    rows = None if valid is None else rows_of(shown(valid, x))
    values = key if rows is None else op.Gather(key, rows)
    most = op.Min(length(values), op.ints([1]))
    found = op.many("TopK", 2, values, most, axis=0, largest=int(largest), sorted=1)[1]
    found = found if rows is None else op.Gather(rows, found)
    return _one(op.ReduceSum(found))


STATISTICS: dict[str, Callable[..., Tensor]] = {
    "sum": total,
    "prod": product,
    "mean": mean,
    "min": smallest,
    "max": largest,
    "count": count,
    "std": deviation,
    "var": variance,
    "median": median,
    "nunique": distinct_count,
    "any": any_true,
    "all": all_true,
    "skew": skewness,
    "kurt": kurtosis,
}
"""Statistics of (x, valid), by the names that pandas gives them."""
