"""Numbers from and to strings."""

import math

import numpy as np


def parsed(strings: np.ndarray, is_float: bool) -> np.ndarray:
    """Strings such as "3.14", "1e-5" or "-INF" as floats, or as the low 64 bits of whole numbers."""
    flat = [s.strip() for s in np.asarray(strings).reshape(-1)]
    if is_float:
        return np.array([float(s) for s in flat], np.float64).reshape(np.shape(strings))
    integers = [int(s) if s.lstrip("+-").isdigit() else int(float(s)) for s in flat]
    return np.array([i % 2**64 for i in integers], np.uint64).reshape(np.shape(strings))


def formatted(x: np.ndarray) -> np.ndarray:
    """Numbers as strings: 8 significant digits of a float of 64 bits."""
    texts = [format_float(v) if x.dtype == np.float64 else str(int(v)) for v in x.reshape(-1).tolist()]
    return np.array(texts, dtype=object).reshape(x.shape)


def format_float(number: float) -> str:
    """As C's `%.8g` prints it, with NaN and infinities as ONNX spells them."""
    if math.isnan(number):
        return "NaN"
    return f"{number:.8g}" if math.isfinite(number) else "INF" if number > 0 else "-INF"
