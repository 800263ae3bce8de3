"""Derivatives of all kinds."""

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax_cases import case, cases

cases(
    "f32[4,6] plain",
    grad_sum_of_squares=jax.grad(lambda x: jnp.sum(x**2)),
    grad_tanh=jax.grad(lambda x: jnp.tanh(x).sum()),
    grad_softmax=jax.grad(lambda x: (nn.softmax(x) * jnp.arange(6.0)).sum()),
    grad_log_softmax=jax.grad(lambda x: nn.log_softmax(x)[:, 0].sum()),
    grad_logsumexp=jax.grad(lambda x: nn.logsumexp(x)),
    grad_relu=jax.grad(lambda x: nn.relu(x).sum()),
    grad_gelu=jax.grad(lambda x: nn.gelu(x).sum()),
    grad_gelu_exact=jax.grad(lambda x: nn.gelu(x, approximate=False).sum()),
    grad_silu=jax.grad(lambda x: nn.silu(x).sum()),
    grad_softplus=jax.grad(lambda x: nn.softplus(x).sum()),
    grad_elu=jax.grad(lambda x: nn.elu(x).sum()),
    grad_max=jax.grad(lambda x: jnp.max(x)),
    grad_max_axis=jax.grad(lambda x: jnp.max(x, axis=1).sum()),
    grad_sort=jax.grad(lambda x: (jnp.sort(x) * jnp.arange(6.0)).sum()),
    grad_cumsum=jax.grad(lambda x: (jnp.cumsum(x, 1) ** 2).sum()),
    grad_cumprod=jax.grad(lambda x: jnp.cumprod(x / 2, 1).sum()),
    grad_prod=jax.grad(lambda x: jnp.prod(x / 2)),
    grad_norm=jax.grad(lambda x: jnp.linalg.norm(x)),
    grad_std=jax.grad(lambda x: jnp.std(x)),
    grad_var=jax.grad(lambda x: jnp.var(x, axis=0).sum()),
    grad_abs=jax.grad(lambda x: jnp.abs(x).sum()),
    grad_clip=jax.grad(lambda x: jnp.clip(x, -1, 1).sum()),
    grad_where=jax.grad(lambda x: jnp.where(x > 0, x**2, jnp.exp(x)).sum()),
    grad_indexing=jax.grad(lambda x: (x[jnp.array([0, 0, 2])] ** 2).sum()),
    grad_slice=jax.grad(lambda x: (x[1:3, ::2] ** 2).sum()),
    grad_reversed=jax.grad(lambda x: (x[:, ::-1] * jnp.arange(6.0)).sum()),
    grad_concatenate=jax.grad(lambda x: (jnp.concatenate([x, x * 2]) ** 2).sum()),
    grad_pad=jax.grad(lambda x: (jnp.pad(x, 1) ** 2).sum()),
    grad_dynamic_slice=jax.grad(lambda x: (lax.dynamic_slice(x, (1, 2), (2, 3)) ** 2).sum()),
    grad_take_along=jax.grad(lambda x: (jnp.take_along_axis(x, jnp.argsort(x), 1) * jnp.arange(6.0)).sum()),
    grad_at_add=jax.grad(lambda x: (x.at[jnp.array([0, 0])].add(x[1]) ** 2).sum()),
    grad_einsum=jax.grad(lambda x: jnp.einsum("ij,kj->ik", x, x).sum()),
    grad_of_grad=jax.grad(lambda x: jax.grad(lambda y: jnp.sum(jnp.sin(y) * y))(x).sum()),
    grad_scan=jax.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), None), jnp.zeros(6), x)[0].sum()),
    grad_cond=jax.grad(lambda x: lax.cond(x[0, 0] > 0, lambda v: v.sum(), lambda v: (v**2).sum(), x)),
    grad_fori=jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + x, x).sum()),
    grad_checkpointed=jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)).sum())(x)),
    value_and_grad=jax.value_and_grad(lambda x: jnp.mean(x**3)),
    grad_with_aux=jax.grad(lambda x: (jnp.mean(x**3), x.max()), has_aux=True),
    grad_stop=jax.grad(lambda x: (x * lax.stop_gradient(x)).sum()),
    grad_matmul=jax.grad(lambda x: jnp.tanh(x @ x.T).sum()),
    grad_mean_nan_free=jax.grad(lambda x: jnp.sqrt(jnp.where(x > 0, x, 1.0)).sum()),
    grad_tile=jax.grad(lambda x: (jnp.tile(x, (2, 1)) * jnp.arange(48.0).reshape(8, 6)).sum()),
    grad_cummax=jax.grad(lambda x: lax.cummax(x, 1).sum()),
    grad_roll=jax.grad(lambda x: (jnp.roll(x, 1, 1) * x).sum()),
    grad_logistic_of_sums=jax.grad(lambda x: nn.sigmoid(x.sum(0)).prod()),
)
cases(
    "f32[4] plain",
    jacobian_forward=jax.jacfwd(lambda x: jnp.outer(x, jnp.sin(x))),
    jacobian_reverse=jax.jacrev(lambda x: jnp.cumsum(x**2)),
    hessian=jax.hessian(lambda x: jnp.sum(x**3) + x[0] * x[1]),
    hessian_of_softmax=jax.hessian(lambda x: nn.logsumexp(x)),
    second_derivative=jax.vmap(jax.grad(jax.grad(jnp.sin))),
    third_derivative=jax.vmap(jax.grad(jax.grad(jax.grad(lambda v: v**4)))),
    laplacian=lambda x: jnp.trace(jax.hessian(lambda v: jnp.sin(v).prod())(x)),
    linearized=lambda x: jax.linearize(jnp.tanh, x)[1](x),
    gradient_steps=lambda x: lax.fori_loop(
        0, 5, lambda i, v: v - 0.1 * jax.grad(lambda w: jnp.sum((w - 1) ** 2))(v), x
    ),
    newton_step=lambda x: x - jnp.linalg.solve(jax.hessian(_bowl)(x), jax.grad(_bowl)(x)),
    derivative_of_gamma=jax.vmap(jax.grad(lambda v: lax.lgamma(jnp.abs(v) + 1))),
    derivative_of_erf_inv=jax.vmap(jax.grad(lambda v: lax.erf_inv(jnp.tanh(v) * 0.9))),
    derivative_of_det=lambda x: jax.grad(lambda m: jnp.linalg.det(m))(jnp.outer(x, x) / 4 + jnp.eye(4)),
    derivative_of_inverse=lambda x: jax.grad(lambda m: jnp.linalg.inv(m).sum())(jnp.outer(x, x) / 4 + jnp.eye(4)),
    derivative_of_cholesky=lambda x: jax.grad(lambda m: jnp.linalg.cholesky(m).sum())(jnp.outer(x, x) / 4 + jnp.eye(4)),
    derivative_of_solve=lambda x: jax.grad(lambda b: jnp.linalg.solve(jnp.eye(4) * 2 + 0.1, b).sum())(x),
    derivative_of_fft=jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x))[1]),
    derivative_of_interpolation=jax.vmap(
        jax.grad(lambda v: jnp.interp(v, jnp.array([-9.0, 0.1, 9.0]), jnp.array([1.0, 3.0, 2.0])))
    ),
)


def _bowl(x):
    return jnp.sum((x - 1) ** 2 * jnp.arange(1.0, 5.0)) + jnp.cos(x[0])


@case("f32[4,6] plain", "f32[4,6] plain")
def vector_jacobian_product(x, cotangent):
    value, pull = jax.vjp(lambda v: jnp.sin(v) * v, x)
    return value, pull(cotangent)


@case("f32[4,6] plain", "f32[4,6] plain")
def jacobian_vector_product(x, tangent):
    return jax.jvp(lambda v: nn.softmax(jnp.tanh(v)), (x,), (tangent,))


@case("f32[5] plain", "f32[5] plain")
def hessian_vector_product(x, v):
    return jax.jvp(jax.grad(lambda y: jnp.sum(jnp.exp(y / 4) * y)), (x,), (v,))[1]


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))


@case("f32[5] plain")
def custom_gradient(x):
    return jax.grad(lambda v: jnp.sum(clipped(v) ** 2))(x), clipped(x)


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


log1pexp.defjvp(lambda given, tangents: (log1pexp(given[0]), (1 - 1 / (1 + jnp.exp(given[0]))) * tangents[0]))


@case("f32[5] plain")
def custom_tangent(x):
    return log1pexp(x), jax.grad(lambda v: log1pexp(v).sum())(x)


@case("f32[6,3] plain", "f32[6] plain", "f32[3] plain", "f32[]")
def linear_regression_step(x, y, w, b):
    def loss(w, b):
        return jnp.mean((x @ w + b - y) ** 2)

    dw, db = jax.grad(loss, (0, 1))(w, b)
    return w - 0.01 * dw, b - 0.01 * db


@case("f32[6,4] plain", "i32[6] 0..2", {"w1": "f32[4,8] plain", "b1": "f32[8] plain", "w2": "f32[8,3] plain"})
def network_gradients(x, labels, params):
    def loss(p):
        logits = nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"]
        return -jnp.mean(nn.log_softmax(logits)[jnp.arange(6), labels])

    return jax.value_and_grad(loss)(params)


@case("f32[2,6,6,2] plain", "f32[3,3,2,4] plain")
def convolution_gradients(x, w):
    def loss(x, w):
        y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(y**2)

    return jax.grad(loss, (0, 1))(x, w)


@case("f32[2,6,6,4] plain", "f32[3,3,1,8] plain")
def depthwise_gradients(x, w):
    def loss(x, w):
        y = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
        )
        return jnp.sum(y**2)

    return jax.grad(loss, (0, 1))(x, w)


@case("f32[1,2,8] plain", "f32[3,2,3] plain")
def dilated_convolution_gradients(x, w):
    def loss(x, w):
        return jnp.sum(lax.conv_general_dilated(x, w, (2,), ((2, 1),), rhs_dilation=(2,)) ** 3)

    return jax.grad(loss, (0, 1))(x, w)


@case("f32[2,6,6,3] plain")
def max_pool_gradient(x):
    def loss(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)

    return jax.grad(loss)(x)


@case("f32[1,5,5,2] plain")
def overlapping_max_pool_gradient(x):
    def loss(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2)

    return jax.grad(loss)(x)


@case("f32[2,6,6,3] plain")
def average_pool_gradient(x):
    def loss(x):
        return jnp.sum(lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2)

    return jax.grad(loss)(x)


@case("f32[3,5] plain", "f32[5] plain", "f32[5] plain")
def layer_norm_gradients(x, scale, bias):
    def loss(x, scale, bias):
        return jnp.sum(jnp.sin(nn.standardize(x) * scale + bias))

    return jax.grad(loss, (0, 1, 2))(x, scale, bias)


@case("f32[2,4,2,3] plain", "f32[2,4,2,3] plain", "f32[2,4,2,3] plain")
def attention_gradients(q, k, v):
    return jax.grad(lambda *given: nn.dot_product_attention(*given, is_causal=True).sum(), (0, 1, 2))(q, k, v)


@case("f32[8,4] plain", "i32[5] 0..7")
def embedding_gradient(table, ids):
    return jax.grad(lambda t: jnp.sum(jnp.sin(t[ids])))(table)


@case("f32[5,2,3] plain", "f32[6,12] plain")
def recurrent_gradients(xs, w):
    def loss(w):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return jnp.sum(lax.scan(step, (jnp.zeros((2, 3)), jnp.zeros((2, 3))), xs)[1] ** 2)

    return jax.grad(loss)(w)


@case("f32[4,3] plain", "f32[3] plain")
def per_example_gradients(x, w):
    return jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w) ** 2), (None, 0))(w, x)


@case("f32[3] plain", "f32[3] plain", "i32[] 1..5")
def adam_step(w, g, t):
    m, v = 0.1 * g, 0.001 * g**2
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    return w - 1e-3 * m_hat / (jnp.sqrt(v_hat) + 1e-8)


@case("f32[6] plain", "f32[6] plain")
def physics_informed_residual(x, w):
    def u(v):
        return jnp.sum(jnp.sin(w * v))

    return jax.vmap(lambda v: jax.grad(jax.grad(u))(v) + u(v))(x)


@case("f32[4] plain", "f32[4] plain")
def hamiltonian_step(q, p):
    def energy(q, p):
        return jnp.sum(p**2) / 2 + jnp.sum(jnp.cos(q))

    dq, dp = jax.grad(energy, 1)(q, p), -jax.grad(energy, 0)(q, p)
    return q + 0.1 * dq, p + 0.1 * dp


@case("f32[3,3] plain")
def implicit_gradient(a):
    def fixed_point(scale):
        return lax.fori_loop(0, 20, lambda i, v: jnp.tanh(a / 9 @ v * scale + 0.5), jnp.zeros(3))

    return jax.jacfwd(fixed_point)(0.7)
