"""The order of rows by one or several columns, stable, with nulls and NaN where they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.frontends.dataframe.tensors.rows.rows import (
    FLOATS,
    either,
    flat,
    length,
    positions,
    rows_of,
    shown,
    sortable,
)
from onward.graph.build import Tensor


@dataclass(frozen=True)
class SortKey:
    """A column to sort by. NaN that is no null is the largest number, as in Polars."""

    value: Tensor
    null: Tensor | None = None
    descending: bool = False
    nulls_last: bool = True
    nan_is_null: bool = False


@dataclass(frozen=True)
class Prepared:
    """A key in a dtype that can be sorted, (N,), with the rows that stand apart: null, NaN."""

    value: Tensor
    null: Tensor | None
    nan: Tensor | None
    descending: bool
    nulls_last: bool
    distinct: Tensor | None = None
    """How many different values there are, (1,), if they are their numbers from 0."""

    def at(self, rows: Tensor) -> Prepared:
        taken = [None if x is None else x.op.Gather(x, rows) for x in (self.value, self.null, self.nan)]
        assert taken[0] is not None
        return Prepared(taken[0], taken[1], taken[2], self.descending, self.nulls_last)


def prepared(key: SortKey) -> Prepared:
    x = flat(key.value)
    op = x.op
    null = None if key.null is None else shown(key.null, key.value)
    nan = op.IsNaN(x) if x.dtype in FLOATS else None
    if key.nan_is_null:
        null, nan = either(null, nan), None
    elif nan is not None and null is not None:
        nan = op.And(nan, op.Not(null))
    ready = sortable(x)
    return Prepared(ready.value, null, nan, key.descending, key.nulls_last, ready.distinct)


def argsort(key: Prepared) -> Tensor:
    """The rows in the order of one key: (N,) int64."""
    op = key.value.op
    apart = [mask for mask in (key.null, key.nan) if mask is not None]
    if not apart:
        return sorted_rows(key.value, key.descending)
    rows = rows_of(op.Not(either(*apart)))
    parts = [op.Gather(rows, sorted_rows(op.Gather(key.value, rows), key.descending))]
    if key.nan is not None:
        parts.insert(0 if key.descending else 1, rows_of(key.nan))
    if key.null is not None:
        parts.insert(len(parts) if key.nulls_last else 0, rows_of(key.null))
    return op.Concat(*parts, axis=0)


def sorted_rows(x: Tensor, descending: bool = False) -> Tensor:
    """The rows of a (N,) tensor of numbers without NaN in their order; equal ones stay as they are."""
    return x.op.many("TopK", 2, x, length(x), axis=0, largest=int(descending), sorted=1)[1]


def sort_prepared(keys: Sequence[Prepared], rows: Tensor | None = None) -> Tensor:
    """The rows, or those of `rows` alone, by all keys: the last one first, each sort keeping what the others did."""
    order = rows
    for key in reversed(keys):
        op = key.value.op
        order = argsort(key) if order is None else op.Gather(order, argsort(key.at(order)))
    assert order is not None
    return order


def sort_order(keys: Sequence[SortKey]) -> Tensor:
    """The rows in the order of the keys, the first one weighing most: (N,) int64, to gather columns with."""
    return sort_prepared([prepared(key) for key in keys])


def take(x: Tensor, rows: Tensor) -> Tensor:
    """The rows `rows`, (M,), of a column: (M, 1)."""
    return x.op.Gather(x, rows, axis=0)


def reversed_rows(x: Tensor) -> Tensor:
    """The rows from the last to the first: (N,) int64."""
    return length(x) - 1 - positions(x)
