"""Linear algebra. The signs of singular vectors and eigenvectors are no function of the matrix, and may differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import matrix
from onward.graph.build import Tensor


@rule("triangular_solve")
def triangular_solve(
    op: Writer,
    a: Tensor,
    b: Tensor,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Tensor:
    return matrix.triangular_solve(
        op, a, b, left=left_side, lower=lower, transpose=bool(transpose_a), unit=unit_diagonal
    )


@rule("cholesky")
def cholesky(op: Writer, a: Tensor, *, symmetrize_input: bool = False) -> Tensor:
    return matrix.cholesky(op, a, symmetrize_input)


@rule("lu")
def lu(op: Writer, a: Tensor) -> Sequence[Tensor]:
    return list(matrix.lu(op, a))


@rule("lu_pivots_to_permutation")
def lu_pivots_to_permutation(op: Writer, pivots: Tensor, *, permutation_size: int) -> Tensor:
    return matrix.pivots_to_permutation(op, pivots, permutation_size)


@rule("geqrf")
def geqrf(op: Writer, a: Tensor) -> Sequence[Tensor]:
    return list(matrix.reflections(op, a))


@rule("householder_product")
def householder_product(op: Writer, packed: Tensor, factors: Tensor) -> Tensor:
    return matrix.product_of_reflections(op, packed, factors)


@rule("qr")
def qr(op: Writer, a: Tensor, *, full_matrices: bool, pivoting: bool = False) -> Sequence[Tensor]:
    if pivoting:
        raise UnsupportedError("a QR decomposition with pivoting is not supported; use one without")
    return list(matrix.qr(op, a, full_matrices))


@rule("svd")
def svd(
    op: Writer, a: Tensor, *, compute_uv: bool, full_matrices: bool, subset_by_index: Any = None
) -> Sequence[Tensor]:
    if subset_by_index is not None:
        raise UnsupportedError("a part of the singular values is not supported; take it of all")
    left, values, right = matrix.svd(op, a, full_matrices and compute_uv)
    return [values, left, right] if compute_uv else [values]


@rule("eigh")
def eigh(op: Writer, a: Tensor, *, lower: bool, subset_by_index: Any = None) -> Sequence[Tensor]:
    if subset_by_index is not None and tuple(subset_by_index) != (0, matrix.side(a)):
        raise UnsupportedError("a part of the eigenvalues is not supported; take it of all")
    return list(matrix.eigh(op, a, lower))


@rule("tridiagonal_solve")
def tridiagonal_solve(op: Writer, below: Tensor, diagonal: Tensor, above: Tensor, b: Tensor) -> Tensor:
    return matrix.tridiagonal_solve(op, below, diagonal, above, b)
