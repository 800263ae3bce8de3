"""Other shapes of the same elements."""

import math
from collections.abc import Sequence

import numpy as np


def reshape(x: np.ndarray, shape: Sequence[int], allowzero: bool) -> np.ndarray:
    """As `x.reshape`, but unless `allowzero` is set, 0 stands for the size that the axis has."""
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(shape)])


def flatten(x: np.ndarray, axis: int) -> np.ndarray:
    """A matrix: the axes before `axis` are its rows."""
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
