"""Reductions."""

from collections.abc import Sequence

import numpy as np


def mean(x: np.ndarray, axes: Sequence[int], keepdims: bool, noop: bool) -> np.ndarray:
    """The mean over axes; none given means all, or with `noop` nothing is done."""
    if not axes and noop:
        return x
    return np.mean(x, axis=tuple(axes) or None, dtype=x.dtype, keepdims=keepdims)
