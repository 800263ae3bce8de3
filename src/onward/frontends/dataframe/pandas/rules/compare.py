"""Comparisons and logic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onward.formats.dataframe.types import BOOL, ColumnType
from onward.frontends.dataframe.columns.column import Column, either, elementwise
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.arithmetic import operands
from onward.frontends.dataframe.pandas.values import beside, column_of, common_type, to_type
from onward.graph.build import Tensor

COMPARISONS = {
    "eq": "Equal",
    "ne": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}
_UFUNCS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def compare(call: Call, name: str, a: Any, b: Any) -> Column:
    """Two columns, or a column and a value. What is missing compares as unequal, or as unknown where there is NA."""
    x, y = operands(call, a, b)
    if x.type.categories is not None and name not in ("eq", "ne"):
        return _by_category(call, name, x, y)
    if _never_equal(x.type, y.type):
        if name not in ("eq", "ne"):
            raise call.refuse(f"{x.type} and {y.type} have no order")
        never = elementwise(lambda p: p.op.Expand(p.op.constant(np.asarray(name == "ne")), p.shape), BOOL, x)
        return replace(never, null=None)
    type = common_type(call, x, y)
    if type.is_text and name not in ("eq", "ne"):
        if call.trace.paths is not None:
            # A single value that is missing is no text, and has no order beside one.
            call.trace.paths.fail_where(either(x.missing(), y.missing()))
        return missing_compares(call, name, x, y, lambda p, q: call.part("part: order of text", name, p, q))
    return compared(call, name, to_type(call, x, type), to_type(call, y, type))


def compared(call: Call, name: str, x: Column, y: Column) -> Column:
    def test(p: Tensor, q: Tensor) -> Tensor:
        found: Tensor = getattr(p.op, COMPARISONS[name])(p, q)
        return p.op.Not(found) if name == "ne" else found

    return missing_compares(call, name, x, y, test)


def missing_compares(call: Call, name: str, x: Column, y: Column, test: Any) -> Column:
    """The test where both sides are there."""
    is_masked = x.type.masked or y.type.masked
    if x.type.is_float and not is_masked:
        return Column(test(x.value, y.value), BOOL, _rows(x, y))
    made = elementwise(test, replace(BOOL, masked=is_masked), x, y)
    if is_masked or made.null is None:
        return made
    op = made.op
    value = op.Or(made.value, made.null) if name == "ne" else op.And(made.value, op.Not(made.null))
    return Column(value, BOOL, made.rows)


def _rows(x: Column, y: Column) -> Any:
    return y.rows if x.is_scalar else x.rows


def _never_equal(a: ColumnType, b: ColumnType) -> bool:
    return a.is_text != b.is_text or a.meaning != b.meaning


def _by_category(call: Call, name: str, x: Column, y: Column) -> Column:
    if not x.type.ordered:
        raise call.refuse("the categories have no order: make them with ordered=True")
    if y.type.categories is not None and y.type.categories != x.type.categories:
        raise call.refuse("the categories of the two sides differ")
    y = replace(y, type=replace(y.type, categories=x.type.categories, ordered=True))
    first, second = call.part("part: codes", x), call.part("part: codes", y)
    made = compared(call, name, replace(first, null=None), replace(second, null=None))
    return _false_where_missing(made, x, y)


def _false_where_missing(made: Column, *columns: Column) -> Column:
    for column in columns:
        missing = column.missing()
        if missing is not None:
            made = replace(made, value=made.op.And(made.value, made.op.Not(missing)))
    return made


def _declare() -> None:
    for name in COMPARISONS:

        def comparison(call: Call, a: Any, b: Any, name: str = name) -> Column:
            return compare(call, name, a, b)

        rule(f"Series.__{name}__", f"Series.{name}", f"numpy.{_UFUNCS[name]}")(comparison)


_declare()


@rule("Series.between")
def between(call: Call, x: Any, left: Any, right: Any, inclusive: str = "both") -> Any:
    low = x >= left if inclusive in ("both", "left") else x > left
    high = x <= right if inclusive in ("both", "right") else x < right
    return low & high


def logic(call: Call, name: str, a: Any, b: Any) -> Column:
    """`&`, `|`, `^`; with NA, what is known in spite of it is known."""
    x, y = beside(call, column_of(call, a), column_of(call, b))
    if x.type.is_int and y.type.is_int:
        return _bits(call, name, x, y)
    if not (x.type.is_bool and y.type.is_bool):
        raise call.refuse(f"it is for booleans, not for {x.type} and {y.type}")
    op_type = {"and": "And", "or": "Or", "xor": "Xor"}[name]
    is_masked = x.type.masked or y.type.masked
    type = replace(BOOL, masked=is_masked)
    if not is_masked:
        x, y = _true_or_false(x), _true_or_false(y)
    if (x.null is None and y.null is None) or name == "xor":
        return elementwise(lambda p, q: getattr(p.op, op_type)(p, q), type, x, y)
    op, no = x.op, x.op.constant(np.asarray(False))
    value = getattr(op, op_type)(x.value, y.value)
    null = op.Or(x.null or no, y.null or no)
    decided = [op.And(op.Not(side.null or no), side.value if name == "or" else op.Not(side.value)) for side in (x, y)]
    known = op.Or(*decided)
    settled = op.Or(value, known) if name == "or" else op.And(value, op.Not(known))
    return Column(settled, type, _rows(x, y), op.And(null, op.Not(known)))


def _true_or_false(column: Column) -> Column:
    """Booleans among objects: what is missing is false in logic."""
    if column.null is None:
        return column
    return Column(column.op.And(column.value, column.op.Not(column.null)), BOOL, column.rows)


def _bits(call: Call, name: str, x: Column, y: Column) -> Column:
    type = call.type
    op_type = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}[name]
    return elementwise(lambda p, q: getattr(p.op, op_type)(p, q), type, to_type(call, x, type), to_type(call, y, type))


def _declare_logic() -> None:
    for name in ("and", "or", "xor"):

        def connective(call: Call, a: Any, b: Any, name: str = name) -> Column:
            return logic(call, name, a, b)

        rule(f"Series.__{name}__", f"numpy.logical_{name}", f"numpy.bitwise_{name}")(connective)


_declare_logic()


@rule("Series.__invert__", "numpy.logical_not", "numpy.invert")
def invert(call: Call, x: Any) -> Column:
    column = column_of(call, x)
    if column.type.is_int:
        return elementwise(lambda p: p.op.BitwiseNot(p), column.type, column)
    if not column.type.is_bool or (column.null is not None and not column.type.masked):
        raise call.refuse(f"it is for booleans that are all there, not for {column.type}: use fillna first")
    return elementwise(lambda p: p.op.Not(p), column.type, column)
