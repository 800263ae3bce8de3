"""Comparisons of Polars, where NaN is the largest number and equal to itself, and logic of three values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, either, elementwise
from onward.frontends.dataframe.polars.arithmetic import in_ticks
from onward.frontends.dataframe.polars.masks import marked
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, constant_of, is_constant, rule
from onward.frontends.dataframe.tensors.text import text_compare
from onward.graph.build import Tensor

BOOLEAN = ColumnType(ir.DataType.BOOL, masked=True)
_OPS = {"Eq": "Equal", "NotEq": "Equal", "Lt": "Less", "LtEq": "LessOrEqual", "Gt": "Greater", "GtEq": "GreaterOrEqual"}
_TURNED = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq", "NotEq": "NotEq"}


@rule(*(f"binary.{name}" for name in _OPS))
def compare(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    name = expr.kind.partition(".")[2]
    return scope.decided(compared(name, a, b), *_known(a), *_known(b), otherwise=name == "NotEq")


def _known(column: Column) -> list[Column]:
    """Without a constant, which has no dtype of its own in pandas."""
    return [] if is_constant(column) else [column]


@rule("binary.EqValidity", "binary.NotEqValidity")
def compare_nulls_too(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    same = equal_or_null(a, b)
    return same if expr.kind == "binary.EqValidity" else replace(same, value=scope.op.Not(same.value))


def equal_or_null(a: Column, b: Column) -> Column:
    """Whether values are the same, where null is the same as null. It is never null."""
    made = compared("Eq", a, b)
    if made.null is None:
        return made
    op, nulls = made.op, [column.missing() for column in (a, b)]
    value = op.And(made.value, op.Not(made.null))
    if nulls[0] is not None and nulls[1] is not None:
        value = op.Or(value, op.And(*nulls))
    return Column(value, BOOLEAN, made.rows)


def compared(name: str, a: Column, b: Column) -> Column:
    """`name` is `Eq`, `NotEq`, `Lt`, `LtEq`, `Gt` or `GtEq`."""
    a, b = comparable(a, b)
    if a.is_scalar and not b.is_scalar:
        a, b, name = b, a, _TURNED[name]
    if a.type.is_float:
        return elementwise(_of_floats(name, b), BOOLEAN, a, b)
    if a.type.is_text and name not in ("Eq", "NotEq"):
        if a.type.categories is not None:
            return compared(name, category_numbers(a), category_numbers(b))
        return elementwise(_of_texts(name), BOOLEAN, a, b)

    def plain(x: Tensor, y: Tensor) -> Tensor:
        x, y = (ordered_number(each) if name not in ("Eq", "NotEq") else each for each in (x, y))
        made: Tensor = getattr(x.op, _OPS[name])(x, y)
        return x.op.Not(made) if name == "NotEq" else made

    return elementwise(plain, BOOLEAN, a, b)


def comparable(a: Column, b: Column) -> tuple[Column, Column]:
    """Two columns whose tensors can be compared."""
    if a.type.meaning != b.type.meaning or a.type.unit != b.type.unit:
        units = [column.type.unit for column in (a, b) if column.type.unit]
        if {a.type.meaning, b.type.meaning} <= {"date", "datetime"} and units:
            return in_ticks(a, units[0]), in_ticks(b, units[0])
        if a.type.meaning == b.type.meaning == "duration":
            return in_ticks(a, units[1]), b
    if a.type.categories is not None and b.type.categories is None and b.type.is_text:
        return a, replace(b, type=a.type)
    if b.type.categories is not None and a.type.categories is None and a.type.is_text:
        return replace(a, type=b.type), b
    if a.type.dtype != b.type.dtype:
        raise UnsupportedError(f"{a.type} and {b.type} are not compared: cast one of them")
    return a, b


def category_numbers(column: Column) -> Column:
    """The places of categories among all: what they are compared and sorted by."""
    assert column.type.categories is not None
    table = {str(name): number for number, name in enumerate(column.type.categories)}
    type = ColumnType(ir.DataType.INT64, masked=True)
    return elementwise(lambda x: text_compare.look_up_numbers(x, table, ir.DataType.INT64)[0], type, column)


def ordered_number(x: Tensor) -> Tensor:
    """In a dtype that ONNX Runtime compares, in the same order."""
    if x.dtype == ir.DataType.UINT64:
        return x.op.Add(x.cast(ir.DataType.INT64), x.op.like(np.iinfo(np.int64).min, x.cast(ir.DataType.INT64)))
    return x.cast(ir.DataType.UINT8) if x.dtype == ir.DataType.BOOL else x


def _of_texts(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    return {
        "Lt": lambda x, y: text_compare.less(x, y),
        "LtEq": lambda x, y: text_compare.less_or_equal(x, y),
        "Gt": lambda x, y: x.op.Not(text_compare.less_or_equal(x, y)),
        "GtEq": lambda x, y: x.op.Not(text_compare.less(x, y)),
    }[name]


def _of_floats(name: str, b: Column) -> Callable[[Tensor, Tensor], Tensor]:
    """NaN is above all numbers and equal to itself."""
    if is_constant(b):
        return _with_nan(name) if np.isnan(constant_of(b)) else _with_number(name)

    def function(x: Tensor, y: Tensor) -> Tensor:
        op = x.op
        if name in ("Eq", "NotEq"):
            same = op.Or(op.Equal(x, y), op.And(op.IsNaN(x), op.IsNaN(y)))
            return same if name == "Eq" else op.Not(same)
        if name in ("GtEq", "LtEq"):
            x, y = (x, y) if name == "GtEq" else (y, x)
            return op.Or(op.GreaterOrEqual(x, y), op.IsNaN(x))
        x, y = (x, y) if name == "Lt" else (y, x)
        # Less: not (x ≥ y or x is NaN).
        return op.Not(op.Or(op.GreaterOrEqual(x, y), op.IsNaN(x)))

    return function


def _with_number(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Against a number that is not NaN."""
    return {
        "Eq": lambda x, y: x.op.Equal(x, y),
        "NotEq": lambda x, y: x.op.Not(x.op.Equal(x, y)),
        "Lt": lambda x, y: x.op.Less(x, y),
        "LtEq": lambda x, y: x.op.LessOrEqual(x, y),
        "Gt": lambda x, y: x.op.Not(x.op.LessOrEqual(x, y)),
        "GtEq": lambda x, y: x.op.Not(x.op.Less(x, y)),
    }[name]


def _with_nan(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    def always(x: Tensor, truth: bool) -> Tensor:
        return x.op.Equal(x.op.IsNaN(x), x.op.IsNaN(x)) if truth else x.op.Xor(x.op.IsNaN(x), x.op.IsNaN(x))

    return {
        "Eq": lambda x, y: x.op.IsNaN(x),
        "GtEq": lambda x, y: x.op.IsNaN(x),
        "NotEq": lambda x, y: x.op.Not(x.op.IsNaN(x)),
        "Lt": lambda x, y: x.op.Not(x.op.IsNaN(x)),
        "LtEq": lambda x, y: always(x, True),
        "Gt": lambda x, y: always(x, False),
    }[name]


@rule("binary.And", "binary.LogicalAnd")
def logical_and(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    if not a.type.is_bool:
        return elementwise(lambda x, y: x.op.BitwiseAnd(x, y), scope.type(expr), a, b)
    return all_true(a, b)


@rule("binary.Or", "binary.LogicalOr")
def logical_or(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    if not a.type.is_bool:
        return elementwise(lambda x, y: x.op.BitwiseOr(x, y), scope.type(expr), a, b)
    return any_true(a, b)


def all_true(a: Column, b: Column) -> Column:
    """False if one is false, even if the other is null."""
    op, rows = a.op, elementwise(lambda x, y: x.op.And(x, y), BOOLEAN, a.without_nulls(), b.without_nulls())
    null = either(a.null, b.null)
    if null is None or same_mask(a.null, b.null):
        return replace(rows, null=null)
    x, y = (each.value if each.null is None else op.Or(each.value, each.null) for each in (a, b))
    value = op.And(x, y)
    return replace(rows, value=marked(value, rows.rows, rows.value), null=op.And(null, value))


def any_true(a: Column, b: Column) -> Column:
    """True if one is true, even if the other is null."""
    op, rows = a.op, elementwise(lambda x, y: x.op.Or(x, y), BOOLEAN, a.without_nulls(), b.without_nulls())
    null = either(a.null, b.null)
    if null is None or same_mask(a.null, b.null):
        return replace(rows, null=null)
    x, y = (each.value if each.null is None else op.And(each.value, op.Not(each.null)) for each in (a, b))
    value = op.Or(x, y)
    return replace(rows, value=marked(value, rows.rows, rows.value), null=op.And(null, op.Not(value)))


def same_mask(a: Tensor | None, b: Tensor | None) -> bool:
    return a is not None and b is not None and a.value is b.value


@rule("binary.Xor")
def logical_xor(scope: Scope, expr: Expr) -> Column:
    a, b = scope.all(expr)
    name = "Xor" if a.type.is_bool else "BitwiseXor"
    return elementwise(lambda x, y: getattr(x.op, name)(x, y), scope.type(expr), a, b)


@rule("bool.Not")
def logical_not(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    name = "Not" if a.type.is_bool else "BitwiseNot"
    return elementwise(lambda x: getattr(x.op, name)(x), a.type, a)


@rule("bool.IsNull", "bool.IsNotNull")
def is_null(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    null = a.missing()
    if null is None:
        return Column(scope.op.constant(np.asarray([[expr.kind == "bool.IsNotNull"]])), BOOLEAN, a.rows)
    return Column(null if expr.kind == "bool.IsNull" else scope.op.Not(null), BOOLEAN, a.rows)


@rule("bool.IsNan", "bool.IsNotNan", "bool.IsFinite", "bool.IsInfinite")
def float_kinds(scope: Scope, expr: Expr) -> Column:
    (a,) = scope.all(expr)
    kind = expr.kind.partition(".")[2]
    if scope.nan_is_null and a.type.is_float and kind in ("IsNan", "IsNotNan"):
        return is_null(scope, replace(expr, kind="bool.IsNull" if kind == "IsNan" else "bool.IsNotNull"))
    if not a.type.is_float:
        truth = scope.op.constant(np.asarray([[kind in ("IsNotNan", "IsFinite")]]))
        return replace(a, value=truth, type=BOOLEAN)
    found: dict[str, Callable[[Tensor], Tensor]] = {
        "IsNan": lambda x: x.op.IsNaN(x),
        "IsNotNan": lambda x: x.op.Not(x.op.IsNaN(x)),
        "IsInfinite": lambda x: x.op.Equal(x.op.Abs(x), x.op.like(float("inf"), x)),
        "IsFinite": lambda x: x.op.Less(x.op.Abs(x), x.op.like(float("inf"), x)),
    }
    return elementwise(found[kind], BOOLEAN, a)


@rule("bool.IsBetween")
def is_between(scope: Scope, expr: Expr) -> Column:
    a, low, high = scope.all(expr)
    closed = str(expr.options[0]).lower()
    above = compared("GtEq" if closed in ("both", "left") else "Gt", a, low)
    below = compared("LtEq" if closed in ("both", "right") else "Lt", a, high)
    return all_true(scope.decided(above, a, *_known(low)), scope.decided(below, a, *_known(high)))
