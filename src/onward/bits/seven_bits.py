"""Weights of 7 bits for each channel: no product of two of them with uint8 leaves 16 bits, in whatever order they come.

They are integers from -64 to 64, and 2 · 64 · 255 is less than 2¹⁵: AVX2 adds up two products in 16 bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onward.bits.compensated import Grid, Moments, Numbers, compensated
from onward.bits.multiplied import Floats, Matrix

LARGEST = 64
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
    largest = np.abs(matrix.rows()).max(axis=1)
    return np.asarray(np.where(largest > 0, largest, 1.0) / LARGEST, np.float32)


def rounded(matrix: Matrix, seen: Seen) -> Floats:
    """The weight in numbers of 7 bits, as floats, nearest to the original on what was seen."""
    rows, scale = matrix.rows(), scales(matrix).astype(np.float64)
    numbers = np.clip(np.round(rows / scale[:, None]), -LARGEST, LARGEST)
    each = len(rows) // matrix.groups
    for group in range(matrix.groups):
        these = slice(group * each, (group + 1) * each)

        def grid(left: Numbers, at: slice, these: slice = these) -> Grid:
            return Grid(scale[these], np.zeros(each), -LARGEST, LARGEST)

        for part, moment in seen.moments(group):
            numbers[these, part] = compensated(rows[these, part], moment, BLOCK, grid)
    return matrix.shaped(numbers * scale[:, None])
