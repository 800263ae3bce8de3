"""Choices: where, mask, numpy.where, numpy.select, clip."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onward.formats.dataframe.types import FLOAT64, NAT, ColumnType
from onward.frontends.dataframe.columns.column import ONE, Column, Rows, chosen, truth
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Series
from onward.frontends.dataframe.pandas.values import (
    at_labels,
    beside,
    column_of,
    common_type,
    is_missing,
    to_type,
    widened,
)
from onward.frontends.dataframe.tensors import numbers


def one_type(call: Call, x: Column, y: Column) -> tuple[Column, Column, ColumnType]:
    """Two columns in the type that holds both."""
    if x.type.categories is not None and x.type.categories == y.type.categories:
        return x, y, x.type
    type = common_type(call, x, y)
    return to_type(call, x, type), to_type(call, y, type), type


def choice(call: Call, condition: Column, a: Any, b: Any, like: Column | None = None) -> Column:
    """`a` where the condition holds, `b` elsewhere; a value that is missing has the type of the other side."""
    first = None if is_missing(a) else column_of(call, a, None if like is None else like.type)
    second = None if is_missing(b) else column_of(call, b, first.type if first is not None else None)
    if first is None and second is None:
        raise call.refuse("both sides are missing")
    if first is None:
        assert second is not None
        first = column_of(call, None, _nullable(second.type))
        second = second.cast(_nullable(second.type))
    elif second is None:
        second = column_of(call, None, _nullable(first.type))
        first = first.cast(_nullable(first.type))
    condition, first, second = beside(call, condition, first, second)
    first, second, type = one_type(call, first, second)
    rows = next((c.rows for c in (condition, first, second) if not c.is_scalar), ONE)
    return chosen(truth(condition), first, second, type, rows)


def _nullable(type: ColumnType) -> ColumnType:
    """The type that a column of this type has as soon as something is missing."""
    return FLOAT64 if type.is_int and not type.masked else type


@rule("Series.where")
def where(call: Call, x: Series, cond: Any, other: Any = np.nan) -> Column:
    return _kept(call, x, _condition(call, x, cond), other, keep=True)


@rule("Series.mask")
def mask(call: Call, x: Series, cond: Any, other: Any = np.nan) -> Column:
    return _kept(call, x, _condition(call, x, cond), other, keep=False)


def _condition(call: Call, x: Series, cond: Any) -> Column:
    found = cond(x) if callable(cond) and not hasattr(cond, "column") else cond
    return column_of(call, found)


def _kept(call: Call, x: Series, condition: Column, other: Any, keep: bool) -> Column:
    if callable(other) and not hasattr(other, "column"):
        other = other(x)
    if x.column.type.categories is not None and isinstance(other, str):
        raise call.refuse("a text that may be none of the categories: convert with astype(str) first")
    if not x.column.is_scalar:
        condition = at_labels(call, condition, x.column.rows)
        if isinstance(other, Series):
            other = Series(call.trace, other.real, at_labels(call, other.column, x.column.rows))
    if condition.null is not None and not condition.type.masked and not keep:
        condition = replace(condition, value=condition.op.Or(condition.value, condition.null), null=None)
    return choice(call, condition, x if keep else other, other if keep else x, x.column)


@rule("numpy.where")
def numpy_where(call: Call, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        raise call.refuse("positions of rows cannot be converted: give a value for either case")
    test = column_of(call, condition)
    if not test.type.is_bool:
        test = column_of(call, condition != 0)
    return choice(call, test, x, y)


@rule("numpy.select")
def select(call: Call, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise call.refuse("it needs a choice for each condition")
    values = [*choicelist, default]
    if any(isinstance(value, str) for value in values) and default == 0 and not isinstance(default, str):
        raise call.refuse("texts and the default 0 do not go together: give default='…'")
    return cases(call, condlist, choicelist, default)


def cases(call: Call, conditions: Any, values: Any, default: Any) -> Column:
    """The value of the first condition that holds."""
    present = [value for value in (*values, default) if not is_missing(value)]
    if not present:
        raise call.refuse("all choices are missing")
    type = column_of(call, present[0]).type
    for value in present[1:]:
        type = common_type(call, column_of(call, value), replace(column_of(call, present[0]), type=type))
    if len(present) < len(values) + 1:
        type = _nullable(type)
    made = [to_type(call, column_of(call, value, type), type) for value in (*values, default)]
    result = made[-1]
    for condition, value in reversed(list(zip(conditions, made[:-1], strict=True))):
        test, first, second = beside(call, column_of(call, condition), value, result)
        rows: Rows = next((c.rows for c in (test, first, second) if not c.is_scalar), ONE)
        result = chosen(truth(test), first, second, type, rows)
    return result


@rule("Series.case_when")
def case_when(call: Call, x: Series, caselist: Any) -> Column:
    conditions = [test(x) if callable(test) and not hasattr(test, "column") else test for test, _ in caselist]
    values = [value(x) if callable(value) and not hasattr(value, "column") else value for _, value in caselist]
    return cases(call, conditions, values, x)


@rule("Series.clip", "numpy.clip")
def clip(call: Call, x: Any, lower: Any = None, upper: Any = None, **options: Any) -> Column:
    lower, upper = options.pop("a_min", lower), options.pop("a_max", upper)
    if any(value is not None for value in options.values()):
        raise call.refuse(f"{sorted(options)[0]} cannot be converted")
    column = column_of(call, x)
    if column.type.is_text or column.type.is_bool:
        raise call.refuse(f"it is for numbers and times, not for {column.type}")
    for bound, is_lower in ((lower, True), (upper, False)):
        if bound is None or is_missing(bound):
            continue
        limit = column_of(call, bound, column.type)
        a, b = (column, at_labels(call, limit, column.rows)) if not column.is_scalar else (column, limit)
        a, b, type = one_type(call, a, b)
        column = _bounded(a, b, is_lower, type)
    return widened(column)


def _bounded(a: Column, b: Column, is_lower: bool, type: ColumnType) -> Column:
    """The nearer to a bound; what is missing stays so, and a bound that is missing is none: both compare as false."""
    op = a.op
    a = a.masked()
    if type.is_float and b.is_scalar:
        value = numbers.larger(a.value, b.value) if is_lower else numbers.smaller(a.value, b.value)
        return Column(value, type, b.rows if a.is_scalar else a.rows, a.null)
    beyond = a.value < b.value if is_lower else a.value > b.value
    if type.is_time:
        beyond = op.And(beyond, op.Not(op.Equal(b.value, op.like(NAT, b.value))))
    return Column(op.Where(beyond, b.value, a.value), type, b.rows if a.is_scalar else a.rows, a.null)
