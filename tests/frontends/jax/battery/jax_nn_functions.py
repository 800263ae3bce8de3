"""Activations, normalisations and attention of jax.nn."""

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax_cases import case, cases

cases(
    "f32[4,6]",
    relu=nn.relu,
    relu6=nn.relu6,
    sigmoid=nn.sigmoid,
    softplus=nn.softplus,
    sparse_plus=nn.sparse_plus,
    sparse_sigmoid=nn.sparse_sigmoid,
    soft_sign=nn.soft_sign,
    silu=nn.silu,
    swish=nn.swish,
    log_sigmoid=nn.log_sigmoid,
    leaky_relu=nn.leaky_relu,
    leaky_relu_slope=lambda x: nn.leaky_relu(x, 0.2),
    hard_sigmoid=nn.hard_sigmoid,
    hard_silu=nn.hard_silu,
    hard_swish=nn.hard_swish,
    hard_tanh=nn.hard_tanh,
    tanh=nn.tanh,
    elu=nn.elu,
    elu_alpha=lambda x: nn.elu(x, 0.5),
    celu=nn.celu,
    celu_alpha=lambda x: nn.celu(x, 2.0),
    selu=nn.selu,
    gelu=nn.gelu,
    gelu_exact=lambda x: nn.gelu(x, approximate=False),
    glu=nn.glu,
    squareplus=nn.squareplus,
    mish=nn.mish,
    identity=nn.identity,
    log1mexp=lambda x: nn.log1mexp(jnp.abs(x) + 0.1),
    relu_squared=lambda x: nn.relu(x) ** 2,
)
cases(
    "f32[4,6] plain",
    softmax=nn.softmax,
    softmax_axis_0=lambda x: nn.softmax(x, axis=0),
    softmax_two_axes=lambda x: nn.softmax(x, axis=(0, 1)),
    softmax_where=lambda x: nn.softmax(x, where=x > -2),
    log_softmax=nn.log_softmax,
    log_softmax_axis=lambda x: nn.log_softmax(x, axis=0),
    logsumexp=nn.logsumexp,
    logsumexp_axis=lambda x: nn.logsumexp(x, axis=1, keepdims=True),
    logsumexp_weights=lambda x: nn.logsumexp(x, axis=1, b=jnp.arange(6.0)),
    logmeanexp=lambda x: nn.logmeanexp(x, axis=1),
    standardize=nn.standardize,
    standardize_axis=lambda x: nn.standardize(x, axis=0, epsilon=1e-3),
    swiglu=lambda x: nn.silu(x[:, :3]) * x[:, 3:],
    geglu=lambda x: nn.gelu(x[:, :3]) * x[:, 3:],
    temperature_softmax=lambda x: nn.softmax(x / 0.7, axis=-1),
    gumbel_free_argmax=lambda x: nn.one_hot(jnp.argmax(x, -1), 6),
    label_smoothing=lambda x: 0.9 * nn.softmax(x) + 0.1 / 6,
)
cases(
    "i32[7] -2..8",
    one_hot=lambda i: nn.one_hot(i, 6),
    one_hot_axis=lambda i: nn.one_hot(i, 6, axis=0),
    one_hot_int=lambda i: nn.one_hot(i, 6, dtype=jnp.int32),
    one_hot_bool=lambda i: nn.one_hot(i, 6, dtype=jnp.bool_),
)


@case("f32[2,5,8] plain", "f32[8] plain", "f32[8] plain")
def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


@case("f32[2,5,8] plain", "f32[8] plain")
def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


@case("f32[4,6,6,8] plain", "f32[8] plain", "f32[8] plain", "f32[8] plain", "f32[8] 0.1..3")
def batch_norm_inference(x, scale, bias, mean, variance):
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


@case("f32[4,6,6,8] plain")
def group_norm(x):
    grouped = x.reshape(4, 6, 6, 2, 4)
    normal = nn.standardize(grouped, axis=(1, 2, 4), epsilon=1e-5)
    return normal.reshape(x.shape)


@case("f32[4,6,6,3] plain")
def instance_norm(x):
    return nn.standardize(x, axis=(1, 2))


@case("f32[2,5,3,4] plain", "f32[2,6,3,4] plain", "f32[2,6,3,4] plain")
def attention(q, k, v):
    return nn.dot_product_attention(q, k, v)


@case("f32[2,5,3,4] plain", "f32[2,5,3,4] plain", "f32[2,5,3,4] plain")
def attention_causal(q, k, v):
    return nn.dot_product_attention(q, k, v, is_causal=True)


@case("f32[2,5,3,4] plain", "f32[2,6,3,4] plain", "f32[2,6,3,4] plain", "bool[2,1,5,6]")
def attention_masked(q, k, v, mask):
    return nn.dot_product_attention(q, k, v, mask=mask, scale=0.3)


@case("f32[2,5,3,4] plain", "f32[2,6,3,4] plain", "f32[2,6,3,4] plain", "f32[1,3,5,6] plain")
def attention_biased(q, k, v, bias):
    return nn.dot_product_attention(q, k, v, bias)


@case("f32[2,5,4,4] plain", "f32[2,6,2,4] plain", "f32[2,6,2,4] plain")
def attention_grouped_queries(q, k, v):
    return nn.dot_product_attention(q, k, v)


@case("f32[2,5,3,4] plain", "f32[2,5,3,4] plain", "f32[2,5,3,4] plain", "i32[2] 1..5")
def attention_with_lengths(q, k, v, lengths):
    return nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths)


@case("f32[2,6,3,4] plain", "f32[2,6,3,4] plain", "f32[2,6,3,4] plain")
def attention_local_window(q, k, v):
    return nn.dot_product_attention(q, k, v, local_window_size=(1, 2))


@case("f32[1,4,6,8] plain", "f32[1,4,6,8] plain", "f32[1,4,6,8] plain")
def attention_by_hand(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(8.0)
    causal = jnp.tril(jnp.ones((6, 6), bool))
    return nn.softmax(jnp.where(causal, scores, -1e9), axis=-1) @ v


@case("f32[2,6,8] plain")
def rotary_embedding(x):
    angles = jnp.arange(6.0)[:, None] * 10000.0 ** (-jnp.arange(4.0) / 4)
    one, other = jnp.split(x, 2, axis=-1)
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    return jnp.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1)


@case("f32[5] 0..10")
def sinusoidal_positions(t):
    rates = jnp.exp(-jnp.log(10000.0) * jnp.arange(4.0) / 4)
    return jnp.concatenate([jnp.sin(t[:, None] * rates), jnp.cos(t[:, None] * rates)], -1)


@case("f32[2,8,8,3] plain")
def average_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


@case("f32[2,8,8,3] plain")
def global_pools(x):
    return x.mean((1, 2)), x.max((1, 2))


@case("f32[6,5] plain", "i32[6] 0..4")
def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(nn.one_hot(labels, 5) * nn.log_softmax(logits), -1))


@case("f32[6,5] plain", "f32[6,5] 0..1")
def binary_cross_entropy(logits, targets):
    return jnp.mean(jnp.maximum(logits, 0) - logits * targets + jnp.log1p(jnp.exp(-jnp.abs(logits))))


@case("f32[4,6] plain", "f32[4,6] plain")
def kl_divergence(a, b):
    p, q = nn.log_softmax(a), nn.log_softmax(b)
    return jnp.sum(jnp.exp(p) * (p - q), -1)


@case("f32[2,3,8] plain", "f32[8,16] plain", "f32[16,8] plain")
def feed_forward(x, w1, w2):
    return x + nn.gelu(x @ w1 / 4) @ w2 / 4


@case("f32[5,4] plain", "f32[8,6] 0..1", "f32[8,6] 0..1")
def scaled_matmul_like(x, a, b):
    scale = jnp.max(jnp.abs(a), axis=1, keepdims=True) + 1.0
    return jnp.round(a / scale * 127).astype(jnp.int8), (a / scale) @ b.T, x[:, :1]


@case("f32[4,8] plain")
def dropout_off(x):
    return jnp.where(jnp.ones((4, 8), bool), x / 1.0, 0.0)


@case("f32[4,8] plain")
def straight_through_rounding(x):
    return x + lax.stop_gradient(jnp.round(x) - x)


@case("f32[4,8] plain")
def fake_quantised(x):
    scale = jnp.max(jnp.abs(x)) / 127
    return jnp.clip(jnp.round(x / scale), -128, 127) * scale


@case("f32[4,8] plain")
def weight_norm(w):
    return w / jnp.linalg.norm(w, axis=0) * 2.0, jax.lax.rsqrt(jnp.sum(w**2, 1))
