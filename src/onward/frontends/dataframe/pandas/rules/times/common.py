"""What the rules for times share: columns of ticks, and what does not fit int64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from onward.formats.dataframe.types import BOOL, FLOAT64, TICKS, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.values import column_of
from onward.frontends.dataframe.tensors.time.clock import Clock, convert
from onward.graph.build import Tensor

OUT_OF_RANGE = "a time or duration is out of the range of its unit"


def ticks_of(call: Call, x: Any, meaning: str = "") -> Column:
    """A column of datetimes or durations with its nulls in a mask."""
    column = column_of(call, x)
    if not column.type.is_time or (meaning and column.type.meaning != meaning):
        raise call.refuse(f"it is for {meaning or 'datetime'}s, not for {column.type}")
    return column.masked()


def number_part(column: Column, part: Callable[[Clock], Tensor]) -> Column:
    """A number of each time: a float, which is NaN where the time is missing."""
    unit = column.type.unit
    return elementwise(lambda p: part(Clock(p, unit)).cast(ir.DataType.DOUBLE), FLOAT64, column)


def flag_part(column: Column, part: Callable[[Clock], Tensor]) -> Column:
    """Whether something holds for each time: false where the time is missing."""
    column = column.masked()
    value = part(Clock(column.value, column.type.unit))
    if column.null is not None:
        value = value.op.And(value, value.op.Not(column.null))
    return Column(value, BOOL, column.rows)


def fitting(column: Column, fits: Tensor | None, problem: str = OUT_OF_RANGE) -> Column:
    """The same column; the model fails where a row that is there does not fit, as pandas does."""
    if fits is None:
        return column
    op = column.op
    return guarded(column, op.Not(fits if column.null is None else op.Or(fits, column.null)), problem)


def moved(column: Column, made: tuple[Tensor, Tensor | None], type: ColumnType | None = None) -> Column:
    """Other ticks of the same rows, and where they fit."""
    return fitting(column.of(made[0], type or column.type), made[1])


def to_unit(call: Call, column: Column, unit: str) -> Column:
    """Ticks in another unit: finer ones must fit, coarser ones are rounded down."""
    if column.type.unit == unit:
        return column
    if unit not in TICKS:
        raise call.refuse(f"times are counted in s, ms, us or ns, not in {unit}")
    column = column.masked()
    return moved(column, convert(column.value, column.type.unit, unit), replace(column.type, unit=unit))


rule("part: to unit")(to_unit)
