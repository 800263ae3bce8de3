"""Functions of several columns in each row."""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, common_rows, elementwise, scalar
from onward.frontends.dataframe.polars.casts import cast_column
from onward.frontends.dataframe.polars.choose import as_type, first_known
from onward.frontends.dataframe.polars.compare import all_true, any_true, compared
from onward.frontends.dataframe.polars.masks import picked
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, rule
from onward.graph.build import Tensor


@rule("sum_horizontal")
def sum_horizontal(scope: Scope, expr: Expr) -> Column:
    (ignore_nulls,) = expr.options
    type = scope.type(expr)
    columns = [cast_column(column, type, strict=False) for column in scope.all(expr)]
    if not columns:
        return scalar(scope.op, 0, type)
    if ignore_nulls:
        columns = [_or_zero(column) for column in columns]
    return reduce(lambda a, b: elementwise(lambda x, y: x.op.Add(x, y), type, a, b), columns)


def _or_zero(column: Column) -> Column:
    return first_known(column, scalar(column.op, 0, column.type))


@rule("mean_horizontal")
def mean_horizontal(scope: Scope, expr: Expr) -> Column:
    """The mean of those that are not null; null if all are."""
    (ignore_nulls,) = expr.options
    type = scope.type(expr)
    columns = [cast_column(column, type, strict=False) for column in scope.all(expr)]
    op = scope.op
    total = reduce(
        lambda a, b: elementwise(lambda x, y: x.op.Add(x, y), type, a, b),
        [_or_zero(column) if ignore_nulls else column for column in columns],
    )
    masks = [column.missing() for column in columns]
    if not ignore_nulls or all(mask is None for mask in masks):
        return elementwise(lambda x: x.op.Div(x, x.op.like(len(columns), x)), type, total)
    counts: Tensor | None = None
    for mask in masks:
        one = op.like(1, total.value) if mask is None else op.Cast(op.Not(mask), to=int(type.dtype))
        counts = one if counts is None else op.Add(counts, one)
    assert counts is not None
    made = Column(op.Div(total.value, counts), type, total.rows)
    return made.with_null(op.Equal(counts, op.like(0, counts)))


@rule("min_horizontal", "max_horizontal")
def extreme_horizontal(scope: Scope, expr: Expr) -> Column:
    """Of those that are neither null nor NaN; NaN if there is no other."""
    name = "Lt" if expr.kind == "min_horizontal" else "Gt"
    type = scope.type(expr)
    columns = [as_type(column, type) for column in scope.all(expr)]
    made = columns[0]
    for column in columns[1:]:
        made = _better(name, made, column, type)
    return made


def _better(name: str, a: Column, b: Column, type: ColumnType) -> Column:
    op = a.op
    if type.is_text:
        raise UnsupportedError("the smallest or largest of several texts has no form in a graph: use `pl.when`")
    if type.is_float:
        plain = getattr(op, "Less" if name == "Lt" else "Greater")(b.value, a.value)
        take = op.Or(plain, op.IsNaN(a.value))
    else:
        take = compared(name, b.without_nulls(), a.without_nulls()).value
    a_null, b_null = a.missing(), b.missing()
    if b_null is not None:
        take = op.And(take, op.Not(b_null))
    if a_null is not None:
        take = op.Or(take, a_null)
    return picked(take, b, a, type, common_rows(a, b))


@rule("bool.AnyHorizontal")
def any_horizontal(scope: Scope, expr: Expr) -> Column:
    return reduce(any_true, scope.all(expr))


@rule("bool.AllHorizontal")
def all_horizontal(scope: Scope, expr: Expr) -> Column:
    return reduce(all_true, scope.all(expr))


@rule("str.ConcatHorizontal")
def concat_str(scope: Scope, expr: Expr) -> Column:
    separator, ignore_nulls = expr.options
    type = scope.type(expr)
    columns = [
        cast_column(column, ColumnType(ir.DataType.STRING, masked=True), strict=True) for column in scope.all(expr)
    ]
    if ignore_nulls:
        return _joined_known(scope, columns, str(separator), type)
    made = columns[0]
    for column in columns[1:]:
        if separator:
            made = elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, scalar(scope.op, separator, type))
        made = elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, column)
    return made


def _joined_known(scope: Scope, columns: list[Column], separator: str, type: ColumnType) -> Column:
    """Without those that are null, and without their separators."""
    op = scope.op
    if separator and any(column.missing() is not None for column in columns):
        empty, between = scalar(op, "", type), scalar(op, separator, type)
        made, started = empty, None
        for column in columns:
            null = column.missing()
            text = first_known(column, empty)
            if started is not None:
                needed = started if null is None else op.And(started, op.Not(null))
                gap = picked(needed, between, empty, type, common_rows(column, made))
                made = elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, gap)
            made = text if made is empty else elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, text)
            known = op.constant(np.asarray([[True]])) if null is None else op.Not(null)
            started = known if started is None else op.Or(started, known)
        return made
    parts = [first_known(column, scalar(op, "", type)) for column in columns]
    made = parts[0]
    for column in parts[1:]:
        if separator:
            made = elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, scalar(op, separator, type))
        made = elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, column)
    return made


@rule("str.Format")
def format_text(scope: Scope, expr: Expr) -> Column:
    """Texts put into the places of a text."""
    template, positions = expr.options
    type = scope.type(expr)
    words = ColumnType(ir.DataType.STRING, masked=True)
    columns = [cast_column(column, words, strict=True) for column in scope.all(expr)]
    pieces = _pieces(str(template), [int(each) for each in positions])
    made: Column | None = None
    for piece in pieces:
        part = scalar(scope.op, piece, type) if isinstance(piece, str) else columns[piece]
        made = part if made is None else elementwise(lambda x, y: x.op.StringConcat(x, y), type, made, part)
    return scalar(scope.op, "", type) if made is None else made


def _pieces(template: str, positions: list[int]) -> list[str | int]:
    """Constant texts and the numbers of columns, in their order: a column stands before the byte at its position."""
    made: list[str | int] = []
    data, last = template.encode(), 0
    for number, position in enumerate(positions):
        if position > last:
            made.append(data[last:position].decode())
            last = position
        made.append(number)
    if last < len(data):
        made.append(data[last:].decode())
    return made
