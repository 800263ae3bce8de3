"""Linear algebra, as every frontend writes it."""

from __future__ import annotations

from onward.canon.build import Tensor
from onward.frontends.decompose import matrix
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer


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
