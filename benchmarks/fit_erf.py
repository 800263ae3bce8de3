"""The coefficients of Erf for TensorFlow Lite, fitted here, and how far single precision is off with them.

python benchmarks/fit_erf.py    prints both; `src/onward/backends/tensorflow/lite/erf.py` has the coefficients
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, chebyshev

from onward.backends.tensorflow.lite.erf import FAR, LAST, NEAR, SPLIT

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDS = 80


def fitted(
    f: Callable[[float], float], weight: Callable[[float], float], low: float, high: float, degree: int
) -> Array:
    """The polynomial whose largest weighted error is about as small as it can be, by least squares weighed anew."""
    z = np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)
    x = (low + high) / 2 + (high - low) / 2 * z
    y, scale, powers = np.vectorize(f)(x), np.vectorize(weight)(x), chebyshev.chebvander(z, degree)
    weights, best, chosen = np.ones_like(x), math.inf, np.zeros(degree + 1)
    for _ in range(ROUNDS):
        found, *_ = np.linalg.lstsq(powers * (weights * scale)[:, None], y * weights * scale, rcond=None)
        error = np.abs((powers @ found - y) * scale)
        if error.max() < best:
            best, chosen = error.max(), found
        weights *= (error / error.max() + 1e-3) ** 0.4
        weights /= weights.max()
    inner = Polynomial([-(low + high) / (high - low), 2 / (high - low)])
    return np.asarray(Polynomial(chebyshev.cheb2poly(chosen))(inner).coef, np.float32)


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full_like(x, np.float32(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        total = total * x + np.float32(coefficient)
    return total


def erf(x: Array, near: Sequence[float], far: Sequence[float]) -> Array:
    size = np.abs(x)
    above = np.sign(x) * (1 - np.exp(-polynomial(far, np.minimum(size, np.float32(LAST)))))
    return np.where(size > SPLIT, above, x * polynomial(near, np.minimum(x * x, 4)))


def main() -> None:
    quotient = lambda t: math.erf(math.sqrt(t)) / math.sqrt(t)  # noqa: E731
    near = fitted(quotient, lambda t: 1 / quotient(t), 1e-12, SPLIT**2, len(NEAR) - 1)
    far = fitted(lambda a: -math.log(math.erfc(a)), math.erfc, SPLIT, LAST, len(FAR) - 1)
    x = np.concatenate([np.linspace(0, 5, 1_000_001), 10 ** np.random.default_rng(0).uniform(-37, 0, 500_000)])
    x = x[1:].astype(np.float32)
    right = np.vectorize(math.erf)(x.astype(float))
    for name, coefficients in (("fitted now", (near, far)), ("in use", (NEAR, FAR))):
        steps = np.abs(erf(x, *coefficients) - right) / np.spacing(right.astype(np.float32))
        print(f"{name}: at most {steps.max():.2f} steps of float32 off, {steps.mean():.2f} on average")
        print(*(f"  {[float(c) for c in part]}" for part in coefficients), sep="\n")


if __name__ == "__main__":
    main()
