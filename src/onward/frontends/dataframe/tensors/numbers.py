"""Arithmetic and functions of numbers as numpy has them, where ONNX has another meaning or no kernel in float64."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onward.frontends.dataframe.tensors.integers import floor_by, floor_divide, floor_remainder, remainder_by
from onward.frontends.decompose import special
from onward.graph.build import Tensor

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _known(x: Tensor) -> int | None:
    """The number of a constant of one element."""
    found = x.value.const_value
    return None if found is None or found.size != 1 else int(found.numpy().reshape(-1)[0])


def floor_division(x: Tensor, y: Tensor) -> Tensor:
    """`x // y` of integers; 0 where y is 0."""
    known = _known(y)
    return floor_by(x, known) if known is not None and known > 0 else floor_divide(x, y)


def modulo(x: Tensor, y: Tensor) -> Tensor:
    """`x % y` of integers, with the sign of y; 0 where y is 0."""
    known = _known(y)
    return remainder_by(x, known) if known is not None and known > 0 else floor_remainder(x, y)


def float_modulo(x: Tensor, y: Tensor) -> Tensor:
    """`x % y` of floats, with the sign of y; NaN where y is 0."""
    op, zero = x.op, x.op.like(0.0, x)
    rest = op.Mod(x, y, fmod=1)
    is_other_side = op.And(op.Not(op.Equal(rest, zero)), op.Xor(rest < zero, y < zero))
    # A rest of 0 has the sign of y in numpy; 0 and -0 are equal, and no other step tells them apart.
    return op.Where(is_other_side, rest + y, rest)


def float_floor_division(x: Tensor, y: Tensor) -> Tensor:
    """`x // y` of floats, from the exact rest, as numpy does it: the quotient alone may round up to the next number."""
    op = x.op
    rest = float_modulo(x, y)
    quotient = (x - rest) / y
    whole = op.Floor(quotient)
    whole = op.Where(quotient - whole > 0.5, whole + 1.0, whole)
    # With y = 0 or x infinite the rest is NaN, and the quotient is what it is without a rest.
    return op.Where(op.Equal(y, op.like(0.0, y)), x / y, whole)


def whole_power(x: Tensor, exponent: int) -> Tensor:
    """Integers to a fixed power, by products: Pow goes through float64. Beyond the dtype it wraps, as in numpy."""
    op = x.op
    result: Tensor | None = None
    base = x
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return op.filled(x, 1) if result is None else result


def simple_power(x: Tensor, exponent: float) -> Tensor:
    """The powers that numpy does not compute by pow."""
    op = x.op
    if exponent == 2:
        return x * x
    if exponent == 0.5:
        return op.Sqrt(x)
    return op.Reciprocal(x) if exponent == -1 else x


def rounded(x: Tensor, decimals: int) -> Tensor:
    """As numpy rounds: scaled, to the nearest even number, and back; what is not finite stays as it is."""
    op = x.op
    if not decimals:
        return op.Round(x)
    if decimals > 0:
        factor = op.like(10.0**decimals, x)
        made = op.Round(x * factor) / factor
    else:
        factor = op.like(10.0**-decimals, x)
        made = op.Round(x / factor) * factor
    return made


def truncated(x: Tensor) -> Tensor:
    op = x.op
    return op.Where(x < op.like(0.0, x), op.Ceil(x), op.Floor(x))


def larger(x: Tensor, y: Tensor) -> Tensor:
    """The larger of two, NaN if one is; of int64 without Max, which ONNX Runtime gets wrong from 2³¹ on."""
    if x.dtype not in _FLOATS:
        return x.op.Where(x < y, y, x)
    limit = _limit(y)
    return x.op.Max(x, y) if limit is None else between(x, low=limit)


def smaller(x: Tensor, y: Tensor) -> Tensor:
    """The smaller of two, as `larger`."""
    if x.dtype not in _FLOATS:
        return x.op.Where(y < x, y, x)
    limit = _limit(y)
    return x.op.Min(x, y) if limit is None else between(x, high=limit)


def _limit(x: Tensor) -> float | None:
    """The number of a constant of one element, if it is one."""
    found = x.value.const_value
    number = np.nan if found is None or found.size != 1 else float(found.numpy().reshape(-1)[0])
    return None if np.isnan(number) else number


def between(x: Tensor, low: float = -math.inf, high: float = math.inf) -> Tensor:
    """A float no lower and no higher than constants; NaN stays NaN. Without a limit, Clip takes the largest number."""
    op = x.op
    return op.Clip(x, *(op.constant(np.asarray(limit, x.dtype.numpy()), x.dtype) for limit in (low, high)))


def log1p(x: Tensor) -> Tensor:
    """log(1 + x), less what `1 + x` rounds away; of -1 and infinity, for which that is NaN, their neighbours tell."""
    op, limits = x.op, np.finfo(x.dtype.numpy())
    near = between(x, float(limits.epsneg) - 1, float(limits.max))
    whole = near + 1.0
    return op.Log(x + 1.0) - ((whole - 1.0) - near) / whole


def expm1(x: Tensor) -> Tensor:
    return special.expm1(x.op, x)


def log2(x: Tensor) -> Tensor:
    return _exact_at_powers(x, 2.0)


def log10(x: Tensor) -> Tensor:
    return _exact_at_powers(x, 10.0)


def _exact_at_powers(x: Tensor, base: float) -> Tensor:
    """A logarithm that is whole where x is a power of the base: a quotient of logarithms may be off by its last bit."""
    op = x.op
    found = op.Log(x) / math.log(base)
    whole = op.Round(found)
    is_power = op.Equal(op.Pow(op.like(base, x), whole), x)
    return op.Where(op.And(is_power, op.Not(op.IsInf(x))), whole, found)


def exp2(x: Tensor) -> Tensor:
    return x.op.Pow(x.op.like(2.0, x), x)


def tan(x: Tensor) -> Tensor:
    return x.op.Sin(x) / x.op.Cos(x)


def tanh(x: Tensor) -> Tensor:
    return x.op.Tanh(x)


def sinh(x: Tensor) -> Tensor:
    """By exp(|x|) - 1, so that nothing is lost near zero; from half the exponent, so that nothing overflows early."""
    op = x.op
    size = op.Abs(x)
    small = expm1(op.Min(size, op.like(20.0, x)))
    near = (small + small / (small + 1.0)) * 0.5
    half = op.Exp(size * 0.5)
    return op.Where(x < op.like(0.0, x), op.like(-1.0, x), op.like(1.0, x)) * op.Where(
        size < op.like(20.0, x), near, half * 0.5 * half
    )


def cosh(x: Tensor) -> Tensor:
    op = x.op
    half = op.Exp(op.Abs(x) * 0.5)
    return half * 0.5 * half + 0.5 / half / half


_ARCTAN_TERMS = [(-1) ** k / (2 * k + 1) for k in range(14, -1, -1)]


def arctan(x: Tensor) -> Tensor:
    """Of 1 / x beyond one; the angle is halved three times, and the rest is its series."""
    op, one = x.op, x.op.like(1.0, x)
    size = op.Abs(x)
    is_far = size > one
    t = op.Where(is_far, one / size, size)
    for _ in range(3):
        t = t / (op.Sqrt(t * t + 1.0) + 1.0)
    angle = special.horner(op, t * t, _ARCTAN_TERMS) * t * 8.0
    angle = op.Where(is_far, math.pi / 2 - angle, angle)
    return op.Where(x < op.like(0.0, x), -angle, angle)


def arcsin(x: Tensor) -> Tensor:
    return arctan(x / x.op.Sqrt((1.0 - x) * (x + 1.0)))


def arccos(x: Tensor) -> Tensor:
    return arctan(x.op.Sqrt((1.0 - x) / (x + 1.0))) * 2.0


def arctan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of a point. Of the two sides of the line to the left, that of the sign of y, -0 included."""
    op, zero = x.op, x.op.like(0.0, x)
    below = op.Or(y < zero, op.And(op.Equal(y, zero), op.Reciprocal(y) < zero))
    left = op.Or(x < zero, op.And(op.Equal(x, zero), op.Reciprocal(x) < zero))
    height, width = op.Abs(y), op.Abs(x)
    both = op.Or(op.And(op.Equal(height, zero), op.Equal(width, zero)), op.And(op.IsInf(height), op.IsInf(width)))
    ratio = op.Where(both, op.Where(op.IsInf(width), op.like(1.0, x), zero), height / width)
    angle = arctan(ratio)
    angle = op.Where(left, math.pi - angle, angle)
    return op.Where(below, -angle, angle)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Scaled by the larger side, so that squares do not overflow."""
    op = x.op
    a, b = op.Abs(x), op.Abs(y)
    large, small = op.Max(a, b), op.Min(a, b)
    ratio = small / op.Where(op.Equal(large, op.like(0.0, x)), op.like(1.0, x), large)
    made = large * op.Sqrt(ratio * ratio + 1.0)
    return op.Where(op.Or(op.IsInf(a), op.IsInf(b)), op.like(np.inf, x), made)


def cbrt(x: Tensor) -> Tensor:
    """A power of one third, and one step of Newton's method that mends its last digits."""
    op, zero = x.op, x.op.like(0.0, x)
    size = op.Abs(x)
    guess = op.Pow(size, op.like(1 / 3, x))
    safe = op.Where(op.Or(op.Equal(size, zero), op.IsInf(size)), op.like(1.0, x), guess)
    better = op.Where(op.Equal(safe, guess), guess - (guess - size / (safe * safe)) / 3.0, guess)
    return op.Where(x < zero, -better, better)
