"""Joins of a frame with a constant one, or with one that is computed in the same graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.dataframe.columns.column import Column, Rows, guarded, looked_up, ordered, taken
from onward.frontends.dataframe.polars.casts import INT64
from onward.frontends.dataframe.polars.parts import sort_key
from onward.frontends.dataframe.polars.plan import Node
from onward.frontends.dataframe.polars.scope import explicit
from onward.frontends.dataframe.tensors.rows import join, keys
from onward.frontends.dataframe.tensors.rows.join import JoinKey, TableKey
from onward.graph.build import Builder, Tensor

KINDS = ("Left", "Inner", "Semi", "Anti")


@dataclass(frozen=True)
class Side:
    """A frame of a join, and the columns that it is joined on."""

    columns: Mapping[str, Column]
    rows: Rows
    keys: Sequence[Column]


class Join:
    """Finds the rows of two frames that belong together; columns are taken when they are read."""

    def __init__(self, op: Builder, node: Node, left: Side, right: Side) -> None:
        kind, nulls_equal, part, suffix, _, keep_order = node.options
        if kind not in KINDS:
            name = kind[0] if isinstance(kind, tuple) else kind
            raise UnsupportedError(
                f"a join of the kind {str(name).lower()} has no form in a graph: use 'left', 'inner', 'semi' or 'anti'"
            )
        if part is not None:
            raise UnsupportedError("a join with a slice in one step has no form in a graph")
        self.op, self.node, self.left, self.right = op, node, left, right
        if str(keep_order).startswith("right"):
            raise UnsupportedError("a join in the order of the right frame has no form in a graph: sort after it")
        self.kind, self.suffix = str(kind), str(suffix)
        self.nulls_equal = bool(nulls_equal)
        self._outside: Tensor | None = None
        self._there: Tensor | None = None
        self.rows = self._found()

    def _found(self) -> Rows:
        op, constant = self.op, self._constant_keys()
        if self.kind in ("Semi", "Anti"):
            found = self._matches(None)[1] if constant is None else self._known(constant)
            mask = found if self.kind == "Semi" else op.Not(found)
            here = op.Squeeze(op.NonZero(op.Reshape(mask, op.ints([-1]))), op.ints([0]))
            self._here: Tensor | None = here
            return ordered([], here, self.left.rows)[1]
        keep = self.kind == "Left"
        if constant is not None and not _unique(constant, self.nulls_equal):
            here, there, found = join.find_all_rows(self._own_keys(), constant, keep)
            self._here, self._there, self._outside = here, there, op.Not(found) if keep else None
            return ordered([], here, self.left.rows)[1]
        there, found = self._matches(constant)
        if keep:
            self._here, self._there, self._outside = None, there, op.Not(found)
            return self.left.rows
        flat = op.Squeeze(op.NonZero(op.Reshape(found, op.ints([-1]))), op.ints([0]))
        self._here, self._there = flat, op.Gather(there, flat)
        return ordered([], flat, self.left.rows)[1]

    def _own_keys(self) -> list[JoinKey]:
        made = []
        for column in self.left.keys:
            column = explicit(column).expanded()
            made.append(JoinKey(column.value, column.null, nan_is_null=False, nulls_match=self.nulls_equal))
        return made

    def _constant_keys(self) -> list[TableKey] | None:
        """The keys of the right if they are constants."""
        made = []
        for column in self.right.keys:
            tensor = column.value.value.const_value
            if tensor is None:
                return None
            values = tensor.numpy().reshape(-1)
            if column.type.is_text:
                values = np.asarray([_text(item) for item in values], object)
            lost = None
            if column.null is not None:
                known = column.null.value.const_value
                if known is None:
                    return None
                lost = known.numpy().reshape(-1)
            elif column.type.is_time:
                lost = values == np.iinfo(np.int64).min
            made.append(TableKey(values, lost))
        return made

    def _known(self, constant: list[TableKey]) -> Tensor:
        code, _ = join.combined_codes(self._own_keys(), constant)
        return self.op.Unsqueeze(self.op.GreaterOrEqual(code, self.op.index(0)), self.op.ints([1]))

    def _matches(self, constant: list[TableKey] | None) -> tuple[Tensor, Tensor]:
        """The row of the right for each row, and whether there is one."""
        op = self.op
        if constant is not None:
            return join.find_rows(self._own_keys(), constant)
        own, other = [sort_key(key) for key in self.left.keys], [sort_key(key) for key in self.right.keys]
        there, found = join.find_computed_rows(own, other)
        if not self.nulls_equal:
            for key in self.left.keys:
                null = key.missing()
                found = found if null is None else op.And(found, op.Not(null))
        if self.kind in ("Left", "Inner"):
            # Two rows of the right with equal keys would make two rows of one: that is an error here.
            groups = keys.group_rows(other)
            more = op.Less(groups.count, self.right.rows.count)
            index = Column(op.Unsqueeze(there, op.ints([1])), INT64, self.left.rows)
            there = guarded(index, more, "a join with a frame in which keys come twice").value
            there = op.Reshape(there, op.ints([-1]))
        return there, found

    def column(self, name: str) -> Column:
        """A column of the result, by its name there."""
        left, right = self.left.columns, self.right.columns
        if name in left:
            found = left[name]
            return found if self._here is None else taken(found, self._here, self.rows)
        source = name if name in right and name not in left else name.removesuffix(self.suffix)
        assert self._there is not None and source in right
        return self._from_right(right[source])

    def _from_right(self, column: Column) -> Column:
        there = self._there
        assert there is not None
        return looked_up(explicit(column), there, self.rows, self._outside)


def _text(item: object) -> str:
    return item.decode() if isinstance(item, bytes) else str(item)


def _unique(constant: list[TableKey], nulls_equal: bool) -> bool:
    """Whether no two rows of a constant table have the same keys."""
    rows = list(zip(*(_hashable(key) for key in constant), strict=True))
    if not nulls_equal:
        rows = [row for row in rows if None not in row]
    return len(set(rows)) == len(rows)


def _hashable(key: TableKey) -> list[object]:
    lost = np.zeros(len(key.values), bool) if key.null is None else key.null
    return [
        None if gone else "nan" if item != item else item for item, gone in zip(key.values.tolist(), lost, strict=True)
    ]
