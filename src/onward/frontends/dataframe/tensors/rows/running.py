"""Values that run down a column: sums, products and extremes so far, filling, shifting, differences, interpolation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.keys import Groups
from onward.frontends.dataframe.tensors.rows.rows import (
    BOOL,
    END,
    FLOAT64,
    INT64,
    STRING,
    as_number,
    chosen,
    column,
    counted,
    cut,
    extreme,
    flat,
    length,
    nothing,
    positions,
    rows_of,
    scattered,
    select,
    shown,
    sortable,
    sum_dtype,
    summable,
)
from onward.frontends.dataframe.tensors.rows.sorting import sorted_rows
from onward.graph.build import Tensor
from onward.graph.scan import scan

BLOCK, TAPS = 512, 8
"""Running extremes are taken in blocks of this many rows, by three pools of this many."""
LEVELS = 3
"""How often blocks of blocks are made: 512³ rows, 134 million, are the most."""


def place_in_group(groups: Groups) -> Tensor:
    """How many rows of its group come before each row, in `groups.order`: (M,) int64."""
    op = groups.order.op
    begin = op.Gather(rows_of(groups.starts), counted(groups.starts) - 1)
    return positions(groups.order) - begin


def running_count(groups: Groups) -> Tensor:
    """How many rows of its group come before each row: (N, 1) int64, as pandas's `cumcount`; -1 for rows in none."""
    op = groups.order.op
    base = op.Expand(op.index(-1), length(groups.codes))
    return column(scattered(place_in_group(groups), groups.order, base))


def running_sum(
    x: Tensor, valid: Tensor | None = None, within: Groups | None = None, nan_after_infinity: bool = False
) -> Tensor:
    """The sum of the rows so far that count, (N, 1), of all or of the row's group, in the dtype that sums have.

    Rows that do not count, or are in no group, have the sum so far; the caller makes them null. Whole numbers are
    exact. Within groups of floats the rest of the column costs digits only where it is 1e28 times larger.
    `nan_after_infinity`: the rows of a group after an infinite one are NaN, as in pandas, there within groups alone.
    """
    values = chosen(flat(summable(x, "a running sum")), None if valid is None else shown(valid, x), 0)
    op = x.op
    if within is None:
        return column(op.CumSum(values, op.index(0))).cast(sum_dtype(x))
    ordered = op.Gather(values, within.order)
    begin = op.Gather(rows_of(within.starts), counted(within.starts) - 1)
    sums = _exact_sums(ordered, begin) if ordered.dtype == INT64 else _float_sums(ordered, begin)
    if nan_after_infinity and sums.dtype == FLOAT64:
        infinite = op.IsInf(ordered).cast(INT64)
        sums = op.where(_exact_sums(infinite, begin) - infinite > 0, float("nan"), sums)
    return column(scattered(sums, within.order, op.Expand(op.like(0, sums), length(x)))).cast(sum_dtype(x))


def _exact_sums(x: Tensor, begin: Tensor) -> Tensor:
    """Sums from the row `begin`: whole numbers that wrap around lose nothing when they are subtracted."""
    op = x.op
    return op.CumSum(x, op.index(0)) - op.Gather(op.CumSum(x, op.index(0), exclusive=1), begin)


def _float_sums(x: Tensor, begin: Tensor) -> Tensor:
    """As `_exact_sums`, of floats: what the sums lose by rounding is summed too, and what that loses.

    Numbers that are not finite are counted instead, so that those of one group do not reach the next.
    """
    op = x.op
    odd = op.Or(op.IsNaN(x), op.IsInf(x))
    rest = op.Where(odd, op.like(0, x), x)
    result = None
    for _ in range(3):
        after = op.CumSum(rest, op.index(0))
        before = op.CumSum(rest, op.index(0), exclusive=1)
        part = after - op.Gather(before, begin)
        result = part if result is None else result + part
        step = after - before
        rest = (before - (after - step)) + (rest - step)
    assert result is not None
    above = _exact_sums(op.IsInf(x, detect_negative=0).cast(INT64), begin) > 0
    below = _exact_sums(op.IsInf(x, detect_positive=0).cast(INT64), begin) > 0
    unknown = _exact_sums(op.IsNaN(x).cast(INT64), begin) > 0
    result = op.Where(above, op.like(np.inf, x), op.Where(below, op.like(-np.inf, x), result))
    return op.Where(op.Or(unknown, op.And(above, below)), op.like(np.nan, x), result)


def running_extreme(x: Tensor, largest: bool, valid: Tensor | None = None, within: Groups | None = None) -> Tensor:
    """The largest or smallest of the rows so far that count, (N, 1), of all or of the row's group.

    Rows before the first that counts have the worst value of the dtype; the caller makes them null. No row that counts
    may be NaN. Up to 134 million rows, or 67 million within groups.
    """
    if x.dtype == STRING:
        raise UnsupportedError("a running minimum or maximum of text cannot be converted: take that of a number")
    op = x.op
    key = sortable(flat(x))
    wide = key.value.dtype == INT64
    rows = None
    if wide or within is not None:
        rows = sorted_rows(chosen(key.value, None if valid is None else shown(valid, x), 0))
        places = scattered(positions(rows), rows, positions(rows))
        values = (places if largest else op.Neg(places)).cast(FLOAT64)
    else:
        values = key.value.cast(FLOAT64)
        values = values if largest else op.Neg(values)
    taken = chosen(values, None if valid is None else shown(valid, x), float("-inf"))
    if within is None:
        best = _running_max(taken)
    else:
        step = op.squeeze(length(x), [0]).cast(FLOAT64) * 2 + 2
        offset = (counted(within.starts) - 1).cast(FLOAT64) * step
        ordered = op.Gather(taken, within.order)
        worst = op.Neg(op.squeeze(length(x), [0]).cast(FLOAT64))
        lowest = op.Where(ordered < worst, worst - 1, ordered)
        best = _running_max(lowest + offset) - offset
        best = scattered(best, within.order, op.Expand(op.like(-np.inf, best), length(x)))
        best = op.Where(best < worst, op.like(-np.inf, best), best)
    if rows is None:
        return column(key.back((best if largest else op.Neg(best)).cast(key.value.dtype)))
    none = op.Equal(best, op.like(-np.inf, best))
    place = op.Where(none, op.like(0, best), best if largest else op.Neg(best)).cast(INT64)
    found = op.Gather(flat(x), op.Gather(rows, place))
    worst_value = op.like(extreme(x.dtype, not largest) if x.dtype != BOOL else not largest, flat(x))
    return column(select(none, worst_value, found))


def _running_max(x: Tensor) -> Tensor:
    """The largest of the rows so far: of each row in its block, then of the blocks before it. (N,) float64."""
    return cut(_block_max(x, LEVELS), 0, length(x))


def _block_max(x: Tensor, levels: int) -> Tensor:
    op = x.op
    short = op.Mod(op.ints([BLOCK]) - op.Mod(length(x) - 1, op.ints([BLOCK])) - 1 + BLOCK, op.ints([BLOCK]))
    empty = op.Where(op.Equal(length(x), op.ints([0])), op.ints([BLOCK]), short)
    low = op.like(-np.inf, x)
    filled = op.Pad(x, op.Concat(op.ints([0]), empty, axis=0), low)
    blocks = op.Reshape(filled, op.ints([1, -1, BLOCK]))
    reach = 1
    while reach < BLOCK:
        before = op.Pad(blocks, op.ints([0, 0, (TAPS - 1) * reach, 0, 0, 0]), low)
        blocks = op.MaxPool(before, kernel_shape=[TAPS], dilations=[reach])
        reach *= TAPS
    if levels > 1:
        last = op.Reshape(op.Slice(blocks, op.ints([BLOCK - 1]), op.ints([BLOCK]), op.ints([2])), op.ints([-1]))
        so_far = _block_max(last, levels - 1)
        earlier = cut(op.Concat(op.Reshape(low, op.ints([1])), so_far, axis=0), 0, length(last))
        blocks = op.Max(blocks, op.Reshape(earlier, op.ints([1, -1, 1])))
    return op.Reshape(blocks, op.ints([-1]))


def running_product(x: Tensor, valid: Tensor | None = None, within: Groups | None = None) -> Tensor:
    """The product of the rows so far that count, (N, 1), of all or of the row's group, one row after the other.

    Whole numbers wrap around. Rows that do not count, or are in no group, have some number; the caller makes them null.
    """
    if x.dtype == STRING:
        raise UnsupportedError("a product of text cannot be converted: multiply numbers")
    op, dtype = x.op, sum_dtype(x)
    values = chosen(flat(x.cast(dtype)), None if valid is None else shown(valid, x), 1)
    one = op.like(1, values)
    starts = op.Expand(op.constant(np.asarray(False)), length(x)) if within is None else within.starts
    ordered = values if within is None else op.Gather(values, within.order)
    # A Scan has a row at least: one more is added, and left out again.
    given = [op.Concat(ordered, op.Reshape(one, op.ints([1])), axis=0)]
    given.append(op.Concat(starts, op.constant(np.asarray([True])), axis=0))

    def step(states: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        product = op.Where(row[1], row[0], states[0] * row[0])
        return [product], [product]

    products = cut(scan(op, step, [one], given)[1], 0, length(ordered))
    if within is None:
        return column(products)
    return column(scattered(products, within.order, op.Expand(one, length(x))))


def last_valid(valid: Tensor, x: Tensor, following: bool = False) -> tuple[Tensor, Tensor]:
    """The last row up to each that counts, or the next from it on, (N,) int64, and whether there is one, (N,) bool."""
    op = x.op
    flags = shown(valid, x)
    rows = op.Concat(rows_of(flags), op.ints([0]), axis=0)
    number = counted(flags)
    if following:
        number = number - flags.cast(INT64)
        return op.Gather(rows, number), op.Less(number, length(rows) - 1)
    some = number > 0
    return op.Gather(rows, op.Where(some, number - 1, op.index(0))), some


def fill_forward(
    x: Tensor, valid: Tensor, limit: int | None = None, backward: bool = False, within: Groups | None = None
) -> tuple[Tensor, Tensor]:
    """Each row, or the last one before it (the next after it) that counts: values and whether they count, both (N, 1).

    At most `limit` rows away. `within` fills from rows of the same group alone.
    """
    op = x.op
    if within is None and limit is None:
        return _filled(x, shown(valid, x), backward)
    here = x if within is None else op.Gather(x, within.order, axis=0)
    flags = shown(valid, x)
    flags = flags if within is None else op.Gather(flags, within.order)
    rows, found = last_valid(column(flags), here, following=backward)
    if within is not None:
        number = counted(within.starts)
        found = op.And(found, op.Equal(op.Gather(number, rows), number))
    if limit is not None:
        away = positions(here) - rows
        found = op.And(found, (op.Neg(away) if backward else away) <= limit)
    rows = op.Where(found, rows, positions(here))
    taken = op.Gather(here, rows, axis=0)
    if within is None:
        return taken, column(found)
    return _back(taken, within, x), column(scattered(found, within.order, flags_of(x, False)))


def _filled(x: Tensor, flags: Tensor, backward: bool) -> tuple[Tensor, Tensor]:
    op = x.op
    known = op.Compress(x, flags, axis=0)
    blank = op.Reshape(nothing(op, x.dtype), op.ints([1, 1]))
    number = counted(flags)
    if backward:
        number = number - flags.cast(INT64)
        return op.Gather(op.Concat(known, blank, axis=0), number, axis=0), column(op.Less(number, length(known)))
    return op.Gather(op.Concat(blank, known, axis=0), number, axis=0), column(number > 0)


def flags_of(x: Tensor, value: bool) -> Tensor:
    return x.op.Expand(x.op.constant(np.asarray(value)), length(x))


def _back(ordered: Tensor, within: Groups, x: Tensor) -> Tensor:
    """What stands in the order of groups, (M, 1), in the order of rows; rows in no group keep their own value."""
    return x.op.ScatterElements(x.cast(ordered.dtype), column(within.order), ordered, axis=0)


def shift(x: Tensor, by: int, within: Groups | None = None) -> tuple[Tensor, Tensor]:
    """The row `by` before each (after it, if negative), and whether there is one: (N, 1) both.

    Where there is none, the value is that of some row. Rows in no group have none.
    """
    op = x.op
    if within is None:
        found = positions(x) >= by if by >= 0 else op.Less(positions(x), length(x) + by)
        parts = [cut(x, 0, by), cut(x, 0, -by)] if by > 0 else [cut(x, -by, END), cut(x, by, END)]
        return (op.Concat(*parts, axis=0) if by else x), column(found)
    place = positions(within.order)
    number = counted(within.starts)
    source = place - by
    inside = op.And(source >= 0, op.Less(source, length(within.order)))
    source = op.Where(inside, source, place)
    found = op.And(inside, op.Equal(op.Gather(number, source), number))
    rows = op.Gather(within.order, source)
    return _back(op.Gather(x, rows, axis=0), within, x), column(scattered(found, within.order, flags_of(x, False)))


def difference(x: Tensor, by: int = 1, within: Groups | None = None) -> tuple[Tensor, Tensor]:
    """Each row less the one `by` before it, and whether there is one. In the dtype of `x`; the caller widens it."""
    before, found = shift(x, by, within)
    return x - before, found


def relative_change(x: Tensor, by: int = 1, within: Groups | None = None) -> tuple[Tensor, Tensor]:
    """Each row divided by the one `by` before it, less 1, in float64, and whether there is one."""
    number = as_number(x, "a relative change")
    before, found = shift(number, by, within)
    return number / before - 1, found


def interpolate(x: Tensor, valid: Tensor, both_ends: bool = False) -> tuple[Tensor, Tensor]:
    """Rows that do not count, on the line between those around that do: values in float64 and whether there is one.

    After the last that counts its value goes on; before the first there is none, unless `both_ends` is set.
    """
    op = x.op
    number = flat(as_number(x, "an interpolation"))
    (low, before), (high, after) = last_valid(valid, x), last_valid(valid, x, following=True)
    start, end = op.Gather(number, low), op.Gather(number, high)
    gap = op.Where(op.Equal(low, high), op.index(1), high - low).cast(FLOAT64)
    line = start + (end - start) / gap * (positions(x) - low).cast(FLOAT64)
    line = op.Where(op.Or(op.Equal(low, high), op.Equal(low, positions(x))), start, line)
    result = op.Where(op.And(before, after), line, op.Where(before, start, end))
    return column(result), column(op.Or(before, after) if both_ends else before)
