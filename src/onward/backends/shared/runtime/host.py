"""Arithmetic on Python numbers with ONNX's rounding."""

import math


def float32(number: float) -> float:
    """Round to single precision: by arithmetic alone (Veltkamp's splitting), so that compilers can trace it."""
    shifted = number * 536870913.0
    if shifted == number:
        return number  # zero or infinite
    return shifted - (shifted - number)


def float_divide(a: float, b: float) -> float:
    """The quotient, infinite or not a number where the divisor is 0, as in a tensor."""
    return a * math.copysign(math.inf, b) if b == 0 else a / b


def trunc_divide(a: int, b: int) -> int:
    """Integer division that rounds towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
