"""Programs that run with jax_enable_x64."""

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax_cases import case, cases

cases(
    "f64[4,6]",
    x64=True,
    exp=jnp.exp,
    log1p=lambda x: jnp.log1p(jnp.abs(x)),
    tanh=jnp.tanh,
    sin_and_cos=lambda x: (jnp.sin(x), jnp.cos(x)),
    erf=lax.erf,
    relu=nn.relu,
    round=jnp.round,
    floor_divide=lambda x: x // 0.7,
    sort=jnp.sort,
    argmax=lambda x: jnp.argmax(x, 1),
    where=lambda x: jnp.where(x > 0, x, 0.5),
    cumsum=lambda x: jnp.cumsum(x, 1),
    maximum=lambda x: jnp.maximum(x, x[::-1]),
    to_float32=lambda x: x.astype(jnp.float32),
    to_int=lambda x: jnp.clip(x, -1e6, 1e6).astype(jnp.int64),
    isfinite=jnp.isfinite,
    median=lambda x: jnp.median(x, 1),
    nansum=lambda x: jnp.nansum(x, 1),
    bits=lambda x: lax.bitcast_convert_type(x, jnp.int64),
    hyperbolic=lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.sinh(x * 0.7), jnp.sinh(x * 1e-5)),
    inverse_hyperbolic=lambda x: (jnp.arcsinh(x), jnp.arcsinh(x * 1e200), jnp.arccosh(jnp.abs(x) * 1e200)),
)
cases(
    "f64[4,4] plain",
    x64=True,
    matmul=lambda a: a @ a.T,
    softmax=nn.softmax,
    mean_and_variance=lambda a: (a.mean(0), a.var(0)),
    inverse=lambda a: jnp.linalg.inv(a + 9 * jnp.eye(4)),
    determinant=jnp.linalg.det,
    cholesky=lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)),
    eigenvalues=lambda a: jnp.linalg.eigvalsh(a + a.T),
    singular_values=lambda a: jnp.linalg.svd(a, compute_uv=False),
    solve=lambda a: jnp.linalg.solve(a + 9 * jnp.eye(4), a[0]),
    norm=jnp.linalg.norm,
    fft=lambda a: jnp.abs(jnp.fft.fft(a)),
    grad=jax.grad(lambda a: jnp.sum(jnp.sin(a) ** 2)),
    hessian=lambda a: jax.hessian(lambda v: jnp.sum(v**3))(a[0]),
    einsum=lambda a: jnp.einsum("ij,kj->ik", a, a),
    conv=lambda a: lax.conv(a[None, None], a[None, None, :2, :2], (1, 1), "SAME"),
    scan=lambda a: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(4), a),
    logsumexp=lambda a: nn.logsumexp(a, 1),
    gelu=nn.gelu,
    power=lambda a: jnp.abs(a) ** 1.7,
    lgamma=lambda a: lax.lgamma(jnp.abs(a) + 0.5),
    erf_inv=lambda a: lax.erf_inv(jnp.tanh(a) * 0.9),
    expm=lambda a: jax.scipy.linalg.expm(a / 8),
    quantile=lambda a: jnp.quantile(a, 0.3),
)
cases(
    "i64[9]",
    x64=True,
    int_arithmetic=lambda x: (x + 1, x * 3, -x),
    int_bits=lambda x: (x & 0xFF, x >> 3, ~x),
    int_sort=jnp.sort,
    int_to_double=lambda x: x.astype(jnp.float64),
    int_to_int32=lambda x: x.astype(jnp.int32),
    int_reduce=lambda x: (x.max(), x.sum(), jnp.argmin(x)),
    int_floor_divide=lambda x: (x // 7, x % 7),
)
cases(
    "u64[9]",
    x64=True,
    unsigned_arithmetic=lambda x: (x + 1, x * 3),
    unsigned_shifts=lambda x: (x >> 5, x << 7),
    unsigned_compare=lambda x: (x > 5, x == 0),
)


@case("u32[2]", x64=True)
def random_doubles(key):
    return jax.random.uniform(key, (4,)), jax.random.normal(key, (3,)), jax.random.bits(key, (3,), jnp.uint64)


@case("u32[2]", x64=True)
def random_integers(key):
    return jax.random.randint(key, (5,), 0, 10**12), jax.random.permutation(key, 6)


@case("f64[3] plain", x64=True)
def arange_and_indices(x):
    return jnp.arange(3) + x, jnp.argsort(x), jnp.zeros(2, int)


@case("f32[4,3] plain", "i64[4] 0..2", x64=True)
def float32_with_long_labels(logits, labels):
    return -nn.log_softmax(logits)[jnp.arange(4), labels].mean()


@case("f64[] 0.5..5", x64=True)
def newton_in_doubles(x):
    return lax.fori_loop(0, 20, lambda i, r: 0.5 * (r + x / r), x)


@case("f64[5,2] plain", "f32[2,3] plain", x64=True)
def promoted(x, w):
    return x @ w, x.astype(jnp.float32) @ w


@case("f64[3] plain", x64=True)
def orbit(state):
    def step(s, _):
        return s + 1e-3 * jnp.array([s[1], -s[0], s[2]]), s.sum()

    return lax.scan(step, state, None, length=20)


@case("f64[b,4] plain", "f64[4,3] plain", x64=True)
def linear_of_any_batch(x, w):
    return jnp.tanh(x @ w), x.shape[0] * jnp.ones(2)
