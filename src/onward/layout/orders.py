"""In which order the axes of a tensor are stored.

An *order* names, for each axis as stored, the axis of the graph that it is: (0, 2, 3, 1) stores NCHW as NHWC. A tensor
is meant channels first or channels last (its `meaning`, from how the graph computes with it), and is stored either way
(its `storage`); where the two are the same it is stored as the graph has it.
"""

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

T = TypeVar("T")
Order = tuple[int, ...]

RANKS = (3, 4, 5)
"""Ranks of images: N, C, and one to three spatial axes."""
MOVABLE = range(3, 9)
"""Ranks of tensors that may be stored in another order: images, and what a Reshape makes of their axes."""


class Layout(Enum):
    """Where the channels are."""

    FIRST = "nchw"
    LAST = "nhwc"

    @property
    def other(self) -> "Layout":
        return Layout.LAST if self is Layout.FIRST else Layout.FIRST


def identity(rank: int) -> Order:
    return tuple(range(rank))


def to_last(rank: int) -> Order:
    """The permutation that moves the second axis to the end."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> Order:
    """The permutation that moves the last axis to the second place."""
    return (0, rank - 1, *range(1, rank - 1))


def order_of(rank: int, meaning: Layout, storage: Layout) -> Order:
    if meaning is storage:
        return identity(rank)
    return to_last(rank) if storage is Layout.LAST else to_first(rank)


def between(given: Order, wanted: Order) -> Order:
    """The permutation of a Transpose from one order to another."""
    return tuple(given.index(axis) for axis in wanted)


def arranged(items: Sequence[T], order: Order) -> list[T]:
    """What belongs to the axes of the graph, in the order of the axes as stored."""
    return [items[axis] for axis in order]


def moves_nothing(dims: Sequence[object], order: Order) -> bool:
    """Whether elements stay where they are in memory, because all axes that are passed by are of size 1."""
    kept = [axis for axis in order if dims[axis] != 1]
    return kept == sorted(kept)
