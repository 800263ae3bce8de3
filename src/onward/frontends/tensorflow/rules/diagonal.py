"""Diagonals of matrices, bands of them, and triangles."""

from __future__ import annotations

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.decompose.matrix import grid, numbered, sides
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("MatrixBandPart")
def band_part(op: Writer, x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    rows, columns = grid(op, x)
    below, above = op.int64(lower), op.int64(upper)
    zero = op.index(0)
    near = op.Or(below < zero, rows - columns <= below)
    near = op.And(near, op.Or(above < zero, columns - rows <= above))
    return op.Where(near, x, op.like(0, x))


class Band:
    """Diagonals from the lowest to the highest, as TensorFlow packs them: one row each, the highest first.

    Short ones stand at the left of their rows or at the right: those above the main one by one rule, those below by
    another.
    """

    def __init__(self, op: Writer, k: Tensor | None, align: str, rows: Tensor, columns: Tensor) -> None:
        numbers = [0] if k is None else op.numbers(k, "which diagonals")
        self.op, self.align, self.rows, self.columns = op, align, rows, columns
        self.low, self.high = numbers[0], numbers[-1]
        self.length = op.Min(rows + op.index(min(self.high, 0)), columns - op.index(max(self.low, 0)))

    @property
    def count(self) -> int:
        return self.high - self.low + 1

    def offset(self, which: Tensor) -> Tensor:
        """How far from the left each diagonal begins."""
        op, zero = self.op, self.op.index(0)
        own = op.Min(self.rows + op.Min(which, zero), self.columns - op.Max(which, zero))
        above, below = self.align.split("_")
        right = [side for side, where in ((which >= zero, above), (which <= zero, below)) if where == "RIGHT"]
        if not right:
            return zero
        return op.where(right[0] if len(right) == 1 else op.Or(*right), self.length - own, zero)


def _part(op: Writer, x: Tensor, k: Tensor | None, padding: Tensor | None, align: str) -> Tensor:
    rank = op.rank(x, "the matrices")
    band = Band(op, k, align, *sides(op, x))
    which = op.constant(np.arange(band.high, band.low - 1, -1, dtype=np.int64).reshape(-1, 1))
    place = op.unsqueeze(op.Range(op.index(0), band.length, op.index(1)), [0]) - band.offset(which)
    zero = op.index(0)
    row, column = place + op.Max(-which, zero), place + op.Max(which, zero)
    inside = op.And(op.And(row >= zero, column >= zero), op.And(row < band.rows, column < band.columns))
    flat = op.Reshape(x, op.Concat(op.Slice(op.Shape(x), op.ints([0]), op.ints([rank - 2])), op.ints([-1]), axis=0))
    found = op.Gather(flat, op.where(inside, row * band.columns + column, zero), axis=rank - 2)
    found = op.Where(inside, found, op.like(0, x) if padding is None else padding)
    return op.squeeze(found, [rank - 2]) if band.count == 1 else found


def _spread(op: Writer, band: Band, diagonals: Tensor) -> tuple[Tensor, Tensor]:
    """Where in a matrix the diagonals are, and a matrix that has them there."""
    rank = op.rank(diagonals, "the diagonals")
    outer = rank - 1 if band.count == 1 else rank - 2
    row, column = numbered(op, band.rows, band.columns)
    which = column - row
    inside = op.And(which >= op.index(band.low), which <= op.index(band.high))
    place = column - op.Max(which, op.index(0)) + band.offset(which)
    index = op.where(inside, (op.index(band.high) - which) * band.length + place, op.index(0))
    start = op.Slice(op.Shape(diagonals), op.ints([0]), op.ints([outer]))
    return inside, op.Gather(op.Reshape(diagonals, op.Concat(start, op.ints([-1]), axis=0)), index, axis=outer)


@rule("MatrixDiagPart")
def diag_part(op: Writer, x: Tensor) -> Tensor:
    return _part(op, x, None, None, "LEFT_LEFT")


@rule("MatrixDiagPartV2")
def diag_part_v2(op: Writer, x: Tensor, k: Tensor, padding: Tensor) -> Tensor:
    return _part(op, x, k, padding, "LEFT_LEFT")


@rule("MatrixDiagPartV3")
def diag_part_v3(op: Writer, x: Tensor, k: Tensor, padding: Tensor, *, align: str = "RIGHT_LEFT") -> Tensor:
    return _part(op, x, k, padding, align)


def _matrix(
    op: Writer, x: Tensor, k: Tensor, rows: Tensor, columns: Tensor, padding: Tensor, align: str = "LEFT_LEFT"
) -> Tensor:
    low, *_, high = op.numbers(k, "which diagonals") * 2
    length = op.Gather(op.Shape(x), op.index(-1))
    least = length - op.index(min(high, 0)), length + op.index(max(low, 0))
    asked = op.numbers(rows, "the rows")[0], op.numbers(columns, "the columns")[0]
    if asked == (-1, -1):
        least = (op.Max(*least),) * 2
    sides = [few if size < 0 else op.index(size) for size, few in zip(asked, least, strict=True)]
    inside, values = _spread(op, Band(op, k, align, sides[0], sides[1]), x)
    return op.Where(inside, values, padding)


@rule("MatrixDiag", "Diag")
def diag(op: Writer, x: Tensor) -> Tensor:
    if op.operation.type == "Diag" and x.rank != 1:
        raise UnsupportedError("the diagonal of a tensor of more than two axes is not supported")
    alone = op.index(-1)
    return _matrix(op, x, op.index(0), alone, alone, op.like(0, x))


@rule("MatrixDiagV2")
def diag_v2(op: Writer, x: Tensor, k: Tensor, rows: Tensor, columns: Tensor, padding: Tensor) -> Tensor:
    return _matrix(op, x, k, rows, columns, padding)


@rule("MatrixDiagV3")
def diag_v3(
    op: Writer, x: Tensor, k: Tensor, rows: Tensor, columns: Tensor, padding: Tensor, *, align: str = "RIGHT_LEFT"
) -> Tensor:
    return _matrix(op, x, k, rows, columns, padding, align)


@rule("DiagPart")
def tensor_diag_part(op: Writer, x: Tensor) -> Tensor:
    """Of a tensor whose second half of axes is as its first."""
    half = op.rank(x, "the tensor") // 2
    shape = op.Slice(op.Shape(x), op.ints([0]), op.ints([half]))
    size = op.reduced("ReduceProd", shape, [0], keepdims=True)
    return op.Reshape(_part(op, op.Reshape(x, op.Concat(size, size, axis=0)), None, None, "LEFT_LEFT"), shape)


@rule("MatrixSetDiag")
def set_diag(op: Writer, x: Tensor, diagonal: Tensor) -> Tensor:
    return _set(op, x, diagonal, None, "LEFT_LEFT")


@rule("MatrixSetDiagV2")
def set_diag_v2(op: Writer, x: Tensor, diagonal: Tensor, k: Tensor) -> Tensor:
    return _set(op, x, diagonal, k, "LEFT_LEFT")


@rule("MatrixSetDiagV3")
def set_diag_v3(op: Writer, x: Tensor, diagonal: Tensor, k: Tensor, *, align: str = "RIGHT_LEFT") -> Tensor:
    return _set(op, x, diagonal, k, align)


def _set(op: Writer, x: Tensor, diagonal: Tensor, k: Tensor | None, align: str) -> Tensor:
    inside, values = _spread(op, Band(op, k, align, *sides(op, x)), diagonal)
    return op.Where(inside, values, x)
