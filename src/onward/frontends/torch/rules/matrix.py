"""Linear algebra.

What PyTorch gives beside the result (a factorisation, whether it failed) has no translation. Where PyTorch raises an
error, as for a singular matrix, results are not finite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose import matrix
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor

Outputs = Sequence[Tensor | None]


@rule("linalg_inv_ex")
def inverse(op: Builder, a: Tensor, *, check_errors: bool = False) -> Outputs:
    return matrix.inverse(op, a), None


rule("linalg_inv", "inverse")(matrix.inverse)


@rule("linalg_matrix_power")
def power(op: Builder, a: Tensor, n: int) -> Tensor:
    """By squares."""
    base, left = (matrix.inverse(op, a) if n < 0 else a), abs(n)
    result = None
    while left:
        if left % 2:
            result = base if result is None else op.MatMul(result, base)
        left //= 2
        base = op.MatMul(base, base) if left else base
    return op.Identity(matrix.identity(op, a) if result is None else result)


@rule("_linalg_slogdet")
def log_determinant(op: Builder, a: Tensor) -> Outputs:
    return *matrix.log_determinant(op, a), None, None


@rule("_linalg_solve_ex")
def solve_ex(op: Builder, a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Outputs:
    return solve(op, a, b, left=left), None, None, None


@rule("linalg_solve")
def solve(op: Builder, a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    is_vector = b.rank == 1 or (b.rank == op.rank(a, "the matrices") - 1 and b.dims == (a.dims or [])[:-1])
    if is_vector:
        return op.squeeze(matrix.solve(op, a, op.unsqueeze(b, [-1])), [-1])
    if left:
        return matrix.solve(op, a, b)
    return matrix.turned(op, matrix.solve(op, matrix.turned(op, a), matrix.turned(op, b)))


@rule("linalg_solve_triangular")
def solve_triangular(
    op: Builder, a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    if left:
        return matrix.triangular_solve(op, a, b, upper, unitriangular)
    found = matrix.triangular_solve(op, matrix.turned(op, a), matrix.turned(op, b), not upper, unitriangular)
    return matrix.turned(op, found)


@rule("triangular_solve")
def triangular_solve(
    op: Builder, b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Outputs:
    if transpose:
        a, upper = matrix.turned(op, a), not upper
    return matrix.triangular_solve(op, a, b, upper, unitriangular), None


@rule("linalg_cholesky_ex")
def cholesky_ex(op: Builder, a: Tensor, *, upper: bool = False, check_errors: bool = False) -> Outputs:
    return cholesky(op, a, upper=upper), None


@rule("linalg_cholesky", "cholesky")
def cholesky(op: Builder, a: Tensor, upper: bool = False) -> Tensor:
    return matrix.turned(op, matrix.cholesky(op, matrix.turned(op, a))) if upper else matrix.cholesky(op, a)


def _by_factor(op: Builder, factor: Tensor, b: Tensor, upper: bool) -> Tensor:
    """The solution for the matrix that a Cholesky factor is of."""
    lower = matrix.turned(op, factor) if upper else factor
    half = matrix.triangular_solve(op, lower, b, upper=False)
    return matrix.triangular_solve(op, matrix.turned(op, lower), half, upper=True)


@rule("cholesky_solve")
def cholesky_solve(op: Builder, b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    return _by_factor(op, factor, b, upper)


@rule("cholesky_inverse")
def cholesky_inverse(op: Builder, factor: Tensor, upper: bool = False) -> Tensor:
    return _by_factor(op, factor, matrix.identity(op, factor), upper)


@rule("linalg_qr")
def qr(op: Builder, a: Tensor, mode: str = "reduced") -> Outputs:
    q, r = matrix.qr(op, a, full=mode == "complete")
    return (None if mode == "r" else q), r


@rule("linalg_lu")
def lu(op: Builder, a: Tensor, *, pivot: bool = True) -> Outputs:
    """A permutation, a lower and an upper triangle, whose product the matrix is."""
    if not pivot:
        raise UnsupportedError("pivot=False is not supported")
    packed, places, _ = matrix.lu(op, a)
    rows, columns = matrix.side(op, a, -2), matrix.side(op, a, -1)
    kept, rank = min(rows, columns), op.rank(a, "the matrices")
    permutation = op.Equal(op.unsqueeze(places, [-2]), op.constant(np.arange(rows).reshape(rows, 1))).cast(a.dtype)
    lower = op.Slice(matrix.triangle(op, packed, upper=False), op.ints([0]), op.ints([kept]), op.ints([rank - 1]))
    lower = op.Where(op.constant(np.eye(rows, kept, dtype=bool)), op.like(1, lower), lower)
    upper = op.Slice(matrix.triangle(op, packed, upper=True), op.ints([0]), op.ints([kept]), op.ints([rank - 2]))
    return permutation, lower, upper


@rule("linalg_lu_factor_ex")
def lu_factor_ex(op: Builder, a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Outputs:
    return *lu_factor(op, a, pivot=pivot), None


@rule("linalg_lu_factor")
def lu_factor(op: Builder, a: Tensor, *, pivot: bool = True) -> Sequence[Tensor]:
    """Both factors in one matrix, and which row each was swapped with, counted from one."""
    if not pivot:
        raise UnsupportedError("pivot=False is not supported")
    packed, _, pivots = matrix.lu(op, a)
    return packed, (pivots + 1).cast(ir.DataType.INT32)


@rule("linalg_lu_solve")
def lu_solve(
    op: Builder, packed: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    if not left or adjoint:
        raise UnsupportedError("left=False and adjoint=True are not supported")
    size = matrix.side(op, packed)
    others = pivots.cast(ir.DataType.INT64) - 1
    numbers = op.constant(np.arange(size, dtype=np.int64).reshape(size, 1))
    for i in range(size):
        other = op.unsqueeze(op.Gather(others, op.ints([i]), axis=-1), [-1])
        b = matrix.swapped(op, b, i, op.constant(np.arange(size).reshape(size, 1) == i), op.Equal(numbers, other))
    half = matrix.triangular_solve(op, packed, b, upper=False, unit=True)
    return matrix.triangular_solve(op, packed, half, upper=True)


@rule("_linalg_svd")
def svd(
    op: Builder, a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> Outputs:
    """The singular values; the signs of the vectors are no function of the matrix."""
    return None, matrix.singular_values(op, a), None


@rule("_linalg_eigh")
def eigh(op: Builder, a: Tensor, UPLO: str = "L", compute_v: bool = True) -> Outputs:
    """The eigenvalues, of the triangle that counts; the signs of the vectors are no function of the matrix."""
    rows, columns = matrix.grid(op, a)
    counts = rows >= columns if UPLO.upper() == "L" else rows <= columns
    return matrix.eigenvalues(op, op.Where(counts, a, matrix.turned(op, a))), None


@rule("linalg_pinv.atol_rtol_tensor")
def pseudo_inverse(
    op: Builder, a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    if hermitian:
        raise UnsupportedError("hermitian=True is not supported")
    absolute = op.like(0, a) if atol is None else atol
    if rtol is None:
        largest = max(matrix.side(op, a, -1), matrix.side(op, a, -2))
        share = op.like(float(np.finfo(a.dtype.numpy()).eps) * largest, a)
        rtol = share if atol is None else op.where(atol > 0.0, op.like(0, a), share)
    limits = [limit if not limit.rank else op.unsqueeze(limit, [-2, -1]) for limit in (absolute, rtol)]
    return matrix.pseudo_inverse(op, a, *limits)


@rule("linalg_matrix_exp")
def exponential(op: Builder, a: Tensor) -> Tensor:
    return matrix.exponential(op, a)
