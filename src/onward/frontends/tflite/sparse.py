"""Constants of which only what is not zero is stored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.gate.bounds import check_room

DENSE = 0
"""The format of a dimension of which all is there; of others, the places are listed."""


def dense(values: npt.NDArray[Any], shape: list[int], sparsity: Any) -> npt.NDArray[Any]:
    """All of it. Dimensions are walked in the order that the file says; blocks of some of them are dimensions more."""
    order = [int(axis) for axis in sparsity.traversalOrder]
    blocks = [] if sparsity.blockMap is None else [int(axis) for axis in sparsity.blockMap]
    inside = {axis: int(sparsity.dimMetadata[len(shape) + i].denseSize) for i, axis in enumerate(blocks)}
    outer = [n // inside.get(axis, 1) for axis, n in enumerate(shape)]
    sizes = outer + [inside[axis] for axis in blocks]
    check_room("a sparse constant", sizes, values.itemsize, values.nbytes)
    made = np.zeros([sizes[axis] for axis in order], values.dtype)
    for value, place in zip(values.reshape(-1), _places(sparsity.dimMetadata), strict=False):
        made[place] = value
    back = np.argsort(order)
    made = made.transpose(back)
    together: list[int] = []
    for axis in range(len(shape)):
        together += [axis, *(len(shape) + i for i, of in enumerate(blocks) if of == axis)]
    return made.transpose(together).reshape(shape)


def _places(levels: Any) -> Iterator[tuple[int, ...]]:
    """Where each stored value belongs, level by level; a parent is the number of what is stored up to there."""

    def down(level: int, parent: int) -> Iterator[tuple[int, ...]]:
        if level == len(levels):
            yield ()
            return
        how = levels[level]
        if how.format == DENSE:
            children = ((parent * how.denseSize + i, i) for i in range(how.denseSize))
        else:
            segments, indices = how.arraySegments.values, how.arrayIndices.values
            children = ((k, int(indices[k])) for k in range(int(segments[parent]), int(segments[parent + 1])))
        for number, place in children:
            for rest in down(level + 1, number):
                yield (place, *rest)

    return itertools.chain(down(0, 0))
