"""The steps of a plan on tables: each gives the columns of the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.formats.dataframe.polars import column_type
from onward.frontends.dataframe.columns.column import (
    ONE,
    Column,
    Rows,
    full,
    ordered,
    positions_of,
    taken,
    truth,
)
from onward.frontends.dataframe.columns.table import Table
from onward.frontends.dataframe.polars.compare import BOOLEAN
from onward.frontends.dataframe.polars.joins import Join, Side
from onward.frontends.dataframe.polars.leaves import constant_column
from onward.frontends.dataframe.polars.parts import solid, sort_key
from onward.frontends.dataframe.polars.plan import Expr, Node
from onward.frontends.dataframe.polars.scope import Grouping, Scope, explicit, of_rows
from onward.frontends.dataframe.polars.texts import StructColumn
from onward.frontends.dataframe.tensors.rows import keys, order
from onward.frontends.dataframe.tensors.rows.sorting import sort_order
from onward.graph.build import Builder, Tensor
from onward.hub.wording import quote

HEIGHT = "__POLARS_INTERNAL_HEIGHT_COLUMN"
"""A column of empty structs that Polars adds to keep the number of rows; nothing reads it."""


@dataclass(frozen=True)
class Frame:
    """Columns of the same rows. `ONE` are the rows of a frame of a single row, such as of totals."""

    columns: Mapping[str, Column]
    rows: Rows


class Steps:
    """Works out plans, each step once."""

    def __init__(self, table: Table, *, nan_is_null: bool = False) -> None:
        self.table = table
        self.nan_is_null = nan_is_null
        self._known: dict[int, Frame] = {}

    @property
    def op(self) -> Builder:
        return self.table.op

    def __call__(self, node: Node) -> Frame:
        if id(node) not in self._known:
            self._known[id(node)] = _STEPS[node.kind](self, node)
        return self._known[id(node)]

    def scope(self, frame: Frame, grouping: Grouping | None = None) -> Scope:
        return Scope(self.op, frame.columns, frame.rows, self._reference, grouping, self.nan_is_null)

    def _reference(self, node: Node) -> Column:
        """The one column of another plan."""
        (column,) = self(node).columns.values()
        return column


class Lazily(Mapping[str, Column]):
    """Columns that are made when they are first read, so that what is not read is not there."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Column]) -> None:
        self.names = [name for name in names if name != HEIGHT]
        self._make = make
        self._made: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _scan(steps: Steps, node: Node) -> Frame:
    return Frame(Lazily(node.schema, steps.table.column), steps.table.rows)


def _constant(steps: Steps, node: Node) -> Frame:
    frame = node.table
    assert frame is not None
    height = frame.height
    rows = Rows(steps.op.names.value("table"), lambda: steps.op.ints([height]))
    return Frame({name: constant_column(steps.op, frame.get_column(name), rows) for name in node.schema}, rows)


def _select(steps: Steps, node: Node) -> Frame:
    below = steps(node.inputs[0])
    kept = {name: expr.options[0] for name, expr in node.exprs if expr.kind == "column"}
    if not kept:
        return Frame(*_side_by_side(steps.scope(below), node.exprs, None))
    computed = tuple((name, expr) for name, expr in node.exprs if name not in kept)
    made, _ = _side_by_side(steps.scope(below), computed, below.rows)
    # What is only passed on is not read, so that a column without a form in a graph may be left out later.
    return Frame(
        Lazily(node.schema, lambda name: below.columns[kept[name]] if name in kept else made[name]), below.rows
    )


def _hstack(steps: Steps, node: Node) -> Frame:
    below = steps(node.inputs[0])
    scope = steps.scope(below)
    made, _ = _side_by_side(scope, node.exprs, below.rows)
    return Frame(Lazily(node.schema, lambda name: made[name] if name in made else below.columns[name]), below.rows)


def _side_by_side(
    scope: Scope, exprs: tuple[tuple[str, Expr], ...], rows: Rows | None
) -> tuple[dict[str, Column], Rows]:
    """Columns that stand in one frame. A single value stands at each row, unless all are single ones."""
    found: dict[str, Column] = {}
    for name, expr in exprs:
        if name == HEIGHT:
            continue
        found[name] = solid(scope, scope(expr), name)
    wide = [column.rows for column in found.values() if not column.is_scalar]
    target = rows if rows is not None else wide[0] if wide else ONE
    for name, column in found.items():
        if not column.is_scalar and column.rows is not target:
            raise UnsupportedError(
                f"the column {quote(name)} has other rows than those beside it: one of them was filtered, sorted or "
                "cut by itself. Do it with the frame"
            )
    return {name: of_rows(column, target) for name, column in found.items()}, target


def _own_rows(steps: Steps, frame: Frame) -> Frame:
    """The same; a frame of a single row gets rows that can be filtered and sorted."""
    if frame.rows is not ONE:
        return frame
    rows = Rows(steps.op.names.value("row"), lambda: steps.op.ints([1]))
    return Frame(Lazily(frame.columns, lambda name: of_rows(frame.columns[name], rows)), rows)


def _at(steps: Steps, frame: Frame, positions: Tensor) -> Frame:
    """The rows at positions."""
    _, rows = ordered([], positions, frame.rows)
    return Frame(Lazily(frame.columns, lambda name: taken(frame.columns[name], positions, rows)), rows)


def _true_rows(steps: Steps, mask: Tensor, rows: Rows) -> Tensor:
    """The positions at which a mask holds."""
    op = steps.op
    flat = op.Reshape(Column(mask, BOOLEAN, rows).expanded().value, op.ints([-1]))
    return op.Squeeze(op.NonZero(flat), op.ints([0]))


def _filter(steps: Steps, node: Node) -> Frame:
    below = _own_rows(steps, steps(node.inputs[0]))
    condition = steps.scope(below)(node.exprs[0][1])
    if condition.rows is not below.rows and not condition.is_scalar:
        raise UnsupportedError("a filter by a condition of other rows has no form in a graph: compute it in the frame")
    return _at(steps, below, _true_rows(steps, truth(condition), below.rows))


def _slice(steps: Steps, node: Node) -> Frame:
    offset, length = node.options
    below = _own_rows(steps, steps(node.inputs[0]))
    return _at(steps, below, sliced(steps.op, below.rows, int(offset), length))


def sliced(op: Builder, rows: Rows, offset: int, length: int | None) -> Tensor:
    """The positions of some rows one after the other, counted from the end if the offset is negative."""
    count, zero = rows.count, op.ints([0])
    start = op.ints([offset]) if offset >= 0 else op.Add(count, op.ints([offset]))
    end = count if length is None else op.Add(start, op.ints([int(length)]))
    low = op.Where(op.Less(start, zero), zero, start)
    low = op.Where(op.Less(count, low), count, low)
    high = op.Where(op.Less(count, end), count, end)
    high = op.Where(op.Less(high, low), low, high)
    return op.Range(op.Squeeze(low), op.Squeeze(high), op.index(1))


def _sort(steps: Steps, node: Node) -> Frame:
    _, nulls_last, descending = node.options
    below = _own_rows(steps, steps(node.inputs[0]))
    scope = steps.scope(below)
    found = [of_rows(scope(expr), below.rows) for _, expr in node.exprs]
    by = [
        sort_key(column, descending=bool(down), nulls_last=bool(last))
        for column, down, last in zip(found, descending, nulls_last, strict=True)
    ]
    return _at(steps, below, sort_order(by))


def _distinct(steps: Steps, node: Node) -> Frame:
    keep, subset, _, part = node.options
    if part is not None:
        raise UnsupportedError("a slice of distinct rows in one step has no form in a graph")
    below = _own_rows(steps, steps(node.inputs[0]))
    found = [sort_key(below.columns[name]) for name in subset or below.columns]
    how: dict[str, order.Keep] = {"first": "first", "any": "first", "last": "last", "none": "none"}
    again = order.duplicated(found, how[str(keep).lower()])
    return _at(steps, below, _true_rows(steps, steps.op.Not(again), below.rows))


def _group_by(steps: Steps, node: Node) -> Frame:
    count, maintain_order = node.options
    below = _own_rows(steps, steps(node.inputs[0]))
    scope = steps.scope(below)
    found = [(name, of_rows(scope(expr), below.rows).expanded()) for name, expr in node.exprs[:count]]
    by = "appearance" if maintain_order or steps.nan_is_null else "key"
    grouping = grouping_by(steps.op, [column for _, column in found], below.rows, by)
    inner = steps.scope(below, grouping)
    columns = {name: taken(column, grouping.groups.first, grouping.rows) for name, column in found}
    for name, expr in node.exprs[count:]:
        columns[name] = _of_group(inner(expr), grouping, name)
    return Frame(columns, grouping.rows)


def grouping_by(op: Builder, columns: list[Column], rows: Rows, by: Any = "key") -> Grouping:
    """The groups of equal keys; null is a key."""
    groups = keys.group_rows([sort_key(column) for column in columns], by)
    each = Rows(op.names.value("groups"), lambda: groups.count)
    return Grouping(groups, each, rows)


def _of_group(column: Column, grouping: Grouping, name: str) -> Column:
    if column.is_scalar:
        return of_rows(column, grouping.rows)
    if column.rows is not grouping.rows:
        raise UnsupportedError(
            f"the column {quote(name)} has lists, one for each group, which have no form in a graph: add an aggregate "
            "such as `.first()` or `.sum()`"
        )
    return column


def _union(steps: Steps, node: Node) -> Frame:
    """Frames one below the other."""
    op = steps.op
    frames = [_own_rows(steps, steps(each)) for each in node.inputs]
    rows = Rows(op.names.value("rows"), lambda: _total(op, [frame.rows.count for frame in frames]))

    def stacked(name: str) -> Column:
        parts = [of_rows(frame.columns[name], frame.rows) for frame in frames]
        parts = [explicit(part).expanded() for part in parts]
        type = column_type(node.schema[name], f"the column {quote(name)}")
        value = full(op.Concat(*(part.value for part in parts), axis=0), rows)
        if all(part.null is None for part in parts):
            return Column(value, type, rows)
        no = op.constant(np.asarray([[False]]))
        masks = [
            op.Expand(no, op.Concat(part.rows.count, op.ints([1]), axis=0)) if part.null is None else part.null
            for part in parts
        ]
        return Column(value, type, rows, full(op.Concat(*masks, axis=0), rows))

    return Frame(Lazily(node.schema, stacked), rows)


def _total(op: Builder, counts: list[Tensor]) -> Tensor:
    made = counts[0]
    for count in counts[1:]:
        made = op.Add(made, count)
    return made


def _hconcat(steps: Steps, node: Node) -> Frame:
    frames = [steps(each) for each in node.inputs]
    if any(frame.rows is not frames[0].rows for frame in frames):
        raise UnsupportedError("frames of different rows side by side have no form in a graph: join them")
    at = {name: frame for frame in frames for name in frame.columns}
    return Frame(Lazily(at, lambda name: at[name].columns[name]), frames[0].rows)


def _map(steps: Steps, node: Node) -> Frame:
    name, *options = node.options
    below = _own_rows(steps, steps(node.inputs[0]))
    if name == "row_index":
        column, offset = str(options[0]), int(options[1] or 0)
        rows = below.rows
        type = column_type(node.schema[column])
        numbers = positions_of(steps.op, rows)
        value = steps.op.Add(numbers, steps.op.like(offset, numbers)) if offset else numbers
        made = Column(value.cast(type.dtype), type, rows)
        return Frame(Lazily(node.schema, lambda each: made if each == column else below.columns[each]), rows)
    if name == "unnest":
        structs = {each: below.columns[each] for each in options[0]}
        fields: dict[str, Column] = {}
        for struct in structs.values():
            if not isinstance(struct, StructColumn):
                raise UnsupportedError("structs have no form in a graph: name the columns one by one")
            fields |= {key: of_rows(one, below.rows) for key, one in struct.fields.items()}
        return Frame(
            Lazily(node.schema, lambda each: fields[each] if each in fields else below.columns[each]), below.rows
        )
    if name == "hint_sorted":
        return below
    if name == "rename":
        old, new = options[0], options[1]
        names = dict(zip(old, new, strict=True))
        back = {names.get(each, each): each for each in below.columns}
        return Frame(Lazily(back, lambda each: below.columns[back[each]]), below.rows)
    instead = _INSTEAD.get(str(name), "write it with expressions")
    raise UnsupportedError(f"the step `{name}` on a frame of Polars has no form in a graph: {instead}")


_INSTEAD = {
    "unpivot": "make the columns one by one, as the number of rows changes",
    "explode": "keep lists out of frames; `str.split(...).list.get(n)` gives one part",
    "unnest": "name the fields one by one",
}


def _projection(steps: Steps, node: Node) -> Frame:
    below = steps(node.inputs[0])
    return Frame(Lazily(node.schema, lambda name: below.columns[name]), below.rows)


def _join(steps: Steps, node: Node) -> Frame:
    left, right = (_own_rows(steps, steps(each)) for each in node.inputs)
    half = len(node.exprs) // 2
    own = [of_rows(steps.scope(left)(expr), left.rows) for _, expr in node.exprs[:half]]
    other = [of_rows(steps.scope(right)(expr), right.rows) for _, expr in node.exprs[half:]]
    found = Join(steps.op, node, Side(left.columns, left.rows, own), Side(right.columns, right.rows, other))
    return Frame(Lazily(node.schema, found.column), found.rows)


_STEPS: dict[str, Callable[[Steps, Node], Frame]] = {
    "scan": _scan,
    "constant": _constant,
    "Select": _select,
    "Reduce": _select,
    "HStack": _hstack,
    "Filter": _filter,
    "Slice": _slice,
    "Sort": _sort,
    "Distinct": _distinct,
    "GroupBy": _group_by,
    "Union": _union,
    "HConcat": _hconcat,
    "MapFunction": _map,
    "SimpleProjection": _projection,
    "Cache": lambda steps, node: steps(node.inputs[0]),
    "Join": _join,
}
