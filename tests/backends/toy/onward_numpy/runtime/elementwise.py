"""Arithmetic."""

import numpy as np


def integer_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers without its fraction; NumPy's own is rounded down."""
    quotient, rest = np.divmod(a, b)
    return quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)
