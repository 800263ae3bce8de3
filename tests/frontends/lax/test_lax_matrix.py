"""Factorisations and solutions, against JAX."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from written import near, run, same

from onward.frontends.lax import matrix

RNG = np.random.default_rng(0)
A = (RNG.normal(size=(2, 6, 6)) + 4 * np.eye(6)).astype(np.float32)
B = RNG.normal(size=(2, 6, 3)).astype(np.float32)
TALL = RNG.normal(size=(2, 6, 4)).astype(np.float32)
WIDE = TALL.swapaxes(1, 2).copy()


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_solve(left, lower, transpose, unit):
    b = B if left else B.swapaxes(1, 2).copy()
    a = A / 8 if unit else A
    wanted = lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit)
    found = run(
        lambda op, a, b: matrix.triangular_solve(op, a, b, left=left, lower=lower, transpose=transpose, unit=unit), a, b
    )
    near(found[0], wanted, rtol=1e-3, atol=1e-4)


def test_cholesky():
    spd = A @ A.swapaxes(1, 2)
    near(run(lambda op, a: matrix.cholesky(op, a, symmetrize=True), spd)[0], jnp.linalg.cholesky(spd), 1e-3, 1e-4)
    assert np.isnan(run(lambda op, a: matrix.cholesky(op, a, symmetrize=True), -spd)[0]).all()


@pytest.mark.parametrize("a", [A, TALL, WIDE], ids=["square", "tall", "wide"])
def test_factors(a):
    packed, pivots, order = run(matrix.lu, a)
    wanted = lax.linalg.lu(a)
    near(packed, wanted[0], 1e-3, 1e-4)
    same(pivots, wanted[1])
    same(order, wanted[2])
    found = run(lambda op, p: matrix.pivots_to_permutation(op, p, a.shape[-2]), pivots)[0]
    same(found, wanted[2])
    for full in (False, True):
        mode = "complete" if full else "reduced"
        for one, other in zip(run(lambda op, a, f=full: matrix.qr(op, a, f), a), jnp.linalg.qr(a, mode), strict=True):
            near(one, other, 1e-3, 1e-4)
        u, s, v = run(lambda op, a, f=full: matrix.svd(op, a, f), a)
        near(s, jnp.linalg.svd(a, compute_uv=False), 1e-4, 1e-5)
        k = s.shape[-1]
        np.testing.assert_allclose((u[..., :k] * s[:, None]) @ v[:, :k], a, atol=1e-4)
        np.testing.assert_allclose(
            u.swapaxes(1, 2) @ u, np.broadcast_to(np.eye(u.shape[-1]), (2, *[u.shape[-1]] * 2)), atol=1e-5
        )


@pytest.mark.parametrize("lower", [False, True])
def test_eigenvalues(lower):
    """Of a matrix that is not symmetric, what one triangle says; an odd number of columns."""
    a = A[:, :5, :5]
    v, w = run(lambda op, a: matrix.eigh(op, a, lower), a)
    whole = np.tril(a) + np.tril(a, -1).swapaxes(1, 2) if lower else np.triu(a) + np.triu(a, 1).swapaxes(1, 2)
    near(w, np.linalg.eigvalsh(whole), 1e-4, 1e-5)
    np.testing.assert_allclose((v * w[:, None]) @ v.swapaxes(1, 2), whole, atol=1e-4)


def test_many_columns():
    """Beyond what could be written pair by pair."""
    a = RNG.normal(size=(40, 33)).astype(np.float32)
    near(run(lambda op, a: matrix.svd(op, a, full=False), a)[1], np.linalg.svd(a, compute_uv=False), 1e-4, 1e-4)


def test_tridiagonal_solve():
    below, diagonal, above = RNG.normal(size=(3, 8)).astype(np.float32)
    below[0] = above[-1] = 0
    b = RNG.normal(size=(8, 2)).astype(np.float32)
    wanted = lax.linalg.tridiagonal_solve(below, diagonal + 5, above, b)
    near(run(matrix.tridiagonal_solve, below, diagonal + 5, above, b)[0], wanted, 1e-4, 1e-5)
