"""Casts of Polars: strict ones fail where a value does not fit, others give null there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded, null_of
from onward.frontends.dataframe.polars.arithmetic import in_ticks, in_unit, limited, ticks_per_day, to_days, whole
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, constant_of, is_constant, rule
from onward.frontends.dataframe.tensors import integers
from onward.frontends.dataframe.tensors.text import text_compare, text_numbers
from onward.frontends.dataframe.tensors.time import time_format
from onward.frontends.dataframe.tensors.time.calendar import Civil
from onward.graph.build import Tensor

STRICT, WRAPPING = 0, 2
"""How casts are numbered in plans; 1 is one that is not strict."""
INT64 = ColumnType(ir.DataType.INT64, masked=True)


@rule("cast")
def cast(scope: Scope, expr: Expr) -> Column:
    (option,) = expr.options
    type = scope.type(expr)
    if expr.args[0].dtype.base_type() == pl.Null:
        return null_of(scope.op, type)
    column = scope(expr.args[0])
    if option == WRAPPING and column.type.is_int and type.is_int:
        return elementwise(lambda x: x.cast(type.dtype), type, column)
    if option == WRAPPING and not type.is_float:
        raise UnsupportedError("a cast of floats that wraps around has no form in a graph: use a strict one")
    made = cast_column(column, type, strict=option == STRICT)
    lost = column.missing() if scope.nan_is_null and column.type.is_float and type.is_int else None
    return made if lost is None else guarded(made, lost, "a missing number as an integer")


@rule("to_physical")
def to_physical(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    type = scope.type(expr)
    if a.type.is_text:
        return _of_category(a, type)
    return _plain(a, type)


def cast_column(a: Column, type: ColumnType, *, strict: bool) -> Column:
    old = a.type
    if old == type:
        return a
    if type.is_text:
        return _to_text(a, type, strict)
    if old.is_text:
        if old.categories is not None:
            raise UnsupportedError(f"a cast from an Enum to {type} is an error in Polars: use `to_physical()`")
        return _of_text(a, type, strict)
    if old.meaning or type.meaning:
        return _times(a, type, strict)
    if type.is_bool:
        return elementwise(lambda x: x.op.Not(x.op.Equal(x, x.op.like(0, x))), type, a)
    if type.is_float or old.is_bool:
        return elementwise(lambda x: x.cast(type.dtype), type, a)
    if old.is_float:
        return whole(a, type, strict=strict)
    return fitted(a, type, strict=strict)


def _plain(a: Column, type: ColumnType) -> Column:
    """The numbers behind a date or time."""
    masked = a.masked()
    return replace(masked, type=replace(masked.type, meaning="", unit="")).cast(type)


def fitted(a: Column, type: ColumnType, *, strict: bool) -> Column:
    """Integers of another width."""
    old, new = np.iinfo(a.type.dtype.numpy()), np.iinfo(type.dtype.numpy())
    made = elementwise(lambda x: x.cast(type.dtype), type, a)
    bad: Tensor | None = None
    op, x = a.op, a.value
    if is_constant(a) and new.min <= int(constant_of(a)) <= new.max:
        return made
    if new.min > old.min:
        bad = op.Less(x, op.like(new.min, x))
    if new.max < old.max:
        if a.type.dtype == ir.DataType.UINT64:
            # Those above the middle are negative in int64.
            wrapped = x.cast(ir.DataType.INT64)
            above = op.Less(wrapped, op.like(0, wrapped))
            if new.max < np.iinfo(np.int64).max:
                above = op.Or(above, op.Greater(wrapped, op.like(new.max, wrapped)))
        else:
            above = op.Greater(x, op.like(new.max, x))
        bad = above if bad is None else op.Or(bad, above)
    return made if bad is None else limited(made, a, bad, strict, f"a number that does not fit {type}")


def _to_text(a: Column, type: ColumnType, strict: bool) -> Column:
    if a.type.is_text:
        if type.categories is None or a.type.categories == type.categories:
            return replace(a, type=type)
        made = elementwise(lambda x: x, type, replace(a, type=type))
        names = [str(name) for name in type.categories]
        bad = a.op.Not(text_compare.is_in(a.value, names))
        return limited(made, a, bad, strict, "a text that is none of the categories of an Enum")
    if type.categories is not None:
        raise UnsupportedError("numbers are not cast to an Enum in a graph: use `replace_strict` with the names")
    if a.type.is_bool:
        return elementwise(lambda x: text_numbers.from_bool(x, "true", "false"), type, a)
    if a.type.is_int:
        return elementwise(text_numbers.from_int, type, a)
    if a.type.meaning == "date":
        date = Civil(a.value)
        made = elementwise(lambda _: time_format.date_text(date), type, a)
        null, odd = a.missing(), a.op.Not(time_format.has_plain_year(date, "polars"))
        return guarded(made, odd if null is None else a.op.And(odd, a.op.Not(null)), "a year of other than four digits")
    raise UnsupportedError(
        f"a cast from {a.type} to text has no form in a graph, as its digits differ: cast to integers before, or use "
        "`dt.to_string` with a format"
    )


def _of_category(a: Column, type: ColumnType) -> Column:
    """The number of a category among all."""
    if a.type.categories is None:
        raise UnsupportedError("the numbers of categories that are not fixed depend on the data: use an Enum")
    table = {str(name): number for number, name in enumerate(a.type.categories)}
    return elementwise(lambda x: text_compare.look_up_numbers(x, table, ir.DataType.INT64)[0].cast(type.dtype), type, a)


def _of_text(a: Column, type: ColumnType, strict: bool) -> Column:
    op, x = a.op, a.value
    if type.meaning or type.is_bool:
        raise UnsupportedError(f"a cast from text to {type} has no form in a graph: use `str.to_date` or a comparison")
    if type.is_float:
        return _float_of_text(a, type, strict)
    number, found = text_numbers.to_int(x, type.dtype, "polars")
    return limited(Column(number, type, a.rows, a.null), a, op.Not(found), strict, "a text that is no integer")


def _float_of_text(a: Column, type: ColumnType, strict: bool) -> Column:
    number, found = text_numbers.to_float(a.value, "polars")
    made = Column(number.cast(type.dtype), type, a.rows, a.null)
    return limited(made, a, a.op.Not(found), strict, "a text that is no number")


def _times(a: Column, type: ColumnType, strict: bool) -> Column:
    old = a.type
    if not type.meaning:
        return cast_column(_plain(a, replace(INT64, dtype=old.dtype)), type, strict=strict)
    if not old.meaning:
        number = cast_column(a, replace(INT64, dtype=type.dtype), strict=strict)
        return replace(number, type=type)
    if old.meaning == type.meaning:
        return in_unit(a, type.unit)
    if (old.meaning, type.meaning) == ("date", "datetime"):
        return in_ticks(a, type.unit)
    if (old.meaning, type.meaning) == ("datetime", "date"):
        return to_days(a, type)
    if (old.meaning, type.meaning) == ("datetime", "time"):
        by = ticks_per_day(old.unit)
        scale = ticks_per_day("ns") // by
        return elementwise(lambda x: x.op.Mul(integers.remainder_by(x, by), scale), type, a)
    raise UnsupportedError(f"a cast from {old} to {type} has no form in a graph")
