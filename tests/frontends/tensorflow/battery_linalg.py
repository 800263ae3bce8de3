"""Linear algebra."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, numbers

SQUARE = numbers(4, 4)

DEFINITE = (numbers(4, 4) @ numbers(4, 4).T + 4 * np.eye(4)).astype(np.float32)

DYNAMIC: dict[str, tuple[Any, ...]] = {}
STATIC: dict[str, tuple[Any, ...]] = {
    "la_eigh_vals": (lambda x: tf.linalg.eigvalsh(x), DEFINITE),
    "la_eigh_rec": (lambda x: (lambda e, v: v @ tf.linalg.diag(e) @ tf.transpose(v))(*tf.linalg.eigh(x)), DEFINITE),
    "la_svd_vals": (lambda x: tf.linalg.svd(x, compute_uv=False), numbers(4, 3)),
    "la_svd_rec": (
        lambda x: (lambda d, u, v: u @ tf.linalg.diag(d) @ tf.transpose(v))(*tf.linalg.svd(x)),
        numbers(4, 3),
    ),
    "la_pinv": (tf.linalg.pinv, numbers(4, 3)),
    "la_sqrtm": (tf.linalg.sqrtm, DEFINITE),
    "la_logm_c": (lambda x: tf.math.real(tf.linalg.logm(tf.cast(x, tf.complex64))), DEFINITE),
    "la_lu": (lambda x: tf.linalg.lu(x), SQUARE),
    "la_lu_rec": (lambda x: tf.linalg.lu_reconstruct(*tf.linalg.lu(x)), SQUARE),
    "la_rank": (tf.linalg.matrix_rank, numbers(4, 3)),
    "la_normal": (lambda x: tf.linalg.norm(x, "fro", axis=[0, 1]), SQUARE),
    "la_norm1": (lambda x: tf.linalg.norm(x, 1, axis=1), SQUARE),
    "la_norminf": (lambda x: tf.linalg.norm(x, np.inf), SQUARE),
    "la_norm2": (lambda x: tf.linalg.norm(x, 2, axis=[0, 1]), SQUARE),
    "la_tridiag": (
        lambda x, y: tf.linalg.tridiagonal_solve(x, y, diagonals_format="compact"),
        np.stack([numbers(4), numbers(4, seed=5) + 6, numbers(4, seed=7)]),
        numbers(4),
    ),
    "la_tridiag_mm": (
        lambda x, y: tf.linalg.tridiagonal_matmul(x, y, diagonals_format="compact"),
        numbers(3, 4),
        numbers(4, 2),
    ),
    "la_band_solve": (lambda x, y: tf.linalg.banded_triangular_solve(x, y), np.abs(numbers(2, 4)) + 1, numbers(4, 2)),
    "la_batch_inv": (tf.linalg.inv, np.stack([DEFINITE, DEFINITE + 1])),
    "la_inv_adj": (lambda x: tf.linalg.inv(x, adjoint=True), DEFINITE + SQUARE),
    "la_solve_adj": (lambda x, y: tf.linalg.solve(x, y, adjoint=True), DEFINITE + SQUARE, numbers(4, 2)),
    "la_tri_upper": (lambda x, y: tf.linalg.triangular_solve(x, y, lower=False, adjoint=True), DEFINITE, numbers(4, 2)),
    "la_qr_full": (lambda x: (lambda q, r: q @ r)(*tf.linalg.qr(x, full_matrices=True)), numbers(4, 3)),
    "la_cross2": (tf.linalg.cross, numbers(2, 3), numbers(2, 3, seed=1)),
    "la_lstsq_slow": (lambda x, y: tf.linalg.lstsq(x, y, fast=False), numbers(5, 3), numbers(5, 2)),
    "la_lstsq_reg": (lambda x, y: tf.linalg.lstsq(x, y, l2_regularizer=0.1), numbers(5, 3), numbers(5, 2)),
    "la_global_norm": (lambda x, y: tf.linalg.global_norm([x, y]), SQUARE, DEFINITE),
    "la_lstsq_under": (lambda x, y: tf.linalg.lstsq(x, y), numbers(3, 5), numbers(3, 2)),
    "la_kron": (
        lambda x, y: tf.linalg.LinearOperatorKronecker(
            [tf.linalg.LinearOperatorFullMatrix(x), tf.linalg.LinearOperatorFullMatrix(y)]
        ).to_dense(),
        numbers(2, 2),
        numbers(3, 3),
    ),
    "la_toeplitz": (
        lambda x, y: tf.linalg.LinearOperatorToeplitz(x, y).to_dense(),
        np.array([1.0, 2, 3], np.float32),
        np.array([1.0, 5, 6], np.float32),
    ),
    "la_circ": (
        lambda x, y: tf.math.real(
            tf.linalg.LinearOperatorCirculant(tf.cast(x, tf.complex64)).matmul(tf.cast(y, tf.complex64))
        ),
        numbers(4),
        numbers(4, 2),
    ),
    "la_einsum3": (lambda a, b, d: tf.einsum("ij,jk,kl->il", a, b, d), numbers(2, 3), numbers(3, 4), numbers(4, 2)),
    "la_einsum_b": (lambda a, b: tf.einsum("...ij,...kj->...ik", a, b), numbers(2, 3, 4), numbers(2, 5, 4)),
    "la_einsum_diag": (lambda a: tf.einsum("bii->bi", a), numbers(2, 3, 3)),
    "la_tensordot0": (lambda a, b: tf.tensordot(a, b, 0), numbers(2), numbers(3)),
    "la_logdet_batch": (tf.linalg.logdet, np.stack([DEFINITE, DEFINITE + 1])),
    "la_cholesky64": (tf.linalg.cholesky, DEFINITE.astype(np.float64)),
    "la_expm_b": (tf.linalg.expm, np.stack([SQUARE, DEFINITE * 0.1])),
    "la_matvec_adj": (lambda a, b: tf.linalg.matvec(a, b, adjoint_a=True), SQUARE, numbers(4)),
    "la_eig": (lambda x: tf.math.real(tf.reduce_sum(tf.linalg.eigvals(x))), SQUARE),
}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
