"""Arithmetic on Python numbers with ONNX's rounding."""

import struct


def float32(number: float) -> float:
    """Round to single precision; a symbolic number is left as it is."""
    return float(struct.unpack("f", struct.pack("f", number))[0]) if isinstance(number, float | int) else number


def trunc_divide(a: int, b: int) -> int:
    """Integer division that rounds towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
