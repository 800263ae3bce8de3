"""Values over the last rows, over all so far, or over all so far with falling weights: rolling, expanding, ewm.

Each gives float64 values and whether enough rows count for one, (N, 1) both. Sums over windows join sums over shorter
ones, so that nothing is ever subtracted: what leaves a window leaves no trace, be it infinite. pandas takes infinite
values for missing ones in all of these, and the mask has to say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.groups import firsts
from onward.frontends.dataframe.tensors.rows.keys import Groups, spread
from onward.frontends.dataframe.tensors.rows.rows import (
    END,
    FLOAT64,
    INT64,
    as_number,
    chosen,
    column,
    counted,
    cut,
    first_value,
    flat,
    length,
    positions,
    scattered,
    shown,
)
from onward.frontends.dataframe.tensors.rows.running import place_in_group, running_extreme, running_sum
from onward.graph.build import Tensor

Statistic = Literal["sum", "mean", "min", "max", "var", "std", "median", "count"]
LONGEST_SORTED = 32
"""The most rows of a window whose median is taken: each row has a copy of all of its window."""
LONGEST_COPIED = 16
"""The most rows of a window whose variance is taken from a copy; that of longer ones is joined from shorter ones."""
NEGLIGIBLE = 2.0**-200
"""A weight that is left out."""


@dataclass(frozen=True)
class Rows:
    """The rows that windows move over: their values, which of them count, and how many of the group come before."""

    value: Tensor
    valid: Tensor
    place: Tensor | None

    def shifted(self, x: Tensor, by: int, blank: float) -> Tensor:
        """The row `by` before each, `blank` where it is of another group or not there."""
        op = x.op
        moved = cut(op.Pad(x, op.ints([by, 0]), op.like(blank, x)), 0, length(x))
        return moved if self.place is None else op.Where(self.place >= by, moved, op.like(blank, x))


def rolling(
    x: Tensor,
    how: Statistic,
    size: int,
    min_periods: int,
    valid: Tensor | None = None,
    center: bool = False,
    within: Groups | None = None,
    ddof: int = 1,
) -> tuple[Tensor, Tensor]:
    """Over the last `size` rows, or those around each (`center`), of all or of the row's group."""
    op = x.op
    if center and within is not None:
        raise UnsupportedError("a centred window within groups cannot be converted: leave out `center`, and shift")
    ahead = (size - 1) // 2 if center else 0
    value = flat(as_number(x, "a rolling window"))
    counts = shown(valid, x) if valid is not None else op.Equal(positions(x), positions(x))
    place = None
    if within is not None:
        value, counts = op.Gather(value, within.order), op.Gather(counts, within.order)
        place = place_in_group(within)
    if ahead:
        value = op.Pad(value, op.ints([0, ahead]))
        counts = op.Pad(counts.cast(INT64), op.ints([0, ahead])) > 0
    rows = Rows(value, counts, place)
    number = _count(rows, size)
    result, enough = _rolled(rows, how, size, number, ddof), number >= min_periods
    if ahead:
        result, enough = cut(result, ahead, END), cut(enough, ahead, END)
    if within is not None:
        result = scattered(result, within.order, op.Expand(op.like(0, result), length(x)))
        none = op.Less(positions(x), op.index(0))
        enough = scattered(enough, within.order, none)
    return column(result), column(enough)


def _count(rows: Rows, size: int) -> Tensor:
    """How many rows of each window count."""
    op = rows.value.op
    so_far = counted(rows.valid)
    if rows.place is None:
        return so_far - rows.shifted(so_far, size, 0)
    first = positions(rows.value) - op.Min(rows.place, op.index(size - 1))
    return so_far - op.Gather(so_far - rows.valid.cast(INT64), first)


def _rolled(rows: Rows, how: Statistic, size: int, number: Tensor, ddof: int) -> Tensor:
    op = rows.value.op
    if how == "count":
        return number.cast(FLOAT64)
    if how in ("sum", "mean"):
        total = _joined(rows, size, (chosen(rows.value, rows.valid, 0),), (0,), lambda a, b: (a[0] + b[0],))[0]
        return total if how == "sum" else total / number.cast(FLOAT64)
    if how in ("min", "max"):
        worst = math.inf if how == "min" else -math.inf
        best = _extremes(rows, size, chosen(rows.value, rows.valid, worst), worst)
        return op.where(number > 0, best, math.nan)
    if how == "median":
        return _medians(rows, size, number)
    squares = _squares_copied(rows, size, number) if size <= LONGEST_COPIED else _squares_joined(rows, size)
    variance = op.where(number > ddof, squares / (number - ddof).cast(FLOAT64), math.nan)
    return variance if how == "var" else op.Sqrt(variance)


State = tuple[Tensor, ...]


def _joined(
    rows: Rows, size: int, state: State, blanks: tuple[float, ...], join: Callable[[State, State], State]
) -> State:
    """States over windows of `size` rows, from those of single rows: windows of 1, 2, 4, … rows are joined.

    `join` takes the state of the later rows, then that of the earlier ones.
    """
    done: State | None = None
    reach, covered = 1, 0
    while True:
        if size & reach:
            earlier = tuple(rows.shifted(x, covered, b) for x, b in zip(state, blanks, strict=True)) if done else state
            done = join(done, earlier) if done else state
            covered += reach
        if covered == size:
            assert done is not None
            return done
        earlier = tuple(rows.shifted(x, reach, b) for x, b in zip(state, blanks, strict=True))
        state = join(state, earlier)
        reach *= 2


def _extremes(rows: Rows, size: int, x: Tensor, worst: float) -> Tensor:
    """As `_joined`; windows may overlap here, so that one join makes the last window."""
    join = x.op.Min if worst > 0 else x.op.Max
    reach = 1
    while reach * 2 <= size:
        x = join(x, rows.shifted(x, reach, worst))
        reach *= 2
    return x if reach == size else join(x, rows.shifted(x, size - reach, worst))


def _squares_joined(rows: Rows, size: int) -> Tensor:
    """The sums of squared distances from the means of windows, joined from those of shorter ones."""
    number = rows.valid.cast(FLOAT64)
    mean = chosen(rows.value, rows.valid, 0)

    def join(a: State, b: State) -> State:
        count = a[0] + b[0]
        share = b[0] / a[0].op.Max(count, a[0].op.like(1, count))
        apart = b[1] - a[1]
        return count, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share

    return _joined(rows, size, (number, mean, mean * 0), (0, 0, 0), join)[2]


def _copies(rows: Rows, size: int) -> tuple[Tensor, Tensor]:
    """The values of each window, and which of them count: (size, N), the latest row of the window first."""
    op = rows.value.op
    values, counts = (_stacked(x, size) for x in (rows.value, rows.valid.cast(ir.DataType.UINT8)))
    if rows.place is None:
        return values, counts > 0
    inside = op.GreaterOrEqual(op.unsqueeze(rows.place, [0]), op.unsqueeze(op.ints(range(size)), [1]))
    return values, op.And(inside, counts > 0)


def _stacked(x: Tensor, size: int) -> Tensor:
    op = x.op
    padded = op.unsqueeze(op.Pad(x, op.ints([size - 1, 0])), [0])
    ends = [op.ints([END])] + [op.ints([-back]) for back in range(1, size)]
    shifted = [op.Slice(padded, op.ints([size - 1 - back]), end, op.ints([1])) for back, end in enumerate(ends)]
    return op.Concat(*shifted, axis=0)


def _squares_copied(rows: Rows, size: int, number: Tensor) -> Tensor:
    """As `_squares_joined`. The largest value is subtracted before: equal values give 0, without rounding."""
    op = rows.value.op
    values, counts = _copies(rows, size)
    values = values - op.ReduceMax(op.Where(counts, values, op.like(-math.inf, values)), op.ints([0]), keepdims=1)
    total = op.sum(op.Where(counts, values, op.like(0, values)), [0])
    apart = values - total / op.unsqueeze(op.Max(number, op.index(1)), [0]).cast(FLOAT64)
    return op.sum(op.Where(counts, apart * apart, op.like(0, values)), [0], keepdims=False)


def _medians(rows: Rows, size: int, number: Tensor) -> Tensor:
    if size > LONGEST_SORTED:
        raise UnsupportedError(f"a rolling median over {size} rows cannot be converted: {LONGEST_SORTED} are the most")
    op = rows.value.op
    values, counts = _copies(rows, size)
    counts = op.And(counts, op.Not(op.IsNaN(values)))
    known = op.Where(counts, values, op.like(math.inf, values))
    ordered = op.many("TopK", 2, known, op.ints([size]), axis=0, largest=0, sorted=1)[0]
    low, high = op.Max(op.Div(number - 1, op.index(2)), op.index(0)), op.Div(number, op.index(2))
    high = op.Min(high, op.index(size - 1))
    middle = [op.squeeze(op.GatherElements(ordered, op.unsqueeze(at, [0]), axis=0), [0]) for at in (low, high)]
    median = op.Where(op.Equal(middle[0], middle[1]), middle[0], (middle[0] + middle[1]) * 0.5)
    return op.where(number > 0, median, math.nan)


def expanding(
    x: Tensor,
    how: Statistic,
    min_periods: int,
    valid: Tensor | None = None,
    within: Groups | None = None,
    ddof: int = 1,
) -> tuple[Tensor, Tensor]:
    """Over all rows so far, of all or of the row's group. Medians are refused."""
    op = x.op
    value = as_number(x, "an expanding window")
    counts = column(shown(valid, x) if valid is not None else op.Equal(positions(x), positions(x)))
    number = running_sum(counts, None, within)
    enough = number >= min_periods
    if within is not None and within.dropped is not None:
        enough = op.And(enough, op.Not(column(within.dropped)))
    if how == "count":
        return number.cast(FLOAT64), enough
    if how in ("min", "max"):
        best = running_extreme(value, how == "max", valid, within)
        return op.where(number > 0, best, math.nan), enough
    if how == "median":
        raise UnsupportedError("an expanding median cannot be converted: take a rolling one over few rows")
    total = running_sum(value, valid, within)
    if how == "sum":
        return total, enough
    mean = total / number.cast(FLOAT64)
    if how == "mean":
        return mean, enough
    apart = value - _first_value(value, counts, within)
    earlier = (number - counts.cast(INT64)).cast(FLOAT64)
    known = chosen(apart, counts, 0)
    before = (running_sum(known, None, within) - known) / op.Max(earlier, op.like(1, earlier))
    step = (apart - before) * (apart - before) * (earlier / (earlier + 1))
    squares = running_sum(step, valid, within)
    variance = op.where(number > ddof, squares / (number - ddof).cast(FLOAT64), math.nan)
    return (variance if how == "var" else op.Sqrt(variance)), enough


def _first_value(x: Tensor, counts: Tensor, within: Groups | None) -> Tensor:
    """The first value that counts, of all or of the row's group: it is in every window, and so costs no digits."""
    if within is not None:
        return spread(within, firsts(within, x, counts))
    return first_value(x, counts)


def exponential_mean(
    x: Tensor,
    alpha: float,
    min_periods: int = 1,
    valid: Tensor | None = None,
    adjust: bool = True,
    ignore_nulls: bool = False,
) -> tuple[Tensor, Tensor]:
    """The mean of the rows so far, each weighing `1 - alpha` times as much as the next: pandas's `ewm(...).mean()`.

    Weights below 2^-200 are left out. Rows that do not count have the mean so far; their weights fall on, unless
    `ignore_nulls` is set.
    """
    op = x.op
    value, keep = flat(as_number(x, "an exponential mean")), 1 - alpha
    counts = shown(valid, x) if valid is not None else op.Equal(positions(x), positions(x))
    number = counted(counts)
    enough = column(number >= max(min_periods, 1))
    steps = 0 if keep == 0 else math.ceil(math.log2(max(math.log(NEGLIGIBLE) / math.log(keep), 1)))
    at = op.Compress(positions(x), counts, axis=0)
    known = op.Gather(value, at)
    first = op.Less(positions(known), op.index(1))
    gap = at - cut(op.Concat(op.ints([0]), at, axis=0), 0, -1)
    old = op.like(keep, known) if ignore_nulls else op.Pow(op.like(keep, known), gap.cast(FLOAT64))
    rows = Rows(known, first, None)
    if adjust:
        factor = op.Where(first, op.like(0, known), op.Expand(old, length(known)))
        ones = op.Expand(op.like(1, known), length(known))
        total, weight = _recurrence(rows, [known, ones], factor, steps)
        mean = total / weight
    else:
        share = op.Where(first, op.like(0, known), op.Expand(old / (old + alpha), length(known)))
        mean = _recurrence(rows, [known * (1 - share)], share, steps)[0]
    some = number > 0
    source = op.Where(some, number - 1, length(known))
    return column(op.Gather(op.Concat(mean, op.ints([0]).cast(FLOAT64), axis=0), source)), enough


def _recurrence(rows: Rows, added: list[Tensor], factor: Tensor, steps: int) -> list[Tensor]:
    """y = factor · (y of the row before) + added, over 2^steps rows, as sums over 1, 2, 4, … of them."""
    for step in range(steps):
        added = [add + factor * rows.shifted(add, 2**step, 0) for add in added]
        factor = factor * rows.shifted(factor, 2**step, 0)
    return added
