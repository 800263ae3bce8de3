"""What range of numbers 8 bits stand for: all that occur, or those with which they are nearest to all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

STEPS = 255
SHARES = 0.95 ** np.arange(50)
"""Of the largest number, that are tried: what lies beyond is clipped, and all else is nearer to its number."""
KEPT, BINS = 2**13, 4096
"""Numbers of a value that are kept of each time it is seen, and how many different ones are told apart."""

Range = tuple[float, float]
Choice = Literal["all", "nearest"]


class Ranges:
    """Of values, by name."""

    def __init__(self) -> None:
        self._seen: dict[str, list[npt.NDArray[np.float32]]] = {}
        self._all: dict[str, Range] = {}

    def add(self, name: str, array: Any) -> None:
        """Take notice of what a value was."""
        flat = np.asarray(array, np.float32).reshape(-1)
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            return
        low, high = self._all.get(name, (0.0, 0.0))
        self._all[name] = min(low, float(flat.min())), max(high, float(flat.max()))
        if flat.size > KEPT:
            flat = np.random.default_rng(0).choice(flat, KEPT)
        self._seen.setdefault(name, []).append(flat)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def of(self, name: str, choice: Choice) -> Range:
        """With zero in it, which has a number of its own."""
        low, high = self._all[name]
        if choice == "all" or low == high:
            return low, high
        counts, edges = np.histogram(np.concatenate(self._seen[name]), BINS, (low, high))
        numbers = ((edges[1:] + edges[:-1]) / 2)[counts > 0]
        most = max(-low, high)
        tried = ((max(low, -most * share), min(high, most * share)) for share in SHARES)
        return min(tried, key=lambda one: _error(numbers, counts[counts > 0], *one))


def _error(numbers: npt.NDArray[Any], counts: npt.NDArray[Any], low: float, high: float) -> float:
    """The squares of what 8 bits are off by."""
    scale = (high - low) / STEPS
    if scale <= 0:
        return float("inf")
    point = np.round(-low / scale)
    steps = np.clip(np.round(numbers / scale) + point, 0, STEPS) - point
    return float(np.sum(counts * (numbers - steps * scale) ** 2))
