"""Sorting by several keys, stably; the largest few.

What is no number comes last, zeros of either sign are equal. ONNX's TopK keeps the order of equal numbers in ONNX
Runtime, but has no place for what is no number: keys are numbers in a wider dtype, with infinity beyond its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.frontends.lax.bits import is_negative
from onward.frontends.lax.elementwise import BOOL, DOUBLE, FLOAT, HALVES, INT32, INT64, UINT32, UINT64, is_float
from onward.frontends.lax.sizes import size, vector
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

ENDS = {FLOAT: (DOUBLE, 1e300), **dict.fromkeys(HALVES, (FLOAT, 1e38))}
"""The dtype that is wider, and what takes the place of infinity there."""
ORDERED = {FLOAT, DOUBLE, INT32, INT64, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.UINT8}
"""Dtypes that ONNX Runtime has a kernel of TopK for."""


def ordered(op: Writer, x: Tensor, zeros: bool = False, lowest: bool = False) -> list[Tensor]:
    """Keys whose order is that of the numbers, the one that counts most first.

    With `zeros`, -0 is less than 0; with `lowest`, what is no number is before all others.
    """
    if x.dtype == DOUBLE:
        none = op.IsNaN(x)
        flag = none.cast(INT32)
        levels = [op.Neg(flag) if lowest else flag, op.where(none, 0.0, x)]
        return [*levels, op.Neg(_is_less_than_zero(op, x).cast(INT32))] if zeros else levels
    if x.dtype in ENDS:
        dtype, end = (DOUBLE, 1e300) if zeros else ENDS[x.dtype]
        wide = x.cast(dtype)
        bound = op.Max(wide, op.like(-end, wide)) if lowest else op.Min(wide, op.like(end, wide))
        if zeros:  # too little to change anything but a zero
            bound = bound + op.Clip(op.Reciprocal(wide), op.like(-1, wide), op.like(1, wide)) * 1e-300
        return [op.where(op.IsNaN(x), op.like(-np.inf if lowest else np.inf, wide), bound)]
    if x.dtype == UINT64:
        return [op.BitwiseXor(x, op.constant(np.asarray(2**63, np.uint64))).cast(INT64)]
    if x.dtype in ORDERED:
        return [x]
    return [x.cast(INT64 if x.dtype == UINT32 else INT32)]


def _is_less_than_zero(op: Writer, x: Tensor) -> Tensor:
    """Whether it is a zero with a sign."""
    return op.And(op.Equal(x, 0), is_negative(op, x))


def _placed(op: Writer, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """One key from the lowest up, and from where each came."""
    count = vector(op, [size(op, x, axis)])
    values, places = op.many("TopK", 2, x, count, axis=axis, largest=0, sorted=1)
    for found in (values, places):
        found.value.shape = x.value.shape
    return values, places


def order(op: Writer, levels: Sequence[Tensor], axis: int) -> Tensor:
    """From where each element comes when all are sorted by keys, the first of which counts most."""
    places: Tensor | None = None
    for level in reversed(levels):
        moved = level if places is None else op.GatherElements(level, places, axis=axis)
        _, step = _placed(op, moved, axis)
        places = step if places is None else op.GatherElements(places, step, axis=axis)
    assert places is not None
    return places


def sort(op: Writer, operands: Sequence[Tensor], axis: int, keys: int = 1) -> list[Tensor]:
    """All operands in the order of the first ones."""
    first = operands[0]
    length = first.dims[axis] if first.dims is not None else None
    if length in (0, 1):
        return list(operands)
    if len(operands) == 1 and first.dtype in ORDERED and first.dtype not in (FLOAT, DOUBLE):
        return [_placed(op, first, axis)[0]]
    places = order(op, [level for key in operands[:keys] for level in ordered(op, key)], axis)
    return [op.GatherElements(x, places, axis=axis) for x in operands]


def top_k(op: Writer, x: Tensor, k: int, axis: int) -> tuple[Tensor, Tensor]:
    """The largest, and where they were as int32; what is no number is larger than all, and 0 than -0.

    XLA looks at the sign of what is no number, too: where numbers were turned to their negatives for it, it is less.
    """
    made = x.value.producer()
    levels = ordered(op, x, zeros=True, lowest=made is not None and made.op_type == "Neg")
    if len(levels) > 1:
        places = order(op, [op.Neg(level) for level in levels], axis)
        found = op.Slice(places, op.ints([0]), op.ints([k]), op.ints([axis]))
        return op.GatherElements(x, found, axis=axis), found.cast(INT32)
    values, found = op.many("TopK", 2, levels[0], op.ints([k]), axis=axis, largest=1, sorted=1)
    values = values if levels[0] is x else op.GatherElements(x, found, axis=axis)
    return values, found.cast(INT32)


def is_before(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """Whether one is before another where every float has its place: a negative zero before zero, NaN last."""
    if not is_float(a):
        return a.cast(INT32) < b.cast(INT32) if a.dtype == BOOL else a < b
    both = op.And(op.Equal(a, 0), op.Equal(b, 0))
    zeros = op.And(both, op.And(is_negative(op, a), op.Not(is_negative(op, b))))
    last = op.And(op.IsNaN(b), op.Not(op.IsNaN(a)))
    return op.Or(a < b, op.Or(zeros, last))
