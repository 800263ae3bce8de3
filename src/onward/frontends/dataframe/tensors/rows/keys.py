"""Groups of rows with equal keys: a number for each row, and where each group begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from onward.frontends.dataframe.tensors.rows.rows import (
    END,
    FLOATS,
    INT64,
    changes,
    chosen,
    counted,
    either,
    length,
    nothing,
    positions,
    rows_of,
    scattered,
    whole,
)
from onward.frontends.dataframe.tensors.rows.sorting import Prepared, SortKey, prepared, sort_prepared, sorted_rows
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
    may_be_empty: bool = False
    """Whether there are groups that no row is in; `first` means nothing then."""


def group_rows(
    keys: Sequence[SortKey],
    by: Literal["key", "appearance"] = "key",
    drop_nulls: bool = False,
    in_order: bool = False,
) -> Groups:
    """Groups by one or several keys, numbered by key or as they appear.

    Keys that are null, or NaN, are equal to each other. `drop_nulls` leaves out the rows with a null in any key.
    `in_order` is faster where `order` or `starts` are used (by running values), and slower elsewhere.
    """
    ready = [prepared(key) for key in keys]
    op = ready[0].value.op
    dropped = either(*(key.null for key in ready)) if drop_nulls else None
    rows = None
    if dropped is not None:
        rows = rows_of(op.Not(dropped))
        ready = [Prepared(key.value, None, key.nan, key.descending, key.nulls_last) for key in ready]
    if in_order or (len(ready) == 1 and ready[0].value.dtype in FLOATS):
        groups = _sorted_groups(ready, rows, dropped)
    else:
        groups = _numbered_groups(ready, rows, dropped)
    return by_appearance(groups) if by == "appearance" else groups


def known_groups(codes: Tensor, count: int) -> Groups:
    """As many groups as are told, whether a row is in them or not, of the number of its group for each row (N,).

    A row with a negative number is in none.
    """
    op = codes.op
    dropped = codes < 0
    rows = rows_of(op.Not(dropped))
    own = op.Gather(codes, rows)
    order = sorted_rows(own)
    starts = changes(op.Gather(own, order))
    numbers = op.where(dropped, count, codes)
    return Groups(numbers, op.ints([count]), rows, op.Gather(rows, order), starts, dropped, may_be_empty=True)


def _numbered_groups(keys: Sequence[Prepared], rows: Tensor | None, dropped: Tensor | None) -> Groups:
    """Groups from numbers for each key, joined two by two."""
    op = keys[0].value.op
    own = [key if rows is None else key.at(rows) for key in keys]
    codes, count = _codes(own[0])
    for key in own[1:]:
        others, many = _codes(key)
        codes, count = dense(codes * many + others)
    here = positions(codes)
    first = scattered(here, codes, op.Expand(op.index(END), count), "min")
    order = sorted_rows(codes)
    starts = changes(op.Gather(codes, order))
    if rows is not None:
        assert dropped is not None
        codes = scattered(codes, rows, op.Expand(count, length(dropped)))
        first, order = op.Gather(rows, first), op.Gather(rows, order)
    return Groups(codes, count, first, order, starts, dropped)


def _codes(key: Prepared) -> tuple[Tensor, Tensor]:
    """A number for each of the different values of a key, in their order: (N,) int64; and how many there are."""
    op = key.value.op
    if key.value.dtype in FLOATS:
        groups = _sorted_groups([key], None, None)
        return groups.codes, groups.count
    codes, count = (key.value, key.distinct) if key.distinct is not None else dense(key.value.cast(INT64))
    if key.descending:
        codes = count - 1 - codes
    if key.null is None:
        return codes, count
    last = key.null if key.nulls_last else op.Not(key.null)
    return dense(op.Where(last, count, op.index(0)) + op.Where(key.null, op.index(0), codes))


def dense(x: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each number of a (N,) int64 among the different ones, (N,), and how many there are, (1,).

    Numbers within a narrow span are counted, which is several times faster than sorting them.
    """
    op = x.op
    low, high = whole(x, "min", END), whole(x, "max", -END - 1)
    span = high - low
    narrow = op.squeeze(op.And(span >= 0, op.Less(span, length(x) * 4 + 1024)), [0])
    branches = []
    for counting in (True, False):
        graph = ir.Graph([], [], nodes=[], name="counted" if counting else "sorted")
        with op.inside(graph):
            if counting:
                from_low = x - low
                there = scattered(op.Expand(op.index(1), length(x)), from_low, op.Expand(op.index(0), span + 1))
                numbers = op.CumSum(there, op.index(0))
                made = [
                    op.Gather(numbers, from_low) - 1,
                    op.ReduceMax(op.Concat(numbers, op.ints([0]), axis=0), keepdims=1),
                ]
            else:
                values, order = op.many("TopK", 2, x, length(x), axis=0, largest=0, sorted=1)
                number = counted(changes(values))
                made = [
                    scattered(number - 1, order, number),
                    op.ReduceMax(op.Concat(number, op.ints([0]), axis=0), keepdims=1),
                ]
            graph.outputs.extend(op.Identity(tensor).value for tensor in made)
        branches.append(graph)
    codes, count = op.many("If", 2, narrow, then_branch=branches[0], else_branch=branches[1])
    return op.Reshape(codes, op.ints([-1])), op.Reshape(count, op.ints([1]))


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
