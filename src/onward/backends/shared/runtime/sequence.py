"""Lists of tensors. They are never changed in place: another value may share them."""

from typing import Any

import numpy as np


def sequence_insert(sequence: list[Any], item: Any, position: int) -> list[Any]:
    """A list with one more element; the position may be negative, len(sequence) appends."""
    position = position + len(sequence) if position < 0 else position
    return [*sequence[:position], item, *sequence[position:]]


def sequence_erase(sequence: list[Any], position: int) -> list[Any]:
    """A list without the element at a position, which may be negative."""
    position = position + len(sequence) if position < 0 else position
    return sequence[:position] + sequence[position + 1 :]


def split_strings_by(x: np.ndarray, sizes: list[int] | int, axis: int) -> list[np.ndarray]:
    """Parts of an array of strings, of the given sizes or of one size; the last may be smaller then."""
    ends = np.cumsum(sizes)[:-1] if isinstance(sizes, list) else range(sizes, x.shape[axis], sizes)
    return np.split(x, ends, axis=axis)


def unbind_strings(x: np.ndarray, axis: int) -> list[np.ndarray]:
    """The slices of an array of strings along an axis."""
    return [np.asarray(x.take(i, axis), dtype=object) for i in range(x.shape[axis])]
