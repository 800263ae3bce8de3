"""Rows below rows: pandas.concat of frames and columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows, full, null_of, positions_of
from onward.frontends.dataframe.pandas.dispatch import Call
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Series, joined
from onward.frontends.dataframe.pandas.rules.join import constant_column
from onward.frontends.dataframe.pandas.values import to_type
from onward.graph.build import Tensor
from onward.hub.wording import quote


def below(call: Call, parts: list[Any], ignore_index: bool, join: str) -> Any:
    """The rows of frames, or of columns, one below the other; frames of the function's own are among them."""
    if not parts or len({isinstance(part, Series) or not hasattr(part, "columns") for part in parts}) > 1:
        raise call.refuse("frames are put below frames, and columns below columns")
    frames = [_as_frame(call, part) for part in parts]
    real = call.real
    rows = _rows(call, frames, ignore_index)
    if not hasattr(real, "columns"):
        if any(len(frame.columns_by_name) != 1 for frame in frames):
            raise call.refuse("frames are put below frames, and columns below columns")
        columns = [frame.column(next(iter(frame))) for frame in frames]
        return joined(call.trace, _stacked(call, columns, type_of(real), rows), real)
    if join not in ("outer", "inner"):
        raise call.refuse(f"join={join!r} is not known")
    made = {name: Deferred(partial(_column, call, name, frames, real[name], rows)) for name in real.columns}
    return Frame(call.trace, real, made, rows)


def _column(call: Call, name: Any, frames: list[Frame], real: Any, rows: Rows) -> Column:
    types = [frame.column(name).type if name in frame else None for frame in frames]
    type = _common(call, name, types, type_of(real))
    absent = null_of(call.op, type)
    columns = [frame.column(name) if name in frame else replace(absent, rows=frame.rows) for frame in frames]
    return _stacked(call, columns, type, rows)


def _as_frame(call: Call, part: Any) -> Frame:
    if isinstance(part, Frame):
        return part
    if isinstance(part, Series):
        name = "value" if part.name is None else part.name
        return Frame(part.trace, part.real.to_frame(name), {name: Deferred(part.column)}, part.column.rows)
    table = part if hasattr(part, "columns") else part.to_frame("value" if part.name is None else part.name)
    rows = Rows(call.op.names.value("table"), lambda: call.op.ints([len(table)]))
    columns = {name: Deferred(constant_column(call, table[name], rows)) for name in table.columns}
    return Frame(call.trace, table, columns, rows)


def _common(call: Call, name: Any, types: list[ColumnType | None], found: ColumnType) -> ColumnType:
    """The type that pandas gives for the sample, if it gives it for all data."""
    if any(type is not None and (type.categories is None) != (found.categories is None) for type in types):
        raise call.refuse(f"the categories of {quote(str(name))} are not the same everywhere: use astype first")
    if None in types and (found.is_bool or found.is_int) and not found.masked:
        raise call.refuse(f"{quote(str(name))} is not in every frame, and no {found} says that it is missing")
    return found


def _stacked(call: Call, columns: list[Column], type: ColumnType, rows: Rows) -> Column:
    op = call.op
    parts = [to_type(call, column, replace(type, masked=column.type.masked)).masked() for column in columns]
    if any(part.null is not None for part in parts):
        nothing = op.constant(np.asarray([[False]]))
        parts = [part if part.null is not None else replace(part, null=nothing) for part in parts]
    parts = [part.expanded() for part in parts]
    value = full(op.Concat(*[part.value for part in parts], axis=0), rows)
    if parts[0].null is None:
        return Column(value, type, rows)
    return Column(value, type, rows, full(op.Concat(*[part.null for part in parts], axis=0), rows))


def _rows(call: Call, frames: list[Frame], ignore_index: bool) -> Rows:
    """The rows of all. Those that were chosen from the same rows keep their labels, which may stand twice then."""
    op = call.op
    name = op.names.value("rows")
    if ignore_index:
        return Rows(name, lambda: op.total([frame.rows.count for frame in frames]))
    chosen = [_places(call, frame.rows) for frame in frames]
    root = chosen[0][0]
    if any(other is not root or other in call.trace.labels for other, _ in chosen):
        raise call.refuse("rows of different frames have labels of their own: use ignore_index=True")
    positions = op.Concat(*[places for _, places in chosen], axis=0)
    return Rows(name, lambda: op.Shape(positions), root, positions, repeats=True)


def _places(call: Call, rows: Rows) -> tuple[Rows, Tensor]:
    """The rows that others were chosen from, all the way, and where they stand there."""
    op = call.op
    if rows.parent is None or rows.positions is None or rows in call.trace.labels:
        return rows, op.Reshape(positions_of(op, rows), op.ints([-1]))
    root, above = _places(call, rows.parent)
    places = op.Reshape(rows.positions, op.ints([-1]))
    return root, places if rows.parent is root else op.Gather(above, places)
