"""Running statistics of several workers as one: means over all rows. What is no float is what worker 0 has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def length(buffers: Mapping[str, Array]) -> int:
    """How many numbers say what buffers hold."""
    return sum(array.size if _is_mean(array) else array.nbytes for array in buffers.values())


def packed(buffers: Mapping[str, Array], rows: int, lead: bool) -> Array:
    """Numbers to be added up over workers, each of which has seen so many rows."""
    parts = [np.zeros(0)]
    for array in buffers.values():
        if _is_mean(array):
            parts.append(array.astype(np.float64).reshape(-1) * rows)
        else:
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).astype(np.float64) * lead)
    return np.concatenate(parts)


def unpack(buffers: Mapping[str, Array], sums: Array, rows: float) -> None:
    """Put into buffers what the sums over all workers, and all their rows, say."""
    start = 0
    for array in buffers.values():
        stop = start + (array.size if _is_mean(array) else array.nbytes)
        part, start = sums[start:stop], stop
        own = part / rows if _is_mean(array) else part.astype(np.uint8).view(array.dtype)
        array[...] = own.reshape(array.shape)


def _is_mean(array: Array) -> bool:
    return array.dtype.kind == "f"
