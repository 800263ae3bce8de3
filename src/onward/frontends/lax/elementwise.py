"""Arithmetic on numbers one by one, with XLA's meaning of overflow, of division by zero and of what is no number.

Whole numbers are exact for every value. ONNX Runtime's Min, Max, Clip and Sign are wrong for numbers of 64 bits beyond
2³¹, and Div ends the process for the lowest number by -1, so that these are written around.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.frontends.writer import Writer
from onward.graph.build import Tensor

BOOL, FLOAT, DOUBLE = ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.DOUBLE
INT32, INT64, UINT32, UINT64 = ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64
WIDE = {INT64, UINT64}
"""Whole numbers that ONNX Runtime cannot compare by Min and Max."""
HALVES = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
FLOATS = {FLOAT, DOUBLE, *HALVES}
EIGHTS = {
    ir.DataType.FLOAT8E4M3FN,
    ir.DataType.FLOAT8E4M3FNUZ,
    ir.DataType.FLOAT8E5M2,
    ir.DataType.FLOAT8E5M2FNUZ,
}


def is_float(x: Tensor) -> bool:
    return x.dtype in FLOATS


def is_whole(x: Tensor) -> bool:
    return x.dtype.is_integer()


def is_signed(x: Tensor) -> bool:
    return x.dtype.is_integer() and x.dtype.is_signed()


def divide(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """Whole numbers are divided towards zero; by zero it is all bits set, and the lowest by -1 is itself."""
    if not is_whole(a):
        return op.Div(a, b)
    if _is_harmless(op, b):
        return op.Div(a, b)
    if not is_signed(a):
        none = op.Equal(b, 0)
        return op.where(none, int(np.iinfo(a.dtype.numpy()).max), op.Div(a, b + none.cast(b.dtype)))
    quotient = op.Div(a, _safe(op, b))
    quotient = op.Where(op.Equal(b, -1), op.Neg(a), quotient)
    return op.where(op.Equal(b, 0), -1, quotient)


def remainder(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """Of the sign of the first; of whole numbers, by zero it is the first itself."""
    if not is_whole(a):
        return op.Mod(a, b, fmod=1)
    if _is_harmless(op, b):
        return a - op.Div(a, b) * b
    if not is_signed(a):
        none = op.Equal(b, 0)
        safe = b + none.cast(b.dtype)
        return op.Where(none, a, a - op.Div(a, safe) * safe)
    safe = _safe(op, b)
    return op.Where(op.Equal(b, 0), a, a - op.Div(a, safe) * safe)


def _is_harmless(op: Writer, divisor: Tensor) -> bool:
    """Whether it is known not to be 0, nor -1."""
    known = op.known(divisor)
    return known is not None and not np.any((known == 0) | (known == -1 if known.dtype.kind == "i" else False))


def _safe(op: Writer, divisor: Tensor) -> Tensor:
    """With 1 in place of 0 and -1: they alone are 0 or 1 after adding 1."""
    raised = divisor + 1
    return op.where(op.And(raised >= 0, raised <= 1), 1, divisor)


def maximum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == BOOL:
        return op.Or(a, b)
    return op.Where(op.Greater(a, b), a, b) if a.dtype in WIDE else op.Max(a, b)


def minimum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == BOOL:
        return op.And(a, b)
    return op.Where(op.Less(a, b), a, b) if a.dtype in WIDE else op.Min(a, b)


def clamp(op: Writer, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    """Where the limits cross, the upper one counts."""
    if low.rank == 0 and high.rank == 0 and x.dtype in {FLOAT, INT32}:
        limits = op.known(low), op.known(high)
        if limits[0] is not None and limits[1] is not None and limits[0] <= limits[1]:
            return op.Clip(x, low, high)
    return minimum(op, maximum(op, x, low), high)


def negated(op: Writer, x: Tensor) -> Tensor:
    return op.Neg(x) if is_float(x) or is_signed(x) else op.like(0, x) - x


def sign(op: Writer, x: Tensor) -> Tensor:
    if is_whole(x):
        above = (x > 0).cast(x.dtype)
        return above - (x < 0).cast(x.dtype) if is_signed(x) else above
    wide = x.cast(FLOAT) if x.dtype in HALVES else x  # the kernel for half precision takes no number for a zero
    return op.Sign(wide).cast(x.dtype)


def absolute(op: Writer, x: Tensor) -> Tensor:
    return x if is_whole(x) and not is_signed(x) else op.Abs(x)


def whole_power(op: Writer, x: Tensor, exponent: int) -> Tensor:
    """By squares, as XLA does it; a negative one is the inverse."""
    if exponent == 0:
        return op.filled(x, 1)
    left, base, result = abs(exponent), x, None
    while left:
        if left % 2:
            result = base if result is None else result * base
        left //= 2
        base = base * base if left else base
    assert result is not None
    return op.Reciprocal(result) if exponent < 0 else result


def round_away(op: Writer, x: Tensor) -> Tensor:
    """Halves away from zero."""
    size = op.Abs(x)
    down = op.Floor(size)
    nearest = op.where(size - down >= 0.5, down + 1.0, down)
    turned = op.Where(x < 0, -nearest, nearest)
    return op.Where(op.Equal(nearest, size), x, turned)


def convert(op: Writer, x: Tensor, to: ir.DataType) -> Tensor:
    """Floats that a whole number cannot hold become the nearest one that it can, and no number becomes 0."""
    if x.dtype == to:
        return x
    if to == BOOL:
        return op.Not(op.Equal(x, 0))
    if to in EIGHTS:
        return op.Cast(x, to=int(to), saturate=0)
    if not is_float(x) or not to.is_integer():
        return op.converted(x, to)
    return _held(op, x, to)


def _held(op: Writer, x: Tensor, to: ir.DataType) -> Tensor:
    limits = np.iinfo(to.numpy())
    number = op.where(op.IsNaN(x), 0, x)
    if to.itemsize < 4:
        wide = number.cast(FLOAT) if number.dtype in HALVES else number
        held = op.Clip(wide, op.like(int(limits.min), wide), op.like(int(limits.max), wide))
        return held.cast(INT32).cast(to)
    wide = number.cast(DOUBLE)
    if to.itemsize == 4:
        held = op.Clip(wide, op.like(int(limits.min), wide), op.like(int(limits.max), wide))
        return held.cast(INT64).cast(to) if to == UINT32 else held.cast(to)
    beyond = op.like(float(limits.max), wide)  # one more than the largest, which no float is
    low = op.like(int(limits.min), wide)
    inside = op.Max(op.where(wide >= beyond, 0, wide), low)
    if to == UINT64:
        half = op.like(2.0**63, wide)
        upper = inside >= half
        found = op.where(upper, inside - half, inside).cast(INT64).cast(UINT64)
        found = found + upper.cast(UINT64) * op.constant(np.asarray(2**63, np.uint64))
    else:
        found = inside.cast(INT64)
    return op.where(wide >= beyond, int(limits.max), found)
