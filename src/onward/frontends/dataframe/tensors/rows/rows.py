"""What sorting, grouping and running sums share: rows as flat tensors, and choices and comparisons for every dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor

BOOL, STRING = ir.DataType.BOOL, ir.DataType.STRING
INT64, UINT64, FLOAT64 = ir.DataType.INT64, ir.DataType.UINT64, ir.DataType.DOUBLE
FLOATS = (ir.DataType.FLOAT, FLOAT64)
UNSIGNED = (ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, UINT64)
_CHOSEN_AS = {
    BOOL: ir.DataType.UINT8,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    UINT64: INT64,
}
"""What ONNX Runtime chooses among, where it has no `Where` for a dtype; each keeps every value."""
_COMPARED_AS = {BOOL: ir.DataType.UINT8, ir.DataType.UINT16: ir.DataType.INT32, ir.DataType.UINT32: INT64}
"""What ONNX Runtime sorts, where it has no `TopK` for a dtype; each keeps every value."""


def flat(x: Tensor) -> Tensor:
    """(N, 1) as (N,)."""
    return x.op.squeeze(x, [1])


def column(x: Tensor) -> Tensor:
    """(N,) as (N, 1)."""
    return x.op.unsqueeze(x, [1])


def length(x: Tensor) -> Tensor:
    """The number of rows, (1,)."""
    return x.op.Shape(x, start=0, end=1)


def scalar(x: Tensor) -> Tensor:
    return x.op.squeeze(x, [0])


def numbered(count: Tensor) -> Tensor:
    """0, 1, … below `count`, a (1,)."""
    return count.op.Range(count.op.index(0), scalar(count), count.op.index(1))


def positions(x: Tensor) -> Tensor:
    """The number of each row, (N,)."""
    return numbered(length(x))


def shown(mask: Tensor, x: Tensor) -> Tensor:
    """A mask, (N, 1) or broadcastable, as one bool for each row of `x`: (N,)."""
    op = x.op
    if mask.dims is None or mask.dims != x.dims:
        mask = op.Expand(mask, op.Concat(length(x), op.ints([1]), axis=0))
    return flat(mask)


def rows_of(mask: Tensor) -> Tensor:
    """The rows at which a (N,) mask is true."""
    return scalar(mask.op.NonZero(mask))


def both(*masks: Tensor | None) -> Tensor | None:
    """What all masks say, without those that are left out."""
    given = [mask for mask in masks if mask is not None]
    result = given[0] if given else None
    for mask in given[1:]:
        assert result is not None
        result = mask.op.And(result, mask)
    return result


def either(*masks: Tensor | None) -> Tensor | None:
    """What any of the masks says, without those that are left out."""
    given = [mask for mask in masks if mask is not None]
    result = given[0] if given else None
    for mask in given[1:]:
        assert result is not None
        result = mask.op.Or(result, mask)
    return result


def select(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """`Where`, for every dtype."""
    passing = _CHOSEN_AS.get(a.dtype)
    if passing is None:
        return a.op.Where(condition, a, b)
    return a.op.Where(condition, a.cast(passing), b.cast(passing)).cast(a.dtype)


def nothing(op: Builder, dtype: ir.DataType) -> Tensor:
    """What stands where there is no value: NaN, 0, False or "", a scalar."""
    if dtype == STRING:
        return op.strings(np.asarray("", object))
    return op.constant(np.asarray(np.nan if dtype in FLOATS else 0).astype(dtype.numpy()), dtype)


def zero(op: Builder, dtype: ir.DataType) -> Tensor:
    """0, False or "", a scalar: what counts as false."""
    return nothing(op, dtype) if dtype == STRING else op.constant(np.asarray(0).astype(dtype.numpy()), dtype)


def chosen(x: Tensor, valid: Tensor | None, number: float) -> Tensor:
    """`x`, and `number` where a row does not count."""
    return x if valid is None else select(valid, x, x.op.like(number, x))


def extreme(dtype: ir.DataType, largest: bool) -> float:
    """The largest or the smallest value of a dtype."""
    if dtype in FLOATS:
        return float("inf") if largest else float("-inf")
    info = np.iinfo(dtype.numpy())
    return int(info.max if largest else info.min)


def cut(x: Tensor, start: int | Tensor, end: int | Tensor) -> Tensor:
    """The rows from `start` to before `end`."""
    op = x.op
    first, last = (op.ints([bound]) if isinstance(bound, int) else bound for bound in (start, end))
    return op.Slice(x, first, last, op.ints([0]))


END = np.iinfo(np.int64).max


def first_value(x: Tensor, valid: Tensor | None) -> Tensor:
    """The first value of a float64 column that counts, 0 if none does: (1, 1)."""
    op = x.op
    row = op.ints([0]) if valid is None else cut(op.Concat(rows_of(shown(valid, x)), length(x), axis=0), 0, 1)
    return op.Gather(op.Concat(x, op.constant(np.zeros((1, 1))), axis=0), row, axis=0)


def changes(*columns: Tensor) -> Tensor:
    """Whether a row differs from the one before it in any of the (N,) columns: (N,). The first row does."""
    op = columns[0].op
    differs = either(*(op.Not(op.Equal(cut(x, 1, END), cut(x, 0, -1))) for x in columns))
    assert differs is not None
    return cut(op.Concat(op.constant(np.ones(1, bool)), differs, axis=0), 0, length(columns[0]))


def scattered(x: Tensor, rows: Tensor, base: Tensor, reduction: str | None = None) -> Tensor:
    """`base`, with the values of `x` put or reduced into its rows `rows`. All are flat."""
    return x.op.ScatterElements(base, rows, x, axis=0, reduction=reduction)


def whole(x: Tensor, reduction: str, start: int) -> Tensor:
    """All values of a (N,) int64 reduced to one, (1,).

    ONNX Runtime's ReduceSum and ReduceProd of int64 round to 53 bits, its ReduceMin and ReduceMax are wrong beyond 32
    on some processors; this is exact.
    """
    return scattered(x, x.op.Expand(x.op.index(0), length(x)), x.op.ints([start]), reduction)


def counted(mask: Tensor) -> Tensor:
    """How many of the rows so far are true, this one included: (N,) int64."""
    return mask.op.CumSum(mask.cast(INT64), mask.op.index(0))


@dataclass(frozen=True)
class Sortable:
    """A (N,) column in a dtype that ONNX Runtime sorts, in the same order, and the way back."""

    value: Tensor
    back: Callable[[Tensor], Tensor]
    distinct: Tensor | None = None
    """How many different ones there are, (1,), if the values are their numbers from 0."""


def sortable(x: Tensor) -> Sortable:
    """Strings become their places among the distinct ones, by code points, as Python and Rust compare them."""
    op = x.op
    if x.dtype == STRING:
        distinct, _, codes, _ = op.many("Unique", 4, x)
        return Sortable(codes, lambda code: op.Gather(distinct, code), length(distinct))
    if x.dtype == UINT64:
        lowest = op.index(np.iinfo(np.int64).min)
        return Sortable(op.BitwiseXor(x.cast(INT64), lowest), lambda y: op.BitwiseXor(y, lowest).cast(UINT64))
    return Sortable(x.cast(_COMPARED_AS.get(x.dtype, x.dtype)), lambda y: y.cast(x.dtype))


def as_number(x: Tensor, what: str) -> Tensor:
    """A column of numbers or bools as float64."""
    if x.dtype == STRING:
        raise UnsupportedError(f"{what} of text is not a number: make it a number first")
    return x.cast(FLOAT64)


def summable(x: Tensor, what: str) -> Tensor:
    """As float64 or int64, in which sums are made: whole numbers wrap around as in pandas."""
    if x.dtype == STRING:
        raise UnsupportedError(f"{what} of text cannot be converted: sum numbers, or join texts by name")
    return x.cast(FLOAT64 if x.dtype in FLOATS else INT64)


def sum_dtype(x: Tensor) -> ir.DataType:
    """The dtype of a sum: int64 or uint64 for whole numbers and bools, and that of floats."""
    if x.dtype in FLOATS:
        return x.dtype
    return UINT64 if x.dtype in UNSIGNED else INT64
