"""Truth values chosen and joined in few nodes: ONNX Runtime has no Where of booleans, and masks are often constants."""

from __future__ import annotations

from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows, full, is_full
from onward.frontends.dataframe.columns.column import truth as plain_truth
from onward.graph.build import Tensor


def known_truth(mask: Tensor | None) -> bool | None:
    """What a mask is everywhere, if it is known now; None is a mask that is false everywhere."""
    if mask is None:
        return False
    tensor = mask.value.const_value
    return bool(tensor.numpy().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None


def marked(made: Tensor, rows: Rows, *sources: Tensor | None) -> Tensor:
    """A result known to have an element in every row, as one of what it is made of has."""
    if any(source is not None and is_full(source) for source in sources) and not is_full(made):
        return full(made, rows)
    return made


def which(condition: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """`a` where the condition holds and `b` elsewhere, of masks."""
    op, first, second = condition.op, known_truth(a), known_truth(b)
    if first is False and second is False:
        return None
    if first is None and second is None:
        assert a is not None and b is not None
        return op.Or(op.And(condition, a), op.And(op.Not(condition), b))
    if first is True:
        return a if second is True else condition if second is False else op.Or(condition, b)
    if second is True:
        return op.Not(condition) if first is False else op.Or(op.Not(condition), a)
    return op.And(condition, a) if second is False else op.And(op.Not(condition), b)


def picked(condition: Tensor, a: Column, b: Column, type: ColumnType, rows: Rows) -> Column:
    """`a` where the condition holds and `b` elsewhere, both of `type`."""
    op = a.op
    a, b = a.masked(), b.masked()
    value: Tensor | None
    if type.is_bool:
        value = which(condition, a.value, b.value)
        value = op.And(condition, op.Not(condition)) if value is None else value
    else:
        value = op.Where(condition, a.value, b.value)
    null = which(condition, a.null, b.null)
    sources = (condition, a.value, b.value)
    return Column(marked(value, rows, *sources), type, rows, null)


def truth(column: Column) -> Tensor:
    """A column of booleans as a mask: null is false."""
    return marked(plain_truth(column), column.rows, column.value)
