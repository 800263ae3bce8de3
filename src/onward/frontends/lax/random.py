"""Random numbers of a key: Threefry 2x32 with 20 rounds, by J. Salmon et al., bit for bit.

ONNX Runtime adds, shifts and combines uint32, which wraps as it should.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.sizes import Size, product, reshaped
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

UINT32, UINT64 = ir.DataType.UINT32, ir.DataType.UINT64
PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))

Words = tuple[Tensor, Tensor]


def threefry(op: Writer, key: Words, count: Words) -> Words:
    """Two words of each count; keys and counts have shapes that fit each other."""
    words = [*key, op.BitwiseXor(op.BitwiseXor(*key), op.like(PARITY, key[0]))]
    x, y = count[0] + words[0], count[1] + words[1]
    for i in range(5):
        for places in ROTATIONS[i % 2]:
            x = x + y
            y = op.BitwiseXor(_rotated(op, y, places), x)
        x = x + words[(i + 1) % 3]
        y = y + (words[(i + 2) % 3] + op.like(i + 1, y))
    return x, y


def _rotated(op: Writer, x: Tensor, places: int) -> Tensor:
    left = op.BitShift(x, op.like(places, x), direction="LEFT")
    return op.BitwiseOr(left, op.BitShift(x, op.like(32 - places, x), direction="RIGHT"))


def counts(op: Writer, shape: Sequence[Size]) -> Words:
    """The number of each element: its upper and its lower word."""
    total = product(op, shape)
    if isinstance(total, int):
        if total >= 2**32:
            raise UnsupportedError("more random numbers at once than 32 bits can count are not supported")
        numbers = op.constant(np.arange(total, dtype=np.uint32)) if total <= 4096 else _range(op, op.index(total))
    else:
        numbers = _range(op, total)
    return op.constant(np.zeros((), np.uint32)), reshaped(op, numbers, list(shape))


def _range(op: Writer, total: Tensor) -> Tensor:
    return op.Range(op.index(0), total, op.index(1)).cast(UINT32)


def drawn(op: Writer, key: Words, shape: Sequence[Size]) -> Words:
    """Two words for each element of a shape, which follows the axes of the keys."""
    behind = len(shape)
    spread = [op.unsqueeze(word, [op.rank(word, "keys") + i for i in range(behind)]) for word in key]
    return threefry(op, (spread[0], spread[1]), counts(op, shape))


def bits(op: Writer, key: Words, shape: Sequence[Size], width: int) -> Tensor:
    upper, lower = drawn(op, key, shape)
    if width == 64:
        wide = op.BitShift(upper.cast(UINT64), op.constant(np.asarray(32, np.uint64)), direction="LEFT")
        return op.BitwiseOr(wide, lower.cast(UINT64))
    return op.BitwiseXor(upper, lower).cast({8: ir.DataType.UINT8, 16: ir.DataType.UINT16, 32: UINT32}[width])


def seeded(op: Writer, seed: Tensor) -> Words:
    """The key of a seed: its upper and its lower word."""
    if seed.dtype.itemsize == 8:
        wide = seed.cast(UINT64)
        upper = op.BitShift(wide, op.constant(np.asarray(32, np.uint64)), direction="RIGHT")
        return upper.cast(UINT32), wide.cast(UINT32)
    lower = seed.cast(UINT32)
    return op.zeros_like(lower), lower


def folded_in(op: Writer, key: Words, data: Tensor) -> Words:
    """The key of another key and a number."""
    return threefry(op, key, seeded(op, data))
