"""Complex numbers, as a real and an imaginary part of their own."""

from __future__ import annotations

import math

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
    up, down = op.Exp(x), op.Exp(-x)
    return (up - down) * 0.5, (up + down) * 0.5


def sine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.imaginary)
    return Complex(op.Sin(x.real) * cosh, op.Cos(x.real) * sinh)


def cosine(op: Writer, x: Complex) -> Complex:
    sinh, cosh = hyperbolic(op, x.imaginary)
    return Complex(op.Cos(x.real) * cosh, -(op.Sin(x.real) * sinh))


def tangent_of_hyperbola(op: Writer, x: Complex) -> Complex:
    """Of twice the argument, with the parts that grow taken away."""
    tanh, tan = op.Tanh(x.real), op.Sin(x.imaginary) / op.Cos(x.imaginary)
    one = op.filled(tanh, 1.0)
    return divided(op, Complex(tanh, tan), Complex(one, tanh * tan))
