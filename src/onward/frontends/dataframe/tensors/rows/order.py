"""What follows from the order or the equality of rows: ranks, the largest, duplicates, distinct values, the mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from onward.frontends.dataframe.tensors.rows.groups import reduced, sizes
from onward.frontends.dataframe.tensors.rows.keys import Groups, group_rows, spread
from onward.frontends.dataframe.tensors.rows.rows import (
    END,
    FLOAT64,
    changes,
    column,
    counted,
    cut,
    flat,
    length,
    positions,
    rows_of,
    scattered,
)
from onward.frontends.dataframe.tensors.rows.sorting import SortKey, sorted_rows
from onward.graph.build import Tensor

RankMethod = Literal["average", "min", "max", "first", "dense"]
Keep = Literal["first", "last", "none"]


def rank(
    key: SortKey,
    method: RankMethod = "average",
    percent: bool = False,
    rank_nulls: bool = False,
    within: Groups | None = None,
) -> Tensor:
    """The rank of each row from 1, float64 (N, 1); equal values share one as `method` says.

    Nulls get NaN, or are ranked as equal values at their end (`rank_nulls`). `percent` divides by how many are ranked,
    or by the largest rank for "dense". `within` ranks the rows of each group among themselves; rows in none get NaN.
    """
    op = key.value.op
    groups = group_rows([key], drop_nulls=not rank_nulls)
    if within is None:
        order, new = groups.order, groups.starts
        begins = op.Less(positions(order), op.index(1))
    else:
        order = op.Gather(groups.order, sorted_rows(op.Gather(within.codes, groups.order)))
        group = op.Gather(within.codes, order)
        new, begins = changes(group, op.Gather(groups.codes, order)), changes(group)
    tie, run = counted(new) - 1, counted(begins) - 1
    first = op.Gather(rows_of(begins), run)
    if method == "first":
        number = positions(order) + 1 - first
    elif method == "dense":
        number = tie + 1 - op.Gather(tie, first)
    else:
        begin, end = _bounds(new, tie, order)
        number = {"min": begin + 1, "max": end, "average": begin + end + 1}[method] - first
        number = number - first if method == "average" else number
    ranked = number.cast(FLOAT64) * (0.5 if method == "average" else 1.0)
    if percent:
        end = _bounds(begins, run, order)[1]
        most = op.Gather(tie, end - 1) + 1 - op.Gather(tie, first) if method == "dense" else end - first
        ranked = ranked / most.cast(FLOAT64)
    blank = op.Expand(op.constant(np.asarray(np.nan)), length(key.value))
    result = scattered(ranked, order, blank)
    if within is not None and within.dropped is not None:
        result = op.Where(within.dropped, op.like(np.nan, result), result)
    return column(result)


def _bounds(begins: Tensor, run: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """For each place, where its run begins and where the next one does, given where runs begin."""
    op = begins.op
    starts = rows_of(begins)
    ends = op.Concat(cut(starts, 1, END), length(order), axis=0)
    return op.Gather(starts, run), op.Gather(ends, run)


def duplicated(keys: Sequence[SortKey], keep: Keep = "first") -> Tensor:
    """Whether another row with the same keys is kept instead of this one: (N, 1) bool."""
    op = keys[0].value.op
    groups = group_rows(keys)
    if keep == "none":
        return spread(groups, sizes(groups)) > 1
    rows = groups.first if keep == "first" else reduced(groups, positions(groups.codes), "max", -1)
    more = op.Expand(op.constant(np.asarray(True)), length(groups.codes))
    return column(scattered(op.Expand(op.constant(np.asarray(False)), length(rows)), rows, more))


def distinct_rows(keys: Sequence[SortKey], by: Literal["key", "appearance"] = "appearance") -> Tensor:
    """The first row of each of the different keys: (G,) int64."""
    return group_rows(keys, by).first


def all_distinct(keys: Sequence[SortKey]) -> Tensor:
    """Whether no two rows have the same keys: (1, 1) bool."""
    op = keys[0].value.op
    return op.unsqueeze(op.Equal(group_rows(keys).count, length(keys[0].value)), [1])


def value_counts(
    keys: Sequence[SortKey], drop_nulls: bool = True, by: Literal["count", "key", "appearance"] = "count"
) -> tuple[Tensor, Tensor]:
    """The first row of each of the different keys, (G,), and how often they come, (G, 1) int64.

    The most frequent come first, and equally frequent ones as they appear, unless they are wanted by key or appearance.
    """
    groups = group_rows(keys, "key" if by == "key" else "appearance", drop_nulls)
    count = sizes(groups)
    if by != "count":
        return groups.first, count
    op = count.op
    order = sorted_rows(flat(count), descending=True)
    return op.Gather(groups.first, order), op.Gather(count, order)


def mode_rows(key: SortKey, drop_nulls: bool = True) -> Tensor:
    """The first rows of the most frequent values, by value: (M,) int64; none if no row counts."""
    groups = group_rows([key], drop_nulls=drop_nulls)
    op = groups.codes.op
    count = flat(sizes(groups))
    return op.Compress(groups.first, op.Equal(count, op.ReduceMax(count, keepdims=1)), axis=0)
