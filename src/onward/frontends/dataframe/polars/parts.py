"""What an aggregate is taken of: the values of a column, which of them count, and the groups that they are in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import ONE, Column, Rows, both, filtered
from onward.frontends.dataframe.polars.compare import category_numbers
from onward.frontends.dataframe.polars.scope import Scope, explicit
from onward.frontends.dataframe.tensors.rows import groups as grouped
from onward.frontends.dataframe.tensors.rows import stats
from onward.frontends.dataframe.tensors.rows.keys import Groups
from onward.frontends.dataframe.tensors.rows.sorting import SortKey
from onward.graph.build import Tensor


class MaskedRows(Rows):
    """Some of other rows: columns of them still have an element in each of those; `mask` tells the ones meant."""

    def __init__(self, base: Rows, mask: Tensor) -> None:
        super().__init__(base.name, lambda: base.count)
        self.base = base
        self.mask = mask


def base_rows(rows: Rows) -> Rows:
    return rows.base if isinstance(rows, MaskedRows) else rows


def masked_rows(scope: Scope, rows: Rows, mask: Tensor, key: Any) -> Rows:
    """The rows where a mask holds; the same ones for the same key."""
    if isinstance(rows, MaskedRows):
        inner = rows
        mask_of_both = both(inner.mask, mask)
        assert mask_of_both is not None
        return scope.shared(("rows", key, id(rows)), lambda: MaskedRows(inner.base, mask_of_both))  # type: ignore[no-any-return]
    return scope.shared(("rows", key, id(rows)), lambda: MaskedRows(rows, mask))  # type: ignore[no-any-return]


def solid(scope: Scope, column: Column, what: str) -> Column:
    """With an element for each of its rows alone."""
    rows = column.rows
    if not isinstance(rows, MaskedRows):
        return column
    if scope.grouping is not None:
        raise UnsupportedError(f"`{what}` of filtered rows of a group has no form in a graph: filter the frame before")
    base = replace(column, rows=rows.base).expanded()
    made: Column = scope.shared(("solid", id(column)), lambda: _compressed(scope, base, rows))
    return made


def _compressed(scope: Scope, column: Column, rows: MaskedRows) -> Column:
    (first,), kept = filtered([column], rows.mask, rows.base)
    known: Rows = scope.shared(("kept", id(rows)), lambda: kept)
    return replace(first, rows=known)


@dataclass(frozen=True)
class Part:
    """`value` is (N, 1); `present` are the rows that are meant, `known` those that are not null besides."""

    value: Tensor
    present: Tensor | None
    known: Tensor | None
    groups: Groups | None
    rows: Rows

    def result(self, value: Tensor, type: ColumnType, null: Tensor | None = None) -> Column:
        """One value for each group, or one of all."""
        return Column(value.cast(type.dtype), type, self.rows).with_null(null)

    def count(self, valid: Tensor | None) -> Tensor:
        """How many rows a mask has, in each group."""
        if self.groups is None:
            return stats.count(self.value, valid)
        return grouped.counts(self.groups, self.value, valid)

    def none(self, valid: Tensor | None) -> Tensor:
        """Where a mask has no row."""
        number = self.count(valid)
        return number.op.Equal(number, number.op.like(0, number))

    def apply(
        self, whole: Callable[..., Tensor], by_group: Callable[..., Tensor], valid: Tensor | None, **options: Any
    ) -> Tensor:
        if self.groups is None:
            return whole(self.value, valid=valid, **options)
        return by_group(self.groups, self.value, valid=valid, **options)

    def with_value(self, value: Tensor) -> Part:
        return replace(self, value=value)


def part_of(scope: Scope, column: Column) -> Part:
    """What an aggregate of a column is taken of."""
    grouping = scope.grouping
    if grouping is not None and column.rows is grouping.rows:
        raise UnsupportedError("an aggregate of an aggregate of the same groups has no form in a graph")
    column = explicit(column).expanded()
    null = column.null
    present = column.rows.mask if isinstance(column.rows, MaskedRows) else None
    known = both(present, None if null is None else column.op.Not(null))
    if grouping is None or column.is_scalar:
        return Part(column.value, present, known, None, ONE)
    return Part(column.value, present, known, grouping.within(base_rows(column.rows)), grouping.rows)


def within(scope: Scope, column: Column) -> Groups | None:
    """The groups that a column of rows is in."""
    if scope.grouping is None or column.is_scalar:
        return None
    found: Groups = scope.grouping.within(base_rows(column.rows))
    return found


def sort_key(column: Column, *, descending: bool = False, nulls_last: bool = False) -> SortKey:
    """What a column is sorted or grouped by."""
    if column.type.categories is not None:
        column = category_numbers(column)
    column = explicit(column).expanded()
    return SortKey(column.value, column.null, descending=descending, nulls_last=nulls_last)
