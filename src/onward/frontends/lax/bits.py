"""The bits of numbers: shifts, counts, and numbers of one kind read as another.

ONNX Runtime shifts uint8, uint32 and uint64 only, and ONNX has no op that reads the bits of floats before opset 26: by
arithmetic, that a number is no number is kept, but not which of these it is.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.elementwise import DOUBLE, FLOAT, INT32, INT64, UINT32, UINT64, is_signed
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

BITCAST = 26
"""The first opset with an op for it."""
UNSIGNED = {
    1: ir.DataType.UINT8,
    2: ir.DataType.UINT16,
    4: ir.DataType.UINT32,
    8: ir.DataType.UINT64,
}
FRACTIONS = {FLOAT: 23, ir.DataType.FLOAT16: 10, ir.DataType.BFLOAT16: 7, DOUBLE: 52}
"""How many bits follow the exponent."""


def width(x: Tensor) -> int:
    return int(x.dtype.itemsize) * 8


def unsigned(x: Tensor) -> Tensor:
    """The same bits as a number that is not negative."""
    return x.cast(UNSIGNED[int(x.dtype.itemsize)])


def invert(op: Writer, x: Tensor) -> Tensor:
    return op.Not(x) if x.dtype == ir.DataType.BOOL else op.BitwiseNot(x)


def _shifted(op: Writer, x: Tensor, count: Tensor, direction: str) -> Tensor:
    """Of bits that are no sign. Counts of the width and more, which a negative one is too, leave nothing."""
    bits, wide = width(x), unsigned(x)
    if x.dtype.itemsize == 2:
        wide = wide.cast(UINT32)
    known = op.known(count)
    places = unsigned(count).cast(wide.dtype)
    if known is not None and np.all((known >= 0) & (known < bits)):
        return op.BitShift(wide, places, direction=direction).cast(x.dtype)
    beyond = places >= bits
    found = op.BitShift(wide, op.where(beyond, 0, places), direction=direction)
    return op.where(beyond, 0, found).cast(x.dtype)


def shift_left(op: Writer, x: Tensor, count: Tensor) -> Tensor:
    return _shifted(op, x, count, "LEFT")


def shift_right_logical(op: Writer, x: Tensor, count: Tensor) -> Tensor:
    return _shifted(op, x, count, "RIGHT")


def shift_right_arithmetic(op: Writer, x: Tensor, count: Tensor) -> Tensor:
    """The first bit fills what becomes free: a negative number is turned to one that is not, and back."""
    if not is_signed(x):
        signed = ir.DataType[x.dtype.name.removeprefix("U")]
        return shift_right_arithmetic(op, x.cast(signed), count.cast(signed)).cast(x.dtype)
    ones = op.Neg((x < 0).cast(x.dtype))
    return op.BitwiseXor(_shifted(op, op.BitwiseXor(x, ones), count, "RIGHT"), ones)


def _wide(x: Tensor) -> Tensor:
    """The same bits in a dtype that can be shifted."""
    return unsigned(x).cast(UINT64 if x.dtype.itemsize == 8 else UINT32)


def _right(op: Writer, x: Tensor, places: int) -> Tensor:
    return op.BitShift(x, op.like(places, x), direction="RIGHT")


def population_count(op: Writer, x: Tensor) -> Tensor:
    """How many bits are set: in pairs, in fours, in bytes, and of all bytes by a product."""
    wide = _wide(x)
    bits = width(wide)

    def pattern(byte: int) -> Tensor:
        return op.like(int.from_bytes(bytes([byte]) * (bits // 8), "little"), wide)

    pairs = wide - op.BitwiseAnd(_right(op, wide, 1), pattern(0x55))
    fours = op.BitwiseAnd(pairs, pattern(0x33)) + op.BitwiseAnd(_right(op, pairs, 2), pattern(0x33))
    eights = op.BitwiseAnd(fours + _right(op, fours, 4), pattern(0x0F))
    return _right(op, eights * pattern(0x01), bits - 8).cast(x.dtype)


def leading_zeros(op: Writer, x: Tensor) -> Tensor:
    """All bits below the first are set, and those that are not are counted."""
    wide = _wide(x)
    places = 1
    while places < width(x):
        wide = op.BitwiseOr(wide, _right(op, wide, places))
        places *= 2
    count = population_count(op, op.BitwiseNot(wide))
    return (count - (width(wide) - width(x))).cast(x.dtype)


def bitcast(op: Writer, x: Tensor, to: ir.DataType) -> Tensor:
    """The bits as numbers of another dtype: narrower ones make a new last axis, wider ones take the last axis."""
    if x.dtype == to:
        return x
    if ir.DataType.BOOL in (x.dtype, to):
        raise UnsupportedError("the bits of booleans have no order: compare with zero instead")
    before, after = int(x.dtype.itemsize), int(to.itemsize)
    bits = _as_bits(op, x)
    if before > after:
        bits = _split(op, bits, after)
    elif before < after:
        bits = _joined(op, bits, after)
    return _from_bits(op, bits, to)


def _as_bits(op: Writer, x: Tensor) -> Tensor:
    if x.dtype.is_integer():
        return unsigned(x)
    if op.opset >= BITCAST:
        return op.BitCast(x, to=int(UNSIGNED[int(x.dtype.itemsize)]))
    if x.dtype not in FRACTIONS:
        raise UnsupportedError(f"the bits of {x.dtype.name.lower()} are read at opset {BITCAST} and later only")
    bits = _of_float(op, x if x.dtype == DOUBLE else x.cast(FLOAT))
    if x.dtype in (FLOAT, DOUBLE):
        return bits
    if x.dtype == ir.DataType.BFLOAT16:
        return _right(op, bits, 16).cast(ir.DataType.UINT16)
    return _half_of(op, bits, op.Abs(x.cast(FLOAT)))


def _from_bits(op: Writer, bits: Tensor, to: ir.DataType) -> Tensor:
    if to.is_integer():
        return bits.cast(to)
    if op.opset >= BITCAST:
        return op.BitCast(bits, to=int(to))
    if to not in FRACTIONS:
        raise UnsupportedError(f"bits are read as {to.name.lower()} at opset {BITCAST} and later only")
    return _to_float(op, bits, to)


def _split(op: Writer, bits: Tensor, size: int) -> Tensor:
    count = int(bits.dtype.itemsize) // size
    wide = bits.cast(UINT64 if bits.dtype.itemsize == 8 else UINT32)
    places = op.constant((np.arange(count) * size * 8).astype(wide.dtype.numpy()))
    return op.BitShift(op.unsqueeze(wide, [-1]), places, direction="RIGHT").cast(UNSIGNED[size])


def _joined(op: Writer, bits: Tensor, size: int) -> Tensor:
    dtype = UINT64 if size == 8 else UINT32
    step = int(bits.dtype.itemsize)
    result = None
    for i in range(size // step):
        one = op.Gather(bits, op.index(i), axis=-1).cast(dtype)
        moved = one if i == 0 else op.BitShift(one, op.like(i * step * 8, one), direction="LEFT")
        result = moved if result is None else op.BitwiseOr(result, moved)
    assert result is not None
    return result.cast(UNSIGNED[size])


LEAST = {FLOAT: -149, DOUBLE: -1074}
"""The exponent of the least float there is."""


def is_negative(op: Writer, x: Tensor) -> Tensor:
    """Also of a zero with a sign; what is no number is not."""
    return op.Where(op.Equal(x, 0), op.Reciprocal(x), x) < 0


def _of_float(op: Writer, x: Tensor) -> Tensor:
    """Sign, exponent and fraction: a first guess at the exponent by a logarithm, mended by comparison."""
    digits, least, size = FRACTIONS[x.dtype], LEAST[x.dtype], op.Abs(x).cast(DOUBLE)
    with np.errstate(over="ignore"):  # all that a float can be a multiple of, and one more
        numbers = np.ldexp(1.0, np.arange(least, 3 - least - digits))
    powers, last = op.constant(numbers), op.index(len(numbers) - 1)
    number = op.And(size < np.inf, size > 0.0)
    safe = op.where(number, size, op.like(1, size))
    place = op.Floor(op.Log(safe) * (1 / np.log(2))).cast(INT64) - least
    place = op.Max(op.Min(place, last), op.index(0))
    place = op.where(op.Gather(powers, place) > safe, place - 1, place)
    place = op.where(op.Gather(powers, op.Min(place + 1, last)) <= safe, place + 1, place)
    normal = op.Max(place - (digits - 1), op.index(0))  # the exponent as it is stored
    unit = op.Gather(powers, op.Max(place - digits, op.index(0)))
    fraction = (safe / unit).cast(INT64)
    stored = op.where(normal > 0, fraction - 2**digits + normal * 2**digits, fraction)
    top = (2 ** (width(x) - 1 - digits) - 1) << digits
    endless = op.where(op.Equal(size, np.inf), op.index(top), op.index(top + 2 ** (digits - 1)))
    other = op.where(op.Equal(size, 0), op.index(0), endless)
    bits = op.where(number, stored, other).cast(UNSIGNED[int(x.dtype.itemsize)])
    return op.BitwiseOr(bits, is_negative(op, x).cast(bits.dtype) * 2 ** (width(x) - 1))


def _half_of(op: Writer, bits: Tensor, size: Tensor) -> Tensor:
    """The bits in half precision of a number that it holds, of those in single precision."""
    sign = op.BitwiseAnd(_right(op, bits, 16), op.like(2**15, bits))
    normal = _right(op, op.BitwiseAnd(bits, op.like(2**31 - 1, bits)) - (112 << 23), 13)
    small = op.where(size < 2.0**-14, size * 2.0**24, 0.0).cast(INT32).cast(UINT32)
    endless = op.where(op.IsNaN(size), op.like(0x7E00, bits), op.like(0x7C00, bits))
    found = op.where(size < 2.0**-14, small, op.where(size < np.inf, normal, endless))
    return op.BitwiseOr(found, sign).cast(ir.DataType.UINT16)


def _to_float(op: Writer, bits: Tensor, to: ir.DataType) -> Tensor:
    """The fraction with its hidden bit, in units that the exponent and the sign tell."""
    digits, work = FRACTIONS[to], DOUBLE if to == DOUBLE else FLOAT
    exponents = 2 ** (width(bits) - 1 - digits)
    wide = bits.cast(UINT64 if to == DOUBLE else UINT32)
    place = _right(op, wide, digits).cast(INT32)
    least = 2 - exponents // 2 - digits
    units = np.ldexp(1.0, np.maximum(np.arange(exponents), 1) - 1 + least)
    units[-1] = np.ldexp(1.0, (1024 if to == DOUBLE else 128) - digits)  # with the hidden bit it is endless
    hidden = np.where(np.arange(exponents) > 0, 2.0**digits, 0.0)
    fraction = op.BitwiseAnd(wide, op.like(2**digits - 1, wide)).cast(INT64).cast(work)
    fraction = fraction + op.Gather(op.constant(np.tile(hidden, 2).astype(work.numpy())), place)
    value = fraction * op.Gather(op.constant(np.concatenate([units, -units]).astype(work.numpy())), place)
    rest = op.BitwiseAnd(wide, op.like(2 ** (width(bits) - 1) - 1, wide))
    none = rest > ((exponents - 1) << digits)
    return op.where(none, np.nan, value).cast(to)


def next_after(op: Writer, x: Tensor, towards: Tensor) -> Tensor:
    """The nearest number on the way to another: one more or less as bits."""
    if x.dtype not in FRACTIONS:
        raise UnsupportedError(f"the number next to one of {x.dtype.name.lower()} is not supported")
    bits = _as_bits(op, x)
    sign = 2 ** (width(bits) - 1)
    zero, same = op.Equal(x, 0), op.Equal(x, towards)
    grows = op.Equal((towards > x).cast(INT32), (x > 0).cast(INT32))
    wide = bits.cast(UINT64 if x.dtype == DOUBLE else INT64)
    moved = op.where(grows, wide + 1, wide - 1)
    least = op.where(towards < 0, op.like(sign + 1, wide), op.like(1, wide))
    found = _from_bits(op, op.where(zero, least, moved).cast(bits.dtype), x.dtype)
    found = op.Where(same, towards, found)
    return op.Where(op.Or(op.IsNaN(x), op.IsNaN(towards)), x + towards, found)
