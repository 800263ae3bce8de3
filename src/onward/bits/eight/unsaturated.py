"""Weights in 8 bits of which no two products with uint8 leave 16 bits, in whatever order they come.

AVX2 adds up two products in 16 bits. Two numbers of one channel that have the same sign make 128 at most, and
128 · 255 is less than 2¹⁵; so a channel whose largest weight stands out has nearly 8 bits, and none has less than 7.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onward.bits.compensated import Grid, Moments, Numbers, compensated
from onward.bits.eight.multiplied import Floats, Matrix

LARGEST, TOGETHER = 127, 128
"""Of one number, and of two of one sign."""
AT_ONCE = 1024
"""Of what is summed, how much is looked at together: what goes together in the data takes its square."""
BLOCK = 64
ROWS = 4096
"""Of data, for each layer."""


class Seen:
    """What a layer multiplied: the mean of x · xᵀ, for each group and for so many rows of the matrix at a time."""

    def __init__(self, matrix: Matrix) -> None:
        self._summed = matrix.rows().shape[1]
        self._sums: dict[int, npt.NDArray[np.float64]] = {}
        self._count = 0

    def add(self, data: Floats) -> None:
        """Data as `Matrix.data` gives them."""
        self._count += data.shape[1]
        for first in range(0, self._summed, AT_ONCE):
            part = data[:, :, first : first + AT_ONCE]
            product = np.matmul(part.transpose(0, 2, 1), part).astype(np.float64)
            self._sums[first] = self._sums.get(first, 0.0) + product

    def moments(self, group: int) -> list[tuple[slice, Moments]]:
        """By the rows they are about; none where nothing was multiplied, or by no numbers."""
        found = [(slice(at, at + AT_ONCE), sums[group] / self._count) for at, sums in self._sums.items() if self._count]
        return [(rows, moment) for rows, moment in found if np.isfinite(moment).all()]


def scales(matrix: Matrix) -> Floats:
    """Of each channel of the result."""
    rows = matrix.rows()
    needed = np.maximum(*(_needed(sign * rows) for sign in (1, -1)))
    return np.asarray(np.where(needed > 0, needed, 1.0), np.float32)


def _needed(rows: Floats) -> Floats:
    """The least scale at which the positive weights of each row are few enough steps."""
    two = np.partition(np.pad(np.maximum(rows, 0), [(0, 0), (2, 0)]), -2, axis=1)[:, -2:]
    return np.asarray(np.maximum(two.sum(axis=1) / TOGETHER, two[:, 1] / LARGEST), np.float32)


def _most(rows: Numbers) -> Numbers:
    """What each number may be, of rows in steps: the largest of a row as it is, and all others what it leaves them."""
    first = rows.argmax(axis=1)[:, None]
    largest = np.clip(np.round(np.take_along_axis(rows, first, axis=1)), TOGETHER - LARGEST, LARGEST)
    bounds = np.repeat(TOGETHER - largest, rows.shape[1], axis=1)
    np.put_along_axis(bounds, first, largest, axis=1)
    return bounds


def rounded(matrix: Matrix, seen: Seen) -> Floats:
    """The weight in such numbers, as floats, nearest to the original on what was seen."""
    rows, scale = matrix.rows(), scales(matrix).astype(np.float64)
    steps = rows / scale[:, None]
    low, high = -_most(-steps), _most(steps)
    numbers = np.clip(np.round(steps), low, high)
    each = len(rows) // matrix.groups
    for group in range(matrix.groups):
        these = slice(group * each, (group + 1) * each)
        for part, moment in seen.moments(group):

            def grid(left: Numbers, at: slice, these: slice = these, first: int = part.start) -> Grid:
                found = slice(first + at.start, first + at.stop)
                return Grid(scale[these], np.zeros(each), low[these, found], high[these, found])

            numbers[these, part] = compensated(rows[these, part], moment, BLOCK, grid)
    return matrix.shaped(numbers * scale[:, None])
