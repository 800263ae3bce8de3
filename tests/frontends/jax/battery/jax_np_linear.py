"""Products, einsum and linear algebra of jax.numpy."""

import jax
import jax.numpy as jnp
from jax import lax
from jax_cases import case, cases

cases(
    "f32[4,5] plain",
    "f32[5,3] plain",
    matmul=lambda a, b: a @ b,
    dot=jnp.dot,
    einsum_product=lambda a, b: jnp.einsum("ij,jk->ik", a, b),
    einsum_implicit=lambda a, b: jnp.einsum("ij,jk", a, b),
    einsum_transposed=lambda a, b: jnp.einsum("ij,jk->ki", a, b),
    einsum_sum_all=lambda a, b: jnp.einsum("ij,jk->", a, b),
    tensordot=lambda a, b: jnp.tensordot(a, b, axes=1),
    tensordot_axes=lambda a, b: jnp.tensordot(a, b, axes=((1,), (0,))),
    outer=lambda a, b: jnp.outer(a[0], b[:, 0]),
    inner=lambda a, b: jnp.inner(a, b.T),
    kron=lambda a, b: jnp.kron(a[:2, :2], b[:2]),
    vdot=lambda a, b: jnp.vdot(a[0], b[:, 0]),
    vecdot=lambda a, b: jnp.vecdot(a[:3], b.T),
    matvec=lambda a, b: jnp.matvec(a, b[:, 0]),
    multi_dot=lambda a, b: jnp.linalg.multi_dot([a, b, b.T]),
    high_precision=lambda a, b: jnp.matmul(a, b, precision=lax.Precision.HIGHEST),
    linear_with_bias=lambda a, b: a @ b + jnp.arange(3.0),
    gram=lambda a, b: (a.T @ a, b.T @ b),
)
cases(
    "f32[2,3,4] plain",
    "f32[2,4,5] plain",
    batched_matmul=jnp.matmul,
    einsum_batched=lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
    einsum_ellipsis=lambda a, b: jnp.einsum("...ij,...jk->...ik", a, b),
    einsum_diagonal=lambda a, b: jnp.einsum("bii->bi", a[:, :3, :3]),
    einsum_trace=lambda a, b: jnp.einsum("bii->b", a[:, :3, :3]),
    einsum_sum_axis=lambda a, b: jnp.einsum("bij->j", a),
    einsum_three=lambda a, b: jnp.einsum("bij,bjk,bkl->bil", a, b, b.swapaxes(1, 2)),
    einsum_outer=lambda a, b: jnp.einsum("bi,bk->bik", a[:, 0], b[:, 0]),
    einsum_hadamard=lambda a, b: jnp.einsum("bij,bij->bij", a, a),
    matmul_broadcast=lambda a, b: a[:, None] @ b[None],
    vector_matrix=lambda a, b: a[0, 0] @ b[1],
    einsum_heads=lambda a, b: jnp.einsum("bqd,bdk->bkq", a, b),
)
cases(
    "f32[4,4] plain",
    determinant=lambda a: jnp.linalg.det(a @ a.T / 8 + jnp.eye(4)),
    slogdet=lambda a: jnp.linalg.slogdet(a @ a.T / 8 + jnp.eye(4)),
    inverse=lambda a: jnp.linalg.inv(a @ a.T / 8 + jnp.eye(4)),
    pseudo_inverse=lambda a: jnp.linalg.pinv(a @ a.T / 8 + jnp.eye(4)),
    cholesky=lambda a: jnp.linalg.cholesky(a @ a.T / 8 + jnp.eye(4)),
    cholesky_upper=lambda a: jnp.linalg.cholesky(a @ a.T / 8 + jnp.eye(4), upper=True),
    qr=lambda a: [jnp.abs(part) for part in jnp.linalg.qr(a + 9 * jnp.eye(4))],
    qr_reconstructs=lambda a: jnp.matmul(*jnp.linalg.qr(a)),
    eigenvalues_symmetric=lambda a: jnp.linalg.eigvalsh(a + a.T),
    eigenvectors_reconstruct=lambda a: (lambda w, v: (w, (v * w) @ v.T))(*jnp.linalg.eigh(a + a.T)),
    singular_values=lambda a: jnp.linalg.svd(a, compute_uv=False),
    svd_reconstructs=lambda a: (lambda u, s, vt: (s, (u * s) @ vt))(*jnp.linalg.svd(a)),
    matrix_power=lambda a: jnp.linalg.matrix_power(a / 4, 5),
    matrix_power_negative=lambda a: jnp.linalg.matrix_power(a @ a.T / 8 + jnp.eye(4), -2),
    norm=jnp.linalg.norm,
    norm_rows=lambda a: jnp.linalg.norm(a, axis=1),
    norm_1=lambda a: jnp.linalg.norm(a, ord=1),
    norm_inf=lambda a: jnp.linalg.norm(a, ord=jnp.inf, axis=0),
    norm_3=lambda a: jnp.linalg.norm(a, ord=3, axis=1),
    norm_nuclear=lambda a: jnp.linalg.norm(a, ord="nuc"),
    norm_spectral=lambda a: jnp.linalg.norm(a, ord=2),
    condition_number=lambda a: jnp.linalg.cond(a @ a.T / 8 + jnp.eye(4)),
    rank_of_a_product=lambda a: jnp.linalg.matrix_rank(a[:, :2] @ a[:2] + jnp.eye(4)),
    trace=jnp.trace,
    vector_norm=lambda a: jnp.linalg.vector_norm(a, axis=1, keepdims=True),
    matrix_norm=lambda a: jnp.linalg.matrix_norm(a),
    symmetric_part=lambda a: (a + a.T) / 2,
    power_iteration=lambda a: lax.fori_loop(
        0, 10, lambda i, v: (a @ a.T + jnp.eye(4)) @ v / jnp.linalg.norm((a @ a.T + jnp.eye(4)) @ v), jnp.ones(4)
    ),
)
cases(
    "f32[4,4] plain",
    "f32[4,2] plain",
    solve=lambda a, b: jnp.linalg.solve(a + 9 * jnp.eye(4), b),
    solve_vector=lambda a, b: jnp.linalg.solve(a + 9 * jnp.eye(4), b[:, 0]),
    least_squares=lambda a, b: jnp.linalg.lstsq(a + 9 * jnp.eye(4), b)[0],
    ridge_regression=lambda a, b: jnp.linalg.solve(a.T @ a + jnp.eye(4), a.T @ b),
    tensorsolve=lambda a, b: jnp.linalg.tensorsolve(a + 9 * jnp.eye(4), b[:, 1]),
    triangular_solve=lambda a, b: lax.linalg.triangular_solve(
        jnp.tril(a) + 9 * jnp.eye(4), b, left_side=True, lower=True
    ),
    triangular_solve_right=lambda a, b: lax.linalg.triangular_solve(
        jnp.triu(a) + 9 * jnp.eye(4), b.T, left_side=False, lower=False, transpose_a=True
    ),
    triangular_solve_unit=lambda a, b: lax.linalg.triangular_solve(
        jnp.tril(a / 4), b, left_side=True, lower=True, unit_diagonal=True
    ),
)
cases(
    "f32[3,4,4] plain",
    batched_inverse=lambda a: jnp.linalg.inv(a @ a.mT / 8 + jnp.eye(4)),
    batched_determinant=lambda a: jnp.linalg.det(a @ a.mT / 8 + jnp.eye(4)),
    batched_cholesky=lambda a: jnp.linalg.cholesky(a @ a.mT / 8 + jnp.eye(4)),
    batched_solve=lambda a: jnp.linalg.solve(a @ a.mT / 8 + jnp.eye(4), a[..., :1]),
    batched_eigenvalues=lambda a: jnp.linalg.eigvalsh(a + a.mT),
    batched_singular_values=lambda a: jnp.linalg.svd(a, compute_uv=False),
)


@case("f32[6,4] plain")
def tall_qr(a):
    q, r = jnp.linalg.qr(a)
    return q @ r, q.T @ q


@case("f32[6,3] plain")
def signs_of_qr(a):
    """A column that begins with -0.0 has the sign of it."""
    return jnp.linalg.qr(a)


@case("f32[3,5] plain")
def wide_svd(a):
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s) @ vt


@case("f32[8,3] plain")
def principal_components(x):
    centred = x - x.mean(0)
    values, vectors = jnp.linalg.eigh(centred.T @ centred / 7)
    return values[::-1], jnp.abs(centred @ vectors[:, ::-1])


@case("f32[8,3] plain", "f32[8] plain")
def normal_equations(x, y):
    design = jnp.concatenate([jnp.ones((8, 1)), x], 1)
    return jnp.linalg.solve(design.T @ design + 0.1 * jnp.eye(4), design.T @ y)


@case("f32[8] -2..2", "f32[8] plain")
def polynomial_fit(x, y):
    return jnp.polyfit(jnp.linspace(-1, 1, 8), y + x, 2)


@case("f32[4,3] plain", "f32[3] plain")
def mahalanobis(x, mean):
    gap = x - mean
    precision = jnp.linalg.inv(gap.T @ gap / 4 + jnp.eye(3))
    return jnp.einsum("ni,ij,nj->n", gap, precision, gap)


@case("f32[4,4] plain")
def gram_schmidt(a):
    rows = []
    for row in a + 9 * jnp.eye(4):
        for other in rows:
            row = row - other * (row @ other)
        rows.append(row / jnp.linalg.norm(row))
    return jnp.stack(rows)


@case("f32[4] plain")
def rotation_from_quaternion(q):
    w, x, y, z = q / jnp.linalg.norm(q)
    return jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@case("f32[5,5] plain", "f32[5] plain")
def conjugate_gradient(a, b):
    solution, _ = jax.scipy.sparse.linalg.cg(a @ a.T / 8 + jnp.eye(5), b, maxiter=5, tol=0.0)
    return solution


@case("f32[2,6,4] plain", "f32[2,6,4] plain", "f32[2,6,4] plain")
def attention_by_einsum(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / 2.0)
    return jnp.einsum("bqk,bkd->bqd", weights, v)


@case("i32[3,4]", "i32[4,2]")
def matmul_of_ints_wraps(a, b):
    return a @ b


@case("u8[3,4]", "u8[4,2]")
def matmul_of_bytes_wraps(a, b):
    return a @ b


@case("bool[3,4]", "bool[4,2]")
def matmul_of_bools(a, b):
    return a @ b
