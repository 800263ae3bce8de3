"""Matrices whose rounded numbers make up for one another's errors, on data: what is rounded later is moved first.

A product sums x · w. When one row of the matrix is rounded, the rows that are not rounded yet take over as much of the
error as they can, by how what they are multiplied by goes together in the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Moments = Numbers
"""Of what is multiplied by a matrix: the mean of x · xᵀ, (summed, summed)."""

DAMPING = 0.01
"""Of the mean of the squares, which is added to each: few data say little of what goes together."""


@dataclass(frozen=True)
class Grid:
    """What a matrix is rounded to, (number - point) · scale, each by column; numbers go from `low` to `high`.

    These two are of all numbers, or of each.
    """

    scale: Numbers
    point: Numbers
    low: int | Numbers
    high: int | Numbers


def compensated(
    matrix: npt.NDArray[np.floating], moment: Moments, size: int, grid: Callable[[Numbers, slice], Grid]
) -> Numbers:
    """The numbers of a matrix (columns, summed) for products with data of that moment.

    `grid` is told what is left of so many rows, `size` at a time, and which these are.
    """
    summed = matrix.shape[1]
    factor, left = _factor(moment), matrix.astype(np.float64)
    numbers = np.zeros_like(left)
    for first in range(0, summed, size):
        rows = slice(first, min(first + size, summed))
        one = grid(left[:, rows], rows)
        errors = np.zeros((len(left), rows.stop - first))
        low, high = (np.broadcast_to(bound, errors.shape) for bound in (one.low, one.high))
        for place, row in enumerate(range(rows.start, rows.stop)):
            steps = np.round(left[:, row] / one.scale) + one.point
            numbers[:, row] = np.clip(steps, low[:, place], high[:, place])
            errors[:, place] = (left[:, row] - (numbers[:, row] - one.point) * one.scale) / factor[row, row]
            left[:, row : rows.stop] -= np.outer(errors[:, place], factor[row, row : rows.stop])
        left[:, rows.stop :] -= errors @ factor[rows, rows.stop :]
    return numbers


def _factor(moment: Moments) -> Moments:
    """The upper triangular factor of the inverse: what each row that is rounded passes on to the rest."""
    damped = moment + np.eye(len(moment)) * max(DAMPING * float(np.mean(np.diag(moment))), 1e-12)
    inverse = np.linalg.inv(damped)
    return np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2).T)
