"""Texts read as numbers, and numbers written as texts."""

from __future__ import annotations

from dataclasses import replace

from onward.formats.dataframe.types import BOOL, FLOAT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.tensors.text import text_numbers
from onward.frontends.dataframe.tensors.text.text import any_true, full_match
from onward.graph.build import Tensor

_BLANK = r"[\t-\r ]*"


@rule("part: to text")
def to_text(call: Call, column: Column, target: ColumnType) -> Column:
    """`astype(str)`; what is missing stays so."""
    source = column.type
    if source.is_time or source.meaning:
        return call.part("part: times to text", column, target)  # type: ignore[no-any-return]
    if source.is_bool:
        return elementwise(text_numbers.from_bool, target, column)
    if source.is_float or (source.is_int and column.null is not None and not source.masked):
        raise call.refuse(
            "numbers with a fraction cannot be written as texts in ONNX: convert to integers first, with astype(int)"
        )
    return elementwise(text_numbers.from_int, target, column)


@rule("part: from text")
def from_text(call: Call, column: Column, target: ColumnType) -> Column:
    """`astype` of texts: what is no number is an error."""
    if target.is_time or target.meaning:
        return call.part("part: times of text", column, target)  # type: ignore[no-any-return]
    if target.masked:
        raise call.refuse(f"texts are read as {target} in a way of PyArrow's: use pd.to_numeric, then astype")
    if target.is_bool:
        return _filled(column)
    op = column.op
    value, ok = _python_number(column.value, target)
    bad = op.Not(ok)
    missing = column.missing()
    if target.is_float:
        made = Column(value, target, column.rows).with_null(missing)
        bad = bad if missing is None else op.And(bad, op.Not(missing))
        return guarded(made, bad, "astype(float) of a text that is no number")
    bad = bad if missing is None else op.Or(bad, missing)
    return guarded(Column(value, target, column.rows), bad, "astype(int) of a text that is no whole number")


def _python_number(p: Tensor, target: ColumnType) -> tuple[Tensor, Tensor]:
    if target.is_float:
        value, ok = text_numbers.to_float(p)
        return value.cast(target.dtype), ok
    return text_numbers.to_int(p, target.dtype)


def _filled(column: Column) -> Column:
    """`astype(bool)`: pandas takes NaN for true and None for false, so that texts must be there."""
    made = elementwise(text_numbers.is_filled, BOOL, replace(column, null=None))
    missing = column.missing()
    return made if missing is None else guarded(made, missing, "astype(bool) of a text that is missing")


@rule("part: numbers of text")
def numbers_of_text(call: Call, column: Column, coerce: bool) -> Column:
    """`pandas.to_numeric`, in floats. Where pandas would give integers that floats do not hold, the model fails."""
    if column.type.masked and not call.type.is_float:
        raise call.refuse("whether it gives integers depends on the data: convert the texts with astype('str') first")
    op, missing = column.op, column.missing()
    empty = full_match(column.value, "")
    value, ok = text_numbers.to_float(column.value, "to_numeric")
    value = op.Where(ok, value, op.like(float("nan"), value))
    made = Column(value, replace(FLOAT64, masked=column.type.masked), column.rows)
    if column.type.masked:
        made = made.with_null(op.Not(ok))
    made = made.with_null(missing)
    if not coerce:
        bad = op.Not(op.Or(ok, empty))
        bad = bad if missing is None else op.And(bad, op.Not(missing))
        made = guarded(made, bad, "to_numeric of a text that is no number")
    whole = full_match(column.value, rf"{_BLANK}[+\-]?[0-9]+{_BLANK}")
    long = full_match(column.value, rf"{_BLANK}[+\-]?[0-9]{{16,}}{_BLANK}")
    if missing is not None:
        whole = op.And(whole, op.Not(missing))
    lost = op.And(any_true(long), op.Not(any_true(op.Not(whole))))
    return guarded(made, lost, "to_numeric of whole numbers with more than 15 digits: use astype('int64')")
