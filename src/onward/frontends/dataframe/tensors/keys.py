"""Groups of rows with equal keys: a number for each row, and where each group begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onward.frontends.dataframe.tensors.rows import (
    INT64,
    STRING,
    changes,
    chosen,
    counted,
    either,
    flat,
    length,
    nothing,
    rows_of,
    scattered,
)
from onward.frontends.dataframe.tensors.sorting import Prepared, SortKey, prepared, sort_prepared, sorted_rows
from onward.graph.build import Tensor


@dataclass(frozen=True)
class Groups:
    """Which rows belong together. What is not used of it costs nothing: its nodes go away."""

    codes: Tensor
    """(N,) int64: the group of each row; `count` for rows that are in none."""
    count: Tensor
    """(1,) int64: how many groups there are."""
    first: Tensor
    """(G,) int64: the first row of each group."""
    order: Tensor
    """(M,) int64: the rows that are in a group, those of one group beside each other and in their order."""
    starts: Tensor
    """(M,) bool: where, in that order, a group begins."""
    dropped: Tensor | None
    """(N,) bool: the rows that are in no group, if there can be any."""


def group_rows(keys: Sequence[SortKey], by: Literal["key", "appearance"] = "key", drop_nulls: bool = False) -> Groups:
    """Groups by one or several keys, numbered by key or as they appear.

    Keys that are null, or NaN, are equal to each other. `drop_nulls` leaves out the rows with a null in any key.
    """
    ready = [prepared(key) for key in keys]
    op = ready[0].value.op
    dropped = either(*(key.null for key in ready)) if drop_nulls else None
    rows = None
    if dropped is not None:
        rows = rows_of(op.Not(dropped))
        ready = [Prepared(key.value, None, key.nan, key.descending, key.nulls_last) for key in ready]
    if rows is None and len(keys) == 1 and keys[0].value.dtype == STRING and ready[0].null is None:
        groups = _of_strings(flat(keys[0].value), keys[0].descending)
    else:
        groups = _sorted_groups(ready, rows, dropped)
    return by_appearance(groups) if by == "appearance" else groups


def _of_strings(x: Tensor, descending: bool) -> Groups:
    """One column of strings: their distinct ones are in order."""
    op = x.op
    distinct, first, codes, _ = op.many("Unique", 4, x)
    count = length(distinct)
    if descending:
        codes = count - 1 - codes
        first = op.Gather(first, sorted_rows(op.Neg(op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)))))
    order = sorted_rows(codes)
    return Groups(codes, count, first, order, changes(op.Gather(codes, order)), None)


def _sorted_groups(keys: Sequence[Prepared], rows: Tensor | None, dropped: Tensor | None) -> Groups:
    op = keys[0].value.op
    order = sort_prepared(keys, rows)
    compared = []
    for key in keys:
        apart = either(key.null, key.nan)
        sorted_key = key.at(order)
        compared.append(
            op.Gather(chosen(key.value, op.Not(apart), 0), order) if apart is not None else sorted_key.value
        )
        compared += [mask for mask in (sorted_key.null, sorted_key.nan) if mask is not None]
    starts = changes(*compared)
    first = op.Compress(order, starts, axis=0)
    count = length(first)
    base = op.Expand(count, length(keys[0].value))
    codes = scattered(counted(starts) - 1, order, base)
    return Groups(codes, count, first, order, starts, dropped)


def by_appearance(groups: Groups) -> Groups:
    """The same groups, numbered in the order of their first rows."""
    op = groups.codes.op
    zeros = op.Expand(op.index(0), length(groups.codes))
    ones = op.Expand(op.index(1), groups.count)
    places = op.Gather(op.CumSum(scattered(ones, groups.first, zeros), op.index(0)), groups.first) - 1
    first = scattered(groups.first, places, groups.first)
    numbers = places if groups.dropped is None else op.Concat(places, groups.count, axis=0)
    return Groups(op.Gather(numbers, groups.codes), groups.count, first, groups.order, groups.starts, groups.dropped)


def one_group(x: Tensor) -> Groups:
    """All rows as one group, which is there even if no row is."""
    op = x.op
    n = length(x)
    codes = op.Expand(op.index(0), n)
    order = op.Range(op.index(0), op.squeeze(n, [0]), op.index(1))
    return Groups(codes, op.ints([1]), op.ints([0]), order, op.Less(order, op.index(1)), None)


def spread(groups: Groups, result: Tensor) -> Tensor:
    """The result of its group, (G, 1), for each row: (N, 1). Rows in no group get NaN, 0, False or ""."""
    op = result.op
    if groups.dropped is not None:
        result = op.Concat(result, op.Reshape(nothing(op, result.dtype), op.ints([1, 1])), axis=0)
    return op.Gather(result, groups.codes, axis=0)


def group_numbers(groups: Groups) -> Tensor:
    """The number of its group for each row, -1 for those in none: (N, 1) int64, as pandas's `ngroup`."""
    op = groups.codes.op
    numbers = groups.codes
    if groups.dropped is not None:
        numbers = op.Where(groups.dropped, op.index(-1), numbers)
    return op.unsqueeze(numbers, [1]).cast(INT64)
