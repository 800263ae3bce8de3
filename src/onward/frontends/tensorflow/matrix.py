"""Linear algebra, by steps whose number the shape tells."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.canon.build import Tensor
from onward.errors import UnsupportedError
from onward.frontends.tensorflow.diagonal import grid
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer


def _side(op: Writer, x: Tensor, axis: int = -1) -> int:
    """The size of square matrices, which must be known: it is the number of steps."""
    size = x.dims[axis] if x.dims is not None else None
    if not isinstance(size, int):
        raise UnsupportedError("the size of the matrices is not known, and it is the number of steps")
    if size > MOST_STEPS:
        raise UnsupportedError(f"matrices of {size}, over {MOST_STEPS}, would be as many steps")
    return size


MOST_STEPS = 64


def _row(op: Writer, x: Tensor, i: int) -> Tensor:
    rank = op.rank(x, "the matrices")
    return op.Slice(x, op.ints([i]), op.ints([i + 1]), op.ints([rank - 2]))


def _column(op: Writer, x: Tensor, i: int) -> Tensor:
    rank = op.rank(x, "the matrices")
    return op.Slice(x, op.ints([i]), op.ints([i + 1]), op.ints([rank - 1]))


def eliminated(op: Writer, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gauss and Jordan with the largest pivot of each column: the solution of `a x = b`, log |det a|, its sign."""
    size = _side(op, a)
    a, b = a.cast(ir.DataType.DOUBLE), b.cast(ir.DataType.DOUBLE)
    log = sign = None
    numbers = op.constant(np.arange(size, dtype=np.int64).reshape(size, 1))
    for i in range(size):
        column = _column(op, a, i)
        candidates = op.Where(op.constant(np.arange(size).reshape(size, 1) >= i), op.Abs(column), op.like(-1, a))
        best = op.ArgMax(candidates, axis=-2, keepdims=1)
        at_best, at_own = op.Equal(numbers, best), op.constant(np.arange(size).reshape(size, 1) == i)
        swaps = op.Not(op.Equal(best, op.index(i)))
        flip = op.squeeze(op.where(swaps, op.like(-1, a), op.like(1, a)), [-2, -1])
        sign = flip if sign is None else sign * flip

        def swapped(m: Tensor, own: Tensor = at_own, other: Tensor = at_best, i: int = i) -> Tensor:
            picked = op.sum(op.Where(other, m, op.like(0, m)), [-2])
            return op.Where(own, picked, op.Where(other, _row(op, m, i), m))

        a, b = swapped(a), swapped(b)
        pivot = _column(op, _row(op, a, i), i)
        flat = op.squeeze(pivot, [-2, -1])
        log = op.Log(op.Abs(flat)) if log is None else log + op.Log(op.Abs(flat))
        sign = sign * op.Sign(flat)
        row_a, row_b = _row(op, a, i) / pivot, _row(op, b, i) / pivot
        factor = op.Where(at_own, op.like(0, a), _column(op, a, i))
        a = op.Where(at_own, row_a, a - factor * row_a)
        b = op.Where(at_own, row_b, b - factor * row_b)
    if log is None or sign is None:
        raise UnsupportedError("a matrix of no rows")
    return b, log, sign


def _identity(op: Writer, like: Tensor) -> Tensor:
    size = _side(op, like)
    return op.zeros_like(like) + op.constant(np.eye(size, dtype=like.dtype.numpy()))


def _turned(op: Writer, x: Tensor) -> Tensor:
    rank = op.rank(x, "the matrices")
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@rule("MatrixInverse")
def inverse(op: Writer, a: Tensor, *, adjoint: bool = False) -> Tensor:
    a = _turned(op, a) if adjoint else a
    return eliminated(op, a, _identity(op, a))[0].cast(a.dtype)


@rule("MatrixSolve")
def solve(op: Writer, a: Tensor, b: Tensor, *, adjoint: bool = False) -> Tensor:
    return eliminated(op, _turned(op, a) if adjoint else a, b)[0].cast(a.dtype)


@rule("MatrixDeterminant")
def determinant(op: Writer, a: Tensor) -> Tensor:
    _, log, sign = eliminated(op, a, _identity(op, a))
    return (sign * op.Exp(log)).cast(a.dtype)


@rule("LogMatrixDeterminant")
def log_determinant(op: Writer, a: Tensor) -> list[Tensor]:
    _, log, sign = eliminated(op, a, _identity(op, a))
    return [sign.cast(a.dtype), log.cast(a.dtype)]


@rule("MatrixTriangularSolve")
def triangular_solve(op: Writer, a: Tensor, b: Tensor, *, lower: bool = True, adjoint: bool = False) -> Tensor:
    rows, columns = grid(op, a)
    a = op.Where(rows >= columns if lower else rows <= columns, a, op.like(0, a))
    return eliminated(op, _turned(op, a) if adjoint else a, b)[0].cast(a.dtype)


@rule("Cholesky")
def cholesky(op: Writer, a: Tensor) -> Tensor:
    """Column by column, of what the columns before leave."""
    size = _side(op, a)
    dtype = a.dtype
    rest = a.cast(ir.DataType.DOUBLE)
    columns = []
    for i in range(size):
        column = _column(op, rest, i) / op.Sqrt(_column(op, _row(op, rest, i), i))
        column = op.Where(op.constant(np.arange(size).reshape(size, 1) >= i), column, op.like(0, column))
        columns.append(column)
        rest = rest - column * _turned(op, column)
    return op.Concat(*columns, axis=-1).cast(dtype)


@rule("Qr")
def qr(op: Writer, a: Tensor, *, full_matrices: bool = False) -> list[Tensor]:
    """By Householder's reflections, with the signs that TensorFlow has."""
    rows, columns = _side(op, a, -2), _side(op, a, -1)
    dtype = a.dtype
    r = a.cast(ir.DataType.DOUBLE)
    q = op.zeros_like(op.MatMul(r, _turned(op, r))) + op.constant(np.eye(rows))
    for i in range(min(rows - 1, columns)):
        x = op.Where(op.constant(np.arange(rows).reshape(rows, 1) >= i), _column(op, r, i), op.like(0, r))
        norm = op.Sqrt(op.sum(x * x, [-2]))
        first = _row(op, x, i)
        shift = op.where(first < 0.0, -norm, norm)
        v = x + shift * op.constant(np.eye(rows)[:, i : i + 1])
        square = op.sum(v * v, [-2])
        scale = 2.0 / op.where(op.Equal(square, op.like(0, square)), op.like(1, square), square)
        r = r - v * op.MatMul(_turned(op, v), r) * scale
        q = q - op.MatMul(q, v) * _turned(op, v) * scale
    if not full_matrices:
        kept = min(rows, columns)
        rank = op.rank(a, "the matrices")
        q = op.Slice(q, op.ints([0]), op.ints([kept]), op.ints([rank - 1]))
        r = op.Slice(r, op.ints([0]), op.ints([kept]), op.ints([rank - 2]))
    upper_rows, upper_columns = grid(op, r)
    return [q.cast(dtype), op.Where(upper_rows <= upper_columns, r, op.like(0, r)).cast(dtype)]


@rule("Cross")
def cross(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    def part(x: Tensor, i: int) -> Tensor:
        return op.Gather(x, op.ints([i]), axis=-1)

    parts = [
        part(a, (i + 1) % 3) * part(b, (i + 2) % 3) - part(a, (i + 2) % 3) * part(b, (i + 1) % 3) for i in range(3)
    ]
    return op.Concat(*parts, axis=-1)
