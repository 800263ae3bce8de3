"""Arithmetic on Python numbers with ONNX's rounding."""


def float32(number: float) -> float:
    """Round to single precision: by arithmetic alone (Veltkamp's splitting), so that compilers can trace it."""
    shifted = number * 536870913.0
    return shifted - (shifted - number)


def trunc_divide(a: int, b: int) -> int:
    """Integer division that rounds towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
