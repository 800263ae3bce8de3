"""Functions of statistics that ONNX has no op for, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.canon.build import Tensor
from onward.frontends.sklearn.writer import Writer


def horner(op: Writer, x: Tensor, coefficients: Any) -> Tensor:
    """A polynomial, its highest power first."""
    found = x * float(coefficients[0]) + float(coefficients[1])
    for number in coefficients[2:]:
        found = found * x + float(number)
    return found


def erf(op: Writer, x: Tensor) -> Tensor:
    """The error function to the last digits: by Chebyshev series, fitted here, in three ranges of |x|."""
    size = op.Min(op.Abs(x), op.reals(6.0))
    small = x * _series(op, size * size, 0.0, 1.0, lambda t: _erf_over_x(np.sqrt(t)))
    scaled = op.Exp(-(size * size))
    middle = 1.0 - scaled * _series(op, size, 1.0, 2.5, _erfcx)
    large = 1.0 - scaled * _series(op, size, 2.5, 6.0, _erfcx)
    tail = op.Where(size < 2.5, middle, large)
    return op.Where(size < 1.0, small, op.Sign(x) * tail)


def _erfcx(x: Any) -> Any:
    from scipy.special import erfcx

    return erfcx(x)


def _erf_over_x(x: Any) -> Any:
    from scipy.special import erf as exact

    return np.where(x == 0, 2 / np.sqrt(np.pi), exact(x) / np.where(x == 0, 1, x))


def _series(op: Writer, x: Tensor, low: float, high: float, function: Any) -> Tensor:
    """A function on an interval by its Chebyshev series, summed by Clenshaw's recurrence."""
    nodes = np.polynomial.chebyshev.chebpts1(40)
    values = function((nodes + 1) / 2 * (high - low) + low)
    numbers = np.polynomial.chebyshev.chebfit(nodes, values, 24)
    t = (x - low) * (2.0 / (high - low)) - 1.0
    t = op.Clip(t, -1.0, 1.0)
    later, last = op.zeros_like(t), op.filled(t, float(numbers[-1]))
    for number in numbers[-2:0:-1]:
        later, last = last, t * last * 2.0 - later + float(number)
    return t * last - later + float(numbers[0])


A = (-3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1)
B = (-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1)
C = (-7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968)
D = (7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416)
LOW = 0.02425


def normal_quantile(op: Writer, p: Tensor) -> Tensor:
    """The inverse of the normal distribution: a rational approximation, then steps of Halley's method."""
    inner = op.Clip(p, 1e-10, 1.0 - 1e-10)
    q = inner - 0.5
    r = q * q
    middle = horner(op, r, (*A, 2.506628277459239)) * q / horner(op, r, (*B, 1.0))
    lower = _tail(op, op.Min(inner, op.reals(LOW)))
    upper = -_tail(op, op.Min(1.0 - inner, op.reals(LOW)))
    found = op.Where(inner < LOW, lower, op.Where(inner > 1.0 - LOW, upper, middle))
    for _ in range(2):
        error = (erf(op, found / float(np.sqrt(2.0))) + 1.0) * 0.5 - inner
        step = error * float(np.sqrt(2 * np.pi)) * op.Exp(found * found * 0.5)
        found = found - step / (found * step * 0.5 + 1.0)
    found = op.where(p <= 0, float("-inf"), op.where(p >= 1, float("inf"), found))
    return op.Where(op.isnan(p), p, found)


def _tail(op: Writer, p: Tensor) -> Tensor:
    q = op.Sqrt(op.Log(p) * -2.0)
    return horner(op, q, (*C, 2.938163982698783)) / horner(op, q, (*D, 1.0))
