"""Tensors side by side in one buffer: updated in place, chunk by chunk, bound to a runtime by their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
LINE = 16
"""Elements between the starts of tensors: whole cache lines."""


class SharedBuffer:
    """Named tensors of one dtype, each a view of the buffer."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], dtype: np.dtype[Any]) -> None:
        self.offsets: dict[str, int] = {}
        end = 0
        for name, shape in shapes.items():
            self.offsets[name] = end
            end += -(-int(np.prod(shape, dtype=np.int64)) // LINE) * LINE
        self.buffer: Array = np.zeros(end, dtype)
        self.views: dict[str, Array] = {
            name: self.buffer[self.offsets[name] :][: int(np.prod(shape, dtype=np.int64))].reshape(shape)
            for name, shape in shapes.items()
        }

    @classmethod
    def of(cls, arrays: Mapping[str, Array], dtype: np.dtype[Any]) -> SharedBuffer:
        """A copy of arrays."""
        made = cls({name: array.shape for name, array in arrays.items()}, dtype)
        for name, array in arrays.items():
            made.views[name][...] = array
        return made

    def like(self) -> SharedBuffer:
        """Zeros of the same shapes."""
        return SharedBuffer({name: view.shape for name, view in self.views.items()}, self.buffer.dtype)

    def chunks(self, size: int) -> Iterator[slice]:
        """The buffer in pieces of at most `size` elements."""
        for start in range(0, len(self.buffer), size):
            yield slice(start, min(start + size, len(self.buffer)))
