"""Special functions, by series and fractions that are as exact as the dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.frontends.decompose.loops import loop
from onward.graph.build import Builder, Tensor

LANCZOS = (
    0.99999999999980993227684700473478,
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
"""Of the gamma function by C. Lanczos' formula, with g = 7."""
G = 7.0
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The even Bernoulli numbers, from the second on."""
K_STEP, K_END = 0.1, 25.0
K_NEAR, K_FAR, K_TERMS = 1e-8, 50.0, 16
SERIES = 400
DILOGARITHM = 60
FRESNEL_NEAR, FRESNEL_TERMS = 3.4, 40
DAWSON_STEP, DAWSON_TERMS, DAWSON_FAR = 0.2, 36, 1e9
SHIFT = 10
"""How far arguments are moved by recurrence before an asymptotic series takes over."""


def horner(op: Builder, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """A polynomial, the highest power first."""
    result = op.like(coefficients[0], x) * x + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def wide(x: Tensor) -> Tensor:
    """In double precision: the series lose digits."""
    return x.cast(ir.DataType.DOUBLE)


def log1p(op: Builder, x: Tensor) -> Tensor:
    """log(1 + x), exact near zero: what `1 + x` rounds away is made good by the quotient."""
    one = op.like(1, x)
    shifted = x + one
    lost = op.Equal(shifted, one)
    ratio = x / op.where(lost, one, shifted - one)
    exact = op.where(lost, x, op.Log(shifted) * ratio)
    infinite = op.IsInf(shifted, detect_negative=0)
    return op.where(infinite, shifted, exact) if shifted.dtype != ir.DataType.FLOAT16 else exact


def expm1(op: Builder, x: Tensor) -> Tensor:
    """exp(x) - 1, exact near zero by the same quotient."""
    power = op.Exp(x)
    lost = op.Equal(power, 1.0)
    exact = (power - 1.0) * (x / op.Log(op.where(lost, op.like(2.0, x), power)))
    return op.where(lost, x, op.where(op.Abs(x) < 1.0, exact, power - 1.0))


def lgamma(op: Builder, x: Tensor) -> Tensor:
    """Below one half by the reflection formula."""
    z = wide(x)
    mirrored = z < 0.5
    value = _lgamma_positive(op, op.where(mirrored, 1.0 - z, z))
    away = op.Abs(z - op.Round(z))
    sine = op.Abs(op.Sin(away * math.pi))
    reflected = math.log(math.pi) - op.Log(sine) - value
    value = op.where(mirrored, reflected, value)
    return op.where(op.IsInf(z), op.like(math.inf, z), value).cast(x.dtype)


def _lgamma_positive(op: Builder, z: Tensor) -> Tensor:
    z = z - 1.0
    total = op.like(LANCZOS[0], z)
    for i, coefficient in enumerate(LANCZOS[1:], 1):
        total = total + op.like(coefficient, z) / (z + float(i))
    t = z + (G + 0.5)
    return 0.5 * math.log(2 * math.pi) + (z + 0.5) * op.Log(t) - t + op.Log(total)


def digamma(op: Builder, x: Tensor) -> Tensor:
    """By recurrence up to six, and an asymptotic series from there; below one half by reflection."""
    z = wide(x)
    mirrored = z < 0.5
    y = op.where(mirrored, 1.0 - z, z)
    shifted = op.like(0, y)
    for i in range(6):
        shifted = shifted + 1.0 / (y + float(i))
    far = y + 6.0
    inverse = 1.0 / (far * far)
    series = horner(op, inverse, (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)) * inverse
    value = op.Log(far) - 0.5 / far + series - shifted
    return op.where(mirrored, value - math.pi * _cotangent(op, z), value).cast(x.dtype)


def _cotangent(op: Builder, z: Tensor) -> Tensor:
    """Of π z, from the nearest whole number."""
    angle = (z - op.Round(z)) * math.pi
    return op.Cos(angle) / op.Sin(angle)


def polygamma(op: Builder, n: int, x: Tensor) -> Tensor:
    """The nth derivative of digamma, for n > 0: by recurrence and an asymptotic series, or by reflection."""
    z = wide(x)
    mirrored = z < 0.5
    y = op.where(mirrored, 1.0 - z, z)
    far = y + float(SHIFT)
    total = op.like(0, y)
    for i in range(SHIFT):
        total = total + op.Pow(y + float(i), op.like(-(n + 1), y))
    total = total * math.factorial(n)
    total = total + op.Pow(far, op.like(-n, y)) * math.factorial(n - 1)
    total = total + op.Pow(far, op.like(-(n + 1), y)) * (math.factorial(n) / 2)
    for k, number in enumerate(BERNOULLI, 1):
        factor = number * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        total = total + op.Pow(far, op.like(-(2 * k + n), y)) * factor
    value = total if n % 2 else -total
    slope = horner(op, _cotangent(op, z), _cotangent_derivative(n)) * math.pi ** (n + 1)
    return op.where(mirrored, (-value if n % 2 else value) - slope, value).cast(x.dtype)


def _cotangent_derivative(n: int) -> list[float]:
    """The nth derivative of the cotangent as a polynomial of it."""
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        polynomial = -polynomial.deriv() * np.polynomial.Polynomial([1.0, 0.0, 1.0])
    return [float(c) for c in polynomial.coef[::-1]]


def erfc(op: Builder, x: Tensor) -> Tensor:
    """Near zero by erf, which is exact there; further out by a continued fraction, which keeps what is left of 1."""
    z = wide(x)
    a = op.Abs(z)
    tail = op.Exp(op.Max(a, op.like(2.0, a)) ** 2 * -1.0) * _scaled_tail(op, a)
    tail = op.where(z < 0.0, 2.0 - tail, tail)
    return op.where(a < 2.0, 1.0 - erf_series(op, z), tail).cast(x.dtype)


def _scaled_tail(op: Builder, a: Tensor) -> Tensor:
    """exp(a²) erfc(a) for a of 2 or more, in double precision, by a continued fraction; at 2 for smaller ones."""
    far = op.Max(a, op.like(2.0, a))
    fraction = far
    for k in range(30, 0, -1):
        fraction = far + (k / 2) / fraction
    return 1.0 / (fraction * math.sqrt(math.pi))


def erf_series(op: Builder, z: Tensor) -> Tensor:
    """erf for arguments up to 2 in size, in double precision, by Kummer's series (all its terms have one sign)."""
    z = op.Max(op.Min(z, op.like(2.0, z)), op.like(-2.0, z))
    square = z * z * 2.0
    total = op.like(1.0, z) + square * (1.0 / 85)
    for k in range(41, 0, -1):
        total = 1.0 + square / float(2 * k + 1) * total
    return z * op.Exp(z * z * -1.0) * total * (2 / math.sqrt(math.pi))


def erfcx(op: Builder, x: Tensor) -> Tensor:
    """exp(x²) erfc(x)."""
    z = wide(x)
    near = op.Exp(z * z) * (1.0 - erf_series(op, z))
    low = 2.0 * op.Exp(z * z) - _scaled_tail(op, op.Abs(z))
    return op.where(z > 2.0, _scaled_tail(op, z), op.where(z < -2.0, low, near)).cast(x.dtype)


def log_ndtr(op: Builder, x: Tensor) -> Tensor:
    """The logarithm of the normal distribution; far to the left by the part of the tail that is no exponential."""
    z = wide(x)
    a = -z * math.sqrt(0.5)
    left = op.Log(_scaled_tail(op, a) * 0.5) - z * z * 0.5
    right = op.Log(1.0 - erfc(op, -a) * 0.5)
    small = erfc(op, -a) * 0.5
    series = -small * horner(op, small, (1 / 4, 1 / 3, 1 / 2, 1.0))
    right = op.where(small < 1e-4, series, right)
    return op.where(a > 2.0, left, right).cast(x.dtype)


def erfinv(op: Builder, x: Tensor) -> Tensor:
    """Of what is left of one, so that nothing is lost near the ends; near zero a last step mends what that loses."""
    y = wide(x)
    found = _erfc_inverse(op, 1.0 - op.Abs(y)) * op.Sign(y)
    mended = found - (erf_series(op, found) - y) * op.Exp(found * found) * (math.sqrt(math.pi) / 2)
    found = op.where(op.Abs(y) < 0.5, mended, found)
    return op.where(op.Abs(y) > 1.0, op.like(math.nan, y), found).cast(x.dtype)


def ndtri(op: Builder, p: Tensor) -> Tensor:
    """The inverse of the normal distribution."""
    q = wide(p)
    upper = q > 0.5
    tail = op.where(upper, 1.0 - q, q)
    found = _erfc_inverse(op, tail * 2.0) * math.sqrt(2)
    return op.where(tail < 0.0, op.like(math.nan, q), op.where(upper, found, -found)).cast(p.dtype)


def _erfc_inverse(op: Builder, y: Tensor) -> Tensor:
    """The x of 0 or more whose erfc is y, from 0 to 1: a first guess by logarithms, and steps of Halley's method."""
    a = 0.147
    log = op.Log(y * (2.0 - y))
    half = log * 0.5 + 2 / (math.pi * a)
    guess = op.Sqrt(op.Max(op.Sqrt(half * half - log * (1 / a)) - half, op.like(0.0, y)))
    for _ in range(4):
        step = (erfc(op, guess) - y) / (op.Exp(guess * guess * -1.0) * (2 / math.sqrt(math.pi)))
        guess = guess + step / (1.0 - guess * step)
    guess = op.where(op.Equal(y, op.like(0.0, y)), op.like(math.inf, y), guess)
    return op.where(op.Equal(y, op.like(1.0, y)), op.like(0.0, y), guess)


ANGLES = 32
NEAR = 25.0
"""Up to here Bessel functions are means over so many angles; further out, asymptotic series of so many terms."""
TERMS = 14


def bessel_i(op: Builder, order: int, x: Tensor, scaled: bool) -> Tensor:
    """The modified Bessel function of the first kind, of order 0 or 1; scaled by exp(-|x|) if asked."""
    z = wide(x)
    a = op.Abs(z)
    near = op.Min(a, op.like(NEAR, a))
    angles = (np.arange(ANGLES) + 0.5) * (math.pi / ANGLES)
    along = op.Exp(op.unsqueeze(near, [-1]) * op.constant(np.cos(angles) - 1.0))
    mean = op.ReduceMean(along * op.constant(np.cos(order * angles)), op.ints([-1]), keepdims=0)
    far = op.Max(a, op.like(NEAR, a))
    series = horner(op, -1.0 / far, _hankel(order)[::-1]) / op.Sqrt(far * (2 * math.pi))
    value = op.where(a > NEAR, series, mean)
    value = value if scaled else value * op.Exp(a)
    return (value * op.Sign(z) if order else value).cast(x.dtype)


def bessel_j(op: Builder, order: int, x: Tensor) -> Tensor:
    """The Bessel function of the first kind, of order 0 or 1."""
    z = wide(x)
    a = op.Abs(z)
    near = op.Min(a, op.like(NEAR, a))
    angles = (np.arange(2 * ANGLES) + 0.5) * (math.pi / (2 * ANGLES))
    phases = op.constant(order * angles) - op.unsqueeze(near, [-1]) * op.constant(np.sin(angles))
    mean = op.ReduceMean(op.Cos(phases), op.ints([-1]), keepdims=0)
    far = op.Max(a, op.like(NEAR, a))
    terms = _hankel(order)
    square = -1.0 / (far * far)
    even, odd = (horner(op, square, terms[start::2][::-1]) for start in (0, 1))
    phase = far - (order * math.pi / 2 + math.pi / 4)
    series = (op.Cos(phase) * even - op.Sin(phase) * odd / far) * op.Sqrt(2 / math.pi / far)
    value = op.where(a > NEAR, series, mean)
    return (value * op.Sign(z) if order else value).cast(x.dtype)


def _hankel(order: int) -> list[float]:
    """The coefficients of Hankel's asymptotic series."""
    found = [1.0]
    for k in range(1, TERMS):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (k * 8))
    return found


def bessel_k(op: Builder, order: int, x: Tensor, scaled: bool) -> Tensor:
    """The modified Bessel function of the second kind, of order 0 or 1; scaled by exp(x) if asked.

    The integral of exp(-x cosh t) cosh(order t), which even steps give to all digits; what it tends to near zero, and
    an asymptotic series far from it, where the steps would be too wide.
    """
    z = wide(x)
    steps = np.arange(0, K_END, K_STEP)
    weights = np.where(steps == 0, 0.5, 1.0) * K_STEP * np.cosh(order * steps)
    along = op.Exp(op.unsqueeze(z, [-1]) * op.constant(1.0 - np.cosh(steps))) * op.constant(weights)
    value = op.ReduceSum(along, op.ints([-1]), keepdims=0)
    value = op.where(z < K_NEAR, 1.0 / z if order else -op.Log(z * 0.5) - float(np.euler_gamma), value)
    coefficients = np.cumprod([1.0, *((4 * order**2 - (2 * k - 1) ** 2) / (8 * k) for k in range(1, K_TERMS))])
    series = horner(op, 1.0 / z, [float(c) for c in coefficients[::-1]])
    value = op.where(z > K_FAR, op.Sqrt(math.pi / 2 / z) * series, value)
    value = value if scaled else value * op.Exp(-z)
    return op.where(z <= 0.0, op.like(math.inf, z), value).cast(x.dtype)


def dawson(op: Builder, x: Tensor) -> Tensor:
    """Dawson's integral, by G. B. Rybicki's sum over odd multiples of a step, counted from near the argument."""
    z = wide(x)
    odd = np.arange(1 - DAWSON_TERMS, DAWSON_TERMS, 2, dtype=np.float64)
    near = op.Round(z / (2 * DAWSON_STEP)) * 2.0
    rest = op.unsqueeze(z - near * DAWSON_STEP, [-1]) - op.constant(odd * DAWSON_STEP)
    terms = op.Exp(-(rest * rest)) / (op.unsqueeze(near, [-1]) + op.constant(odd))
    value = op.ReduceSum(terms, op.ints([-1]), keepdims=0) * (1 / math.sqrt(math.pi))
    return op.where(op.Abs(z) > DAWSON_FAR, 0.5 / z, value).cast(x.dtype)


def wide_erf(op: Builder, x: Tensor) -> Tensor:
    """erf in double precision."""
    return op.where(op.Abs(x) < 1.0, erf_series(op, x), op.Sign(x) * (1.0 - erfc(op, op.Abs(x))))


def exponential_integral(op: Builder, x: Tensor) -> Tensor:
    """The integral of exp(t) / t up to x, by a series whose terms have one sign for positive arguments."""
    z = wide(x)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        power, total = states
        k = number.cast(z.dtype) + 1.0
        power = power * z / k
        return [power, total + power / k]

    total = loop(op, step, [op.filled(z, 1.0), op.filled(z, 0.0)], rounds=op.index(SERIES))[1]
    value = total + op.Log(op.Abs(z)) + float(np.euler_gamma)
    return op.where(z < 0.0, op.like(math.nan, z), value).cast(x.dtype)


def spence(op: Builder, x: Tensor) -> Tensor:
    """The dilogarithm of 1 - x: by its series near 1, and by reflection elsewhere."""
    z = wide(x)
    inverted = z > 1.5
    y = op.where(inverted, 1.0 / z, z)
    mirrored = y < 0.5
    w = op.where(mirrored, y, 1.0 - y)
    series = w * horner(op, w, [1.0 / k**2 for k in range(DILOGARITHM, 0, -1)])
    inside = op.where(
        op.Equal(y, op.like(0, y)), op.like(0, y), op.Log(op.Max(y, op.like(1e-300, y))) * op.Log(1.0 - w)
    )
    value = op.where(mirrored, math.pi**2 / 6 - inside - series, series)
    log = op.Log(op.Max(z, op.like(1e-300, z)))
    value = op.where(inverted, -value - log * log * 0.5, value)
    return op.where(z < 0.0, op.like(math.nan, z), value).cast(x.dtype)


def fresnel(op: Builder, x: Tensor, sine: bool) -> Tensor:
    """The integral of the sine or cosine of pi t^2 / 2: a power series near zero, an asymptotic one far from it."""
    z = wide(x)
    a = op.Abs(z)
    near = op.Min(a, op.like(FRESNEL_NEAR, a))
    first = int(sine)
    half = near * near * (math.pi / 2)
    total = op.filled(half, 1.0 / (4 * FRESNEL_TERMS + 2 * first + 1))
    for n in range(FRESNEL_TERMS - 1, -1, -1):
        ratio = half * half * (1.0 / ((2 * n + first + 1) * (2 * n + first + 2)))
        total = 1.0 / (4 * n + 2 * first + 1) - ratio * total
    series = total * near * half if sine else total * near
    far = op.Min(op.Max(a, op.like(FRESNEL_NEAR, a)), op.like(1e150, a))
    square = far * far
    inverse = 1.0 / (square * square * math.pi**2)
    f = horner(op, -inverse, [2027025.0, 10395.0, 105.0, 3.0, 1.0]) / (far * math.pi)
    g = horner(op, -inverse, [34459425.0, 135135.0, 945.0, 15.0, 1.0]) / (far * square * math.pi**2)
    angle = square * (math.pi / 2)
    s, c = op.Sin(angle), op.Cos(angle)
    asymptotic = 0.5 - f * c - g * s if sine else 0.5 + f * s - g * c
    return (op.Sign(z) * op.where(a > FRESNEL_NEAR, asymptotic, series)).cast(x.dtype)


def arctangent(op: Builder, x: Tensor) -> Tensor:
    """In double precision, for which ONNX Runtime has no kernel, by one step from that in single precision."""
    if x.dtype != ir.DataType.DOUBLE:
        return op.Atan(x)
    steep = op.Abs(x) > 1.0
    slope = op.where(steep, op.Reciprocal(op.where(steep, x, op.like(1, x))), x)
    near = op.Atan(slope.cast(ir.DataType.FLOAT)).cast(ir.DataType.DOUBLE)
    sine, cosine = op.Sin(near), op.Cos(near)
    flat = near + (slope * cosine - sine) / (slope * sine + cosine)
    return op.where(steep, op.Sign(x) * (math.pi / 2) - flat, flat)


def arcsine(op: Builder, x: Tensor) -> Tensor:
    """As `arctangent`, by half of the angle."""
    return arctangent(op, x / (op.Sqrt((1 - x) * (x + 1)) + 1)) * 2.0


def arccosine(op: Builder, x: Tensor) -> Tensor:
    return math.pi / 2 - arcsine(op, x)


def angle(op: Builder, y: Tensor, x: Tensor) -> Tensor:
    """By the quadrant of the point; zeros have a sign, and of two infinities only the sign counts."""
    pi = math.pi
    zero = op.like(0, x)
    endless = op.And(op.IsInf(x), op.IsInf(y))
    y, x = (op.where(endless, op.Sign(part), part) for part in (y, x))
    below, behind = (op.where(op.Equal(part, zero), op.Reciprocal(part), part) < zero for part in (y, x))
    angle = arctangent(op, y / op.where(op.Equal(x, zero), op.like(1, x), x))
    left = op.where(below, angle - pi, angle + pi)
    upright = op.where(op.Equal(y, zero), op.where(behind, left, y), op.Sign(y) * (pi / 2))
    elsewhere = op.where(op.Equal(x, zero), upright, x)
    return op.where(op.IsNaN(y), y, op.where(x > zero, angle, op.where(x < zero, left, elsewhere)))
