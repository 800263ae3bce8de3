"""Picking and placing strings by the numbers of their places, which a framework has computed."""

from typing import Any

import numpy as np


def strings_at(x: np.ndarray, places: Any) -> np.ndarray:
    """The strings that have the given numbers."""
    return np.asarray(x.reshape(-1)[np.asarray(places)], dtype=object)


def put_strings(x: np.ndarray, places: Any, updates: np.ndarray) -> np.ndarray:
    """A copy of `x` with other strings at the given numbers."""
    out = x.copy()
    out.reshape(-1)[np.asarray(places)] = updates
    return out
