"""Linear algebra, as every frontend writes it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose import eigen, matrix
from onward.frontends.decompose.loops import loop
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.diagonal import diag_v3 as diagonal_matrix
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

ROUNDS = 24
"""Of an iteration that doubles the right digits each time, once it is near."""


@rule("MatrixInverse")
def inverse(op: Writer, a: Tensor, *, adjoint: bool = False) -> Tensor:
    return matrix.inverse(op, matrix.turned(op, a) if adjoint else a)


@rule("MatrixSolve")
def solve(op: Writer, a: Tensor, b: Tensor, *, adjoint: bool = False) -> Tensor:
    return matrix.solve(op, matrix.turned(op, a) if adjoint else a, b)


@rule("MatrixDeterminant")
def determinant(op: Writer, a: Tensor) -> Tensor:
    _, log, sign = matrix.eliminated(op, a, matrix.identity(op, a))
    return (sign * op.Exp(log)).cast(a.dtype)


@rule("LogMatrixDeterminant")
def log_determinant(op: Writer, a: Tensor) -> list[Tensor]:
    return matrix.log_determinant(op, a)


@rule("MatrixTriangularSolve")
def triangular_solve(op: Writer, a: Tensor, b: Tensor, *, lower: bool = True, adjoint: bool = False) -> Tensor:
    a = matrix.triangle(op, a, upper=not lower)
    return matrix.solve(op, matrix.turned(op, a) if adjoint else a, b)


@rule("Cholesky")
def cholesky(op: Writer, a: Tensor) -> Tensor:
    return matrix.cholesky(op, a)


@rule("Qr")
def qr(op: Writer, a: Tensor, *, full_matrices: bool = False) -> list[Tensor]:
    return matrix.qr(op, a, full_matrices)


@rule("Cross")
def cross(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    def part(x: Tensor, i: int) -> Tensor:
        return op.Gather(x, op.ints([i]), axis=-1)

    parts = [
        part(a, (i + 1) % 3) * part(b, (i + 2) % 3) - part(a, (i + 2) % 3) * part(b, (i + 1) % 3) for i in range(3)
    ]
    return op.Concat(*parts, axis=-1)


@rule("Svd")
def svd(op: Writer, a: Tensor, *, compute_uv: bool = True, full_matrices: bool = False) -> list[Tensor]:
    if not compute_uv:
        values = matrix.singular_values(op, a)
        return [values, values, values]
    rows, columns = matrix.side(op, a, -2), matrix.side(op, a, -1)
    if full_matrices and rows != columns:
        raise UnsupportedError("full_matrices=True is supported for square matrices only")
    return list(eigen.singular(op, a))


@rule("SelfAdjointEigV2")
def symmetric_eigen(op: Writer, a: Tensor, *, compute_v: bool = True) -> list[Tensor]:
    return list(eigen.symmetric(op, a))


@rule("Lu")
def lu(op: Writer, a: Tensor, *, output_idx_type: ir.DataType = ir.DataType.INT32) -> list[Tensor]:
    packed, places, _ = matrix.lu(op, a)
    return [packed, places.cast(output_idx_type)]


@rule("MatrixSolveLs")
def least_squares(op: Writer, a: Tensor, b: Tensor, penalty: Tensor, *, fast: bool = True) -> Tensor:
    """By the normal equations if that is to be fast, otherwise the shortest of all best solutions."""
    rows, columns = matrix.side(op, a, -2), matrix.side(op, a, -1)
    wide, back = matrix.wide(a), matrix.turned(op, matrix.wide(a))
    if not fast:
        limit = op.like(max(rows, columns) * 1e-12, wide)
        return op.MatMul(matrix.pseudo_inverse(op, wide, op.like(0, wide), limit), matrix.wide(b)).cast(a.dtype)
    square = op.MatMul(back, wide) if rows >= columns else op.MatMul(wide, back)
    square = square + matrix.identity(op, square) * matrix.wide(penalty)
    if rows >= columns:
        return matrix.solve(op, square, op.MatMul(back, matrix.wide(b))).cast(a.dtype)
    return op.MatMul(back, matrix.solve(op, square, matrix.wide(b))).cast(a.dtype)


@rule("TridiagonalSolve")
def tridiagonal_solve(
    op: Writer, a: Tensor, b: Tensor, *, partial_pivoting: bool = True, perturb_singular: bool = False
) -> Tensor:
    """Whatever the order of rows, the solution is the same."""
    if perturb_singular:
        raise UnsupportedError("perturb_singular=True is not supported")
    alone, zero = op.index(-1), op.like(0, a)
    whole = diagonal_matrix(op, a, op.ints([-1, 1]), alone, alone, zero, align="LEFT_RIGHT")
    return matrix.solve(op, whole, b)


@rule("TridiagonalMatMul")
def tridiagonal_product(op: Writer, above: Tensor, main: Tensor, below: Tensor, b: Tensor) -> Tensor:
    """Each row by its diagonal element, the one before it and the one behind it by those beside that."""
    rank = op.rank(b, "the matrices")
    axes = op.ints([rank - 2])
    nothing = op.Slice(op.zeros_like(b), op.ints([0]), op.ints([1]), axes)
    behind = op.Concat(op.Slice(b, op.ints([1]), op.ints([FAR]), axes), nothing, axis=rank - 2)
    before = op.Concat(nothing, op.Slice(b, op.ints([0]), op.ints([-1]), axes), axis=rank - 2)
    up, own, down = (matrix.turned(op, part) for part in (above, main, below))
    return own * b + up * behind + down * before


@rule("MatrixSquareRoot")
def square_root(op: Writer, a: Tensor) -> Tensor:
    """By E. D. Denman and A. N. Beavers: the root and its inverse, each halfway to the inverse of the other."""

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        root, back = states
        return [(root + matrix.inverse(op, back)) * 0.5, (back + matrix.inverse(op, root)) * 0.5]

    wide = matrix.wide(a)
    return loop(op, step, [wide, matrix.identity(op, wide)], rounds=op.index(ROUNDS))[0].cast(a.dtype)
