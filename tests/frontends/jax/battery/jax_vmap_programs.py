"""vmap of many things."""

import jax
import jax.numpy as jnp
from jax import lax, nn, vmap
from jax_cases import case, cases

cases(
    "f32[3,4,4] plain",
    vmap_matmul=vmap(lambda m: m @ m.T),
    vmap_inverse=vmap(lambda m: jnp.linalg.inv(m + 9 * jnp.eye(4))),
    vmap_norm=vmap(jnp.linalg.norm),
    vmap_sort=vmap(lambda m: jnp.sort(m, axis=0)),
    vmap_argmax=vmap(jnp.argmax),
    vmap_twice=vmap(vmap(lambda row: row / (row.sum() + 20))),
    vmap_in_axes=vmap(lambda m: m.sum(0), in_axes=2),
    vmap_out_axes=vmap(lambda m: m.sum(0), out_axes=1),
    vmap_top_k=vmap(lambda m: lax.top_k(m, 2)),
    vmap_softmax=vmap(nn.softmax),
    vmap_diag=vmap(jnp.diag),
    vmap_trace=vmap(jnp.trace),
    vmap_roll=vmap(lambda m: jnp.roll(m, 1, 0)),
    vmap_cumsum=vmap(lambda m: jnp.cumsum(m, 0)),
    vmap_scan=vmap(lambda m: lax.scan(lambda c, v: (c + v, c.sum()), jnp.zeros(4), m)),
    vmap_fori=vmap(lambda m: lax.fori_loop(0, 3, lambda i, c: c @ m / 4, m)),
    vmap_cond=vmap(lambda m: lax.cond(m[0, 0] > 0, lambda v: v * 2, lambda v: -v, m)),
    vmap_while=vmap(lambda m: lax.while_loop(lambda v: v.max() > 1, lambda v: v / 2, m)),
    vmap_cholesky=vmap(lambda m: jnp.linalg.cholesky(m @ m.T / 8 + jnp.eye(4))),
    vmap_determinant=vmap(lambda m: jnp.linalg.det(m @ m.T / 8 + jnp.eye(4))),
    vmap_solve=vmap(lambda m: jnp.linalg.solve(m + 9 * jnp.eye(4), m[0])),
    vmap_grad=vmap(jax.grad(lambda m: jnp.sum(m**3))),
    vmap_hessian=vmap(vmap(jax.hessian(lambda v: jnp.sum(v**3)))),
    vmap_fft=vmap(lambda m: jnp.abs(jnp.fft.fft(m))),
    vmap_median=vmap(jnp.median),
    vmap_reduce_window=vmap(lambda m: lax.reduce_window(m, 0.0, lax.add, (2, 2), (1, 1), "VALID")),
    vmap_set=vmap(lambda m: m.at[0].set(1.0)),
    vmap_associative_scan=vmap(lambda m: lax.associative_scan(jnp.multiply, m / 2)),
    vmap_unique_sized=vmap(lambda m: jnp.unique(jnp.round(m), size=5, fill_value=9.0)),
    vmap_histogram=vmap(lambda m: jnp.histogram(m, bins=3, range=(-2.0, 2.0))[0]),
    vmap_with_name=vmap(lambda m: m - lax.pmean(m, "batch"), axis_name="batch"),
    vmap_with_max_over_name=vmap(lambda m: m / (1 + lax.pmax(jnp.abs(m), "batch")), axis_name="batch"),
    vmap_with_index=vmap(lambda m: m * lax.axis_index("batch"), axis_name="batch"),
    vmap_gathers_all=vmap(lambda m: lax.all_gather(m[0], "batch"), axis_name="batch"),
    vmap_permutes=vmap(lambda m: lax.ppermute(m[0], "batch", [(0, 1), (1, 2), (2, 0)]), axis_name="batch"),
)
cases(
    "f32[3,6]",
    "i32[3] -2..7",
    vmap_index=vmap(lambda row, i: row[i]),
    vmap_dynamic_slice=vmap(lambda row, i: lax.dynamic_slice(row, (i,), (2,))),
    vmap_dynamic_update=vmap(lambda row, i: lax.dynamic_update_slice(row, jnp.zeros(2), (i,))),
    vmap_at_set=vmap(lambda row, i: row.at[i].set(0.5)),
    vmap_at_add_drop=vmap(lambda row, i: row.at[i].add(1.0, mode="drop")),
    vmap_take_clip=vmap(lambda row, i: jnp.take(row, i, mode="clip")),
    vmap_roll_by=vmap(lambda row, i: jnp.roll(row, i)),
    vmap_switch=vmap(lambda row, i: lax.switch(i, [lambda v: v, jnp.negative, lambda v: v * 2], row)),
    vmap_one_hot=vmap(lambda row, i: row * nn.one_hot(i, 6)),
    vmap_searchsorted=vmap(lambda row, i: jnp.searchsorted(jnp.sort(jnp.nan_to_num(row)), i.astype(jnp.float32))),
    vmap_mask_before=vmap(lambda row, i: jnp.where(jnp.arange(6) < i, row, 0.0)),
    vmap_fori_to=vmap(lambda row, i: lax.fori_loop(0, i, lambda j, c: c + j, 0.0)),
    vmap_index_shared=lambda x, i: vmap(lambda k: x[:, k])(i),
)


@case("f32[5,3] plain", "f32[4,3] plain")
def all_pairs(a, b):
    return vmap(lambda x: vmap(lambda y: jnp.sum((x - y) ** 2))(b))(a)


@case("f32[2,3] plain", "f32[3,4] plain", "f32[4] plain")
def vmap_of_a_layer(x, w, b):
    return vmap(lambda v: nn.relu(v @ w + b))(x)


@case("f32[2,5,5,2] plain", "f32[2,3,3,2,4] plain")
def vmap_of_convolutions(x, w):
    def one(image, kernel):
        return lax.conv_general_dilated(image[None], kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return vmap(one)(x, w)


@case("f32[3,4,4] plain", "f32[3,4] plain")
def vmap_triangular_solve(a, b):
    return vmap(lambda m, v: jax.scipy.linalg.solve_triangular(jnp.tril(m) + 9 * jnp.eye(4), v, lower=True))(a, b)


@case("i32[4] 1..30")
def vmap_while_of_different_lengths(n):
    def steps(start):
        def body(state):
            value, count = state
            return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return lax.while_loop(lambda state: state[0] > 1, body, (start, 0))[1]

    return vmap(steps)(n)


@case("u32[3,2]")
def vmap_random(keys):
    return vmap(lambda key: jax.random.normal(key, (2,)))(keys), vmap(jax.random.split)(keys)


@case({"a": "f32[3,2]", "b": "f32[3]"})
def vmap_of_a_tree(tree):
    return vmap(lambda t: {"sum": t["a"].sum() + t["b"], "a": t["a"] * 2})(tree)


@case("f32[4,3] plain", "f32[4,5] plain", "i32[4] 0..4")
def vmap_of_a_loss(x, logits, labels):
    def loss(v, row, label):
        return -nn.log_softmax(row)[label] + jnp.sum(v**2)

    return vmap(loss)(x, logits, labels).mean()


@case("f32[3,4] plain", "f32[5,4,2] plain")
def ensemble_of_models(x, weights):
    return vmap(lambda w: nn.softmax(x @ w))(weights).mean(0)


@case("f32[2,6,4] plain", "i32[2] 1..6")
def lengths_to_masks(x, lengths):
    mask = vmap(lambda n: jnp.arange(6) < n)(lengths)
    return jnp.where(mask[..., None], x, 0.0).sum(1) / lengths[:, None]


@case("f32[3,5] plain", "f32[3,5] plain")
def vmap_of_jvp(x, t):
    return vmap(lambda a, b: jax.jvp(jnp.sin, (a,), (b,))[1])(x, t)


@case("f32[3,8] plain")
def vmap_of_interp(x):
    grid = jnp.linspace(-3.0, 3.0, 5)
    return vmap(lambda row: jnp.interp(row, grid, jnp.sin(grid)))(x)


@case("f32[3,4,2] plain")
def vmap_axes_mixed(x):
    return vmap(lambda a, b: a @ b, in_axes=(0, None))(x, jnp.ones((2, 3))), vmap(jnp.outer, (1, 1))(x[0], x[1])
