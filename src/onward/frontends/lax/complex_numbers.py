"""Complex numbers, as a real and an imaginary part of their own."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.frontends.decompose import special as wide
from onward.frontends.lax import special
from onward.frontends.tensorflow.rules.elementwise import atan2
from onward.frontends.tensorflow.values import Complex
from onward.frontends.writer import Writer
from onward.graph.build import Tensor


def times(a: Complex, b: Complex) -> Complex:
    return Complex(a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real)


def conjugate(x: Complex) -> Complex:
    return Complex(x.real, -x.imaginary)


def scaled(x: Complex, factor: Tensor | float) -> Complex:
    return Complex(x.real * factor, x.imaginary * factor)


def divided(op: Writer, a: Complex, b: Complex) -> Complex:
    """By parts of the divisor that are at most 1 in size, so that their squares stay in range."""
    size = op.Max(op.Abs(b.real), op.Abs(b.imaginary))
    calm = op.where(op.And(size > 0.0, size < math.inf), size, op.like(1, size))
    near = Complex(b.real / calm, b.imaginary / calm)
    square = near.real * near.real + near.imaginary * near.imaginary
    above = times(a, conjugate(near))
    return Complex(above.real / square / calm, above.imaginary / square / calm)


def magnitude(op: Writer, x: Complex) -> Tensor:
    """Of the larger part, and how many times that it is, so that squares stay in range."""
    a, b = op.Abs(x.real), op.Abs(x.imaginary)
    large, small = op.Max(a, b), op.Min(a, b)
    safe = op.where(op.And(large > 0.0, large < math.inf), large, op.like(1, large))
    ratio = small / safe
    return op.where(op.Equal(large, math.inf), large, large * op.Sqrt(ratio * ratio + 1.0))


def angle(op: Writer, x: Complex) -> Tensor:
    return atan2(op, x.imaginary, x.real)  # type: ignore[arg-type]


def exponential(op: Writer, x: Complex) -> Complex:
    size = op.Exp(x.real)
    return Complex(size * op.Cos(x.imaginary), size * op.Sin(x.imaginary))


def logarithm(op: Writer, x: Complex) -> Complex:
    return Complex(op.Log(magnitude(op, x)), angle(op, x))


def power(op: Writer, x: Complex, y: Complex) -> Complex:
    """Zero to a power is zero, or one to the power of zero."""
    found = exponential(op, times(y, logarithm(op, x)))
    none = op.Equal(op.Abs(x.real) + op.Abs(x.imaginary), 0)
    one = op.Equal(op.Abs(y.real) + op.Abs(y.imaginary), 0).cast(x.real.dtype)
    return Complex(op.Where(none, one, found.real), op.where(none, 0.0, found.imaginary))


def whole_power(op: Writer, x: Complex, exponent: int) -> Complex:
    """By squares."""
    left, base, result = abs(exponent), x, None
    while left:
        if left % 2:
            result = base if result is None else times(result, base)
        left //= 2
        base = times(base, base) if left else base
    one = Complex(op.filled(x.real, 1.0), op.zeros_like(x.real))
    if result is None:
        return one
    return divided(op, one, result) if exponent < 0 else result


def square_root(op: Writer, x: Complex) -> Complex:
    """The one whose real part is not negative: half of what the size and the real part make together."""
    size = magnitude(op, x)
    half = op.Sqrt((size + op.Abs(x.real)) * 0.5)
    other = op.Abs(x.imaginary) * 0.5 / op.where(op.Equal(half, 0), 1.0, half)
    right = x.real >= 0.0
    imaginary = op.Where(right, other, half)
    return Complex(op.Where(right, half, other), op.Where(x.imaginary < 0.0, -imaginary, imaginary))


def direction(op: Writer, x: Complex) -> Complex:
    size = magnitude(op, x)
    safe = op.where(op.Equal(size, 0), 1.0, size)
    return Complex(x.real / safe, x.imaginary / safe)


def hyperbolic(op: Writer, x: Tensor) -> tuple[Tensor, Tensor]:
    """The hyperbolic sine and cosine."""
    if x.dtype == ir.DataType.FLOAT:
        return op.Sinh(x), op.Cosh(x)
    return special.wide_sinh(op, x), special.wide_cosh(op, x)


def sine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.imaginary)
    return Complex(op.Sin(x.real) * cosh, op.Cos(x.real) * sinh)


def cosine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.imaginary)
    return Complex(op.Cos(x.real) * cosh, -(op.Sin(x.real) * sinh))


def hyperbolic_sine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.real)
    return Complex(sinh * op.Cos(x.imaginary), cosh * op.Sin(x.imaginary))


def hyperbolic_cosine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.real)
    return Complex(cosh * op.Cos(x.imaginary), sinh * op.Sin(x.imaginary))


def hyperbolic_tangent(op: Writer, x: Complex) -> Complex:
    """By exp(-2|x|), which is never too large: of large numbers it is 1, whatever the imaginary part is."""
    size = op.Abs(x.real)
    small, sin, cos = op.Exp(size * -2.0), op.Sin(x.imaginary), op.Cos(x.imaginary)
    less = wide.expm1(op, size * -2.0)
    below = less * less + small * cos * cos * 4.0
    real = op.Sign(x.real) * op.Neg(wide.expm1(op, size * -4.0)) / below
    far, flat = op.Equal(size, math.inf), op.Equal(x.imaginary, 0.0)
    imaginary = op.where(flat, x.imaginary, small * sin * cos * 4.0 / below)
    return Complex(op.Where(far, op.Sign(x.real), real), op.where(far, 0.0, imaginary))


def tangent(op: Writer, x: Complex) -> Complex:
    turned = hyperbolic_tangent(op, Complex(op.Neg(x.imaginary), x.real))
    return Complex(turned.imaginary, op.Neg(turned.real))


def exponential_less_one(op: Writer, x: Complex) -> Complex:
    """By the sine of half the angle, exact near zero."""
    half = op.Sin(x.imaginary * 0.5)
    real = wide.expm1(op, x.real) * op.Cos(x.imaginary) - half * half * 2.0
    return Complex(real, op.Exp(x.real) * op.Sin(x.imaginary))


def logarithm_of_one_more(op: Writer, x: Complex) -> Complex:
    """Near one by how far the square of the size is from it."""
    more = Complex(x.real + 1.0, x.imaginary)
    far = logarithm(op, more)
    less = x.real * (x.real + 2.0) + x.imaginary * x.imaginary
    near = wide.log1p(op, op.where(op.Abs(less) < 0.5, less, 0.0)) * 0.5
    return Complex(op.Where(op.Abs(less) < 0.5, near, far.real), far.imaginary)
