"""Integrals and sums of powers: the incomplete gamma and beta functions, and Hurwitz's zeta function.

Series and continued fractions run until no element changes any more; each is run on the arguments it is good for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.frontends.decompose.loops import loop
from onward.frontends.decompose.special import BERNOULLI, SHIFT, lgamma, wide
from onward.graph.build import Builder, Tensor

EPSILON = 1e-15
TINY = 1e-300
MOST_ROUNDS = 10_000


def _any(op: Builder, condition: Tensor) -> Tensor:
    return op.ReduceMax(condition.cast(ir.DataType.INT32), keepdims=0).cast(ir.DataType.BOOL)


def _all_safe(op: Builder, x: Tensor) -> Tensor:
    """Never quite zero, so that it can be divided by."""
    return op.where(op.Abs(x) < TINY, op.like(TINY, x), x)


def incomplete_gamma(op: Builder, a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """The share of the integral of `t^(a-1) e^-t` that lies below `x`, or above it."""
    dtype, zero, at_end = x.dtype, op.like(0, wide(x)), op.like(float(not upper), wide(x))
    shape = (a < x).shape
    a, x = op.Expand(wide(a), shape), op.Expand(wide(x), shape)
    near = x < a + 1.0
    size = op.Exp(a * op.Log(x) - x - lgamma(op, a))
    below = _gamma_series(op, a, op.where(near, x, zero)) * size
    above = _gamma_fraction(op, a, op.where(near, a + 1.0, x)) * size
    found = op.where(near, 1.0 - below, above) if upper else op.where(near, below, 1.0 - above)
    found = op.where(op.Equal(x, op.like(math.inf, x)), at_end, found)
    found = op.where(op.Equal(a, op.like(math.inf, a)), 1.0 - at_end, found)
    found = op.where(op.And(x >= 0.0, a > 0.0), found, op.like(math.nan, x))
    empty = op.And(op.Equal(x, zero), a > 0.0) if upper else op.Equal(x, zero)
    return op.where(empty, 1.0 - at_end, found).cast(dtype)


def _gamma_series(op: Builder, a: Tensor, x: Tensor) -> Tensor:
    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        term, total = states
        term = term * x / (a + number.cast(a.dtype) + 1.0)
        return [term, total + term]

    def goes_on(states: Sequence[Tensor]) -> Tensor:
        return _any(op, op.Abs(states[0]) > op.Abs(states[1]) * EPSILON)

    first = 1.0 / a
    return loop(op, step, [first, first], rounds=op.index(MOST_ROUNDS), goes_on=goes_on)[1]


def _gamma_fraction(op: Builder, a: Tensor, x: Tensor) -> Tensor:
    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        c, d, value, _ = states
        i = number.cast(a.dtype) + 1.0
        numerator, b = i * (a - i), x + 1.0 - a + i * 2.0
        d = 1.0 / _all_safe(op, numerator * d + b)
        c = _all_safe(op, b + numerator / c)
        return [c, d, value * c * d, op.Abs(c * d - 1.0)]

    d = 1.0 / _all_safe(op, x + 1.0 - a)
    start = [op.filled(d, 1 / TINY), d, d, op.filled(d, 1.0)]
    return loop(op, step, start, rounds=op.index(MOST_ROUNDS), goes_on=lambda s: _any(op, s[3] > EPSILON))[2]


def incomplete_beta(op: Builder, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """The share of the integral of `t^(a-1) (1-t)^(b-1)` that lies below `x`."""
    dtype, zero = x.dtype, op.like(0, wide(x))
    a, b, x = (wide(t) + zero * (wide(a) + wide(b) + wide(x)) for t in (a, b, x))
    mirrored = x > (a + 1.0) / (a + b + 2.0)
    p, q, y = op.where(mirrored, b, a), op.where(mirrored, a, b), op.where(mirrored, 1.0 - x, x)
    log_beta = lgamma(op, a) + lgamma(op, b) - lgamma(op, a + b)
    size = op.Exp(p * op.Log(y) + q * op.Log(1.0 - y) - log_beta) / p
    value = op.where(op.Equal(y, zero), zero, size * _beta_fraction(op, p, q, y))
    return op.where(mirrored, 1.0 - value, value).cast(dtype)


def _beta_fraction(op: Builder, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    def moved(c: Tensor, d: Tensor, value: Tensor, numerator: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d = 1.0 / _all_safe(op, numerator * d + 1.0)
        c = _all_safe(op, 1.0 + numerator / c)
        return c, d, value * c * d

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        c, d, value, _ = states
        m = number.cast(a.dtype) + 1.0
        twice = a + m * 2.0
        c, d, value = moved(c, d, value, m * (b - m) * x / ((twice - 1.0) * twice))
        c, d, value = moved(c, d, value, -(a + m) * (a + b + m) * x / (twice * (twice + 1.0)))
        return [c, d, value, op.Abs(c * d - 1.0)]

    d = 1.0 / _all_safe(op, 1.0 - (a + b) * x / (a + 1.0))
    start = [op.filled(d, 1.0), d, d, op.filled(d, 1.0)]
    return loop(op, step, start, rounds=op.index(MOST_ROUNDS), goes_on=lambda s: _any(op, s[3] > EPSILON))[2]


def zeta(op: Builder, x: Tensor, q: Tensor) -> Tensor:
    """The sum of `(q + k)^-x` over all k: the first terms one by one, the rest by Euler and Maclaurin."""
    dtype = x.dtype
    x, q = wide(x), wide(q)
    total = op.Pow(q, -x)
    for k in range(1, SHIFT):
        total = total + op.Pow(q + float(k), -x)
    far = q + float(SHIFT)
    power = op.Pow(far, -x)
    total = total + power * far / (x - 1.0) + power * 0.5
    rising, scale = x, power / far
    for j, number in enumerate(BERNOULLI, 1):
        total = total + rising * scale * (number / math.factorial(2 * j))
        rising = rising * (x + float(2 * j - 1)) * (x + float(2 * j))
        scale = scale / (far * far)
    infinite = op.like(math.inf, x)
    total = op.where(op.Equal(q, infinite), op.like(0, x), total)
    limit = op.where(q > 1.0, op.like(0, x), op.where(q < 1.0, infinite, q))
    total = op.where(op.Equal(x, infinite), limit, total)
    even = op.Equal(op.Mod(x, op.like(2, x), fmod=1), op.like(0, x))
    pole = op.And(q <= 0.0, op.Equal(op.Floor(q), q))
    total = op.where(op.And(pole, x < math.inf), op.where(even, infinite, op.like(math.nan, x)), total)
    total = op.where(op.Equal(x, op.like(1, x)), infinite, total)
    return op.where(x >= 1.0, total, op.like(math.nan, x)).cast(dtype)
