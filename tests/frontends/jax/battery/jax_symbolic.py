"""Symbolic sizes: one, several, products and quotients of them."""

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax_cases import case, cases

cases(
    "f32[b,6]",
    relu=nn.relu,
    sum_rows=lambda x: x.sum(1),
    sum_batch=lambda x: x.sum(0),
    mean_batch=lambda x: x.mean(0),
    mean_all=jnp.mean,
    max_batch=lambda x: x.max(0),
    var_batch=lambda x: jnp.var(jnp.nan_to_num(x, posinf=1.0, neginf=1.0), 0),
    softmax=lambda x: nn.softmax(jnp.nan_to_num(x, posinf=9.0, neginf=-9.0)),
    softmax_batch=lambda x: nn.softmax(jnp.nan_to_num(x, posinf=9.0, neginf=-9.0), axis=0),
    transpose=lambda x: x.T,
    flatten=lambda x: x.reshape(-1),
    reshape_fold=lambda x: x.reshape(-1, 3),
    reshape_unfold=lambda x: x.reshape(x.shape[0], 2, 3),
    reshape_product=lambda x: x.reshape(x.shape[0] * 2, 3),
    expand=lambda x: x[:, None, :, None],
    broadcast=lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 4, 6)),
    zeros=lambda x: jnp.zeros((x.shape[0], 2)) + x[:, :2],
    ones_like=lambda x: jnp.ones_like(x) * 2,
    full=lambda x: jnp.full((3, x.shape[0]), 1.5),
    arange=lambda x: jnp.arange(x.shape[0]),
    arange_float=lambda x: jnp.arange(x.shape[0], dtype=jnp.float32)[:, None] * x,
    iota=lambda x: lax.broadcasted_iota(jnp.int32, x.shape, 0),
    eye=lambda x: jnp.eye(x.shape[0]) @ jnp.ones((x.shape[0], 2)),
    outer_of_batch=lambda x: x[:, None, 0] + x[None, :, 1],
    pairwise=lambda x: ((x[:, None] - x[None]) ** 2).sum(-1),
    concatenate=lambda x: jnp.concatenate([x, x]),
    concatenate_columns=lambda x: jnp.concatenate([x, x[:, :2]], 1),
    stack=lambda x: jnp.stack([x, x * 2]),
    pad_batch=lambda x: jnp.pad(x, ((1, 2), (0, 0))),
    flip_batch=lambda x: x[::-1],
    first=lambda x: x[0],
    last=lambda x: x[-1],
    all_but_first=lambda x: x[1:],
    every_second=lambda x: x[::2],
    tile_batch=lambda x: jnp.tile(x, (2, 1)),
    repeat_batch=lambda x: jnp.repeat(x, 2, axis=0),
    roll_batch=lambda x: jnp.roll(x, 1, axis=0),
    cumsum_batch=lambda x: jnp.cumsum(x, axis=0),
    sort_batch=lambda x: jnp.sort(x, axis=0),
    argsort_batch=lambda x: jnp.argsort(x, axis=0),
    argmax_batch=lambda x: jnp.argmax(x, axis=0),
    argmax_rows=lambda x: jnp.argmax(x, axis=1),
    top_k_rows=lambda x: lax.top_k(x, 2),
    at_set=lambda x: x.at[:, 0].set(1.0),
    at_set_first=lambda x: x.at[0].set(1.0),
    take_rows=lambda x: x[jnp.array([0, -1])],
    size_as_a_value=lambda x: x.sum(1) / x.shape[0],
    size_times_two=lambda x: jnp.full((2,), x.shape[0] * 2),
    mask_of_upper=lambda x: jnp.tril(jnp.ones((x.shape[0], x.shape[0]))),
    scan_batch=lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(6), x),
    scan_columns=lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(x.shape[0]), x.T),
    map_rows=lambda x: lax.map(lambda v: v * 2, x),
    vmap_rows=jax.vmap(lambda v: v - v.max()),
    fori_over_batch=lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(6)),
    while_doubling=lambda x: lax.while_loop(lambda v: v[0, 0] < 10, lambda v: v * 2 + 1, jnp.abs(x)),
    cond_batch=lambda x: lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, x),
    grad_batch=jax.grad(lambda x: jnp.mean(jnp.sin(x) ** 2)),
    one_hot_of_largest=lambda x: nn.one_hot(jnp.argmax(x, 1), 6),
    linspace_to_size=lambda x: jnp.linspace(0.0, 1.0, 6) * x.shape[0],
    quantile_rows=lambda x: jnp.median(x, axis=1),
    nonzero_sized=lambda x: jnp.nonzero(x[0] > 0, size=3, fill_value=-1),
    reduce_window=lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID"),
    cumprod_rows=lambda x: jnp.cumprod(x, axis=1),
    normal_noise=lambda x: x + jax.random.normal(jax.random.key(0), (6,)),
)
cases(
    "f32[b,t,4] plain",
    tokens_flat=lambda x: x.reshape(-1, 4),
    tokens_flat_by_sizes=lambda x: x.reshape(x.shape[0] * x.shape[1], 4),
    tokens_rows=lambda x: x.reshape(x.shape[0], -1),
    tokens_transposed=lambda x: x.transpose(0, 2, 1),
    tokens_mean=lambda x: x.mean(1),
    tokens_last=lambda x: x[:, -1],
    tokens_shifted=lambda x: jnp.concatenate([jnp.zeros((x.shape[0], 1, 4)), x[:, :-1]], 1),
    causal_mask=lambda x: jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)),
    self_attention=lambda x: nn.softmax(x @ x.mT / 2) @ x,
    causal_attention=lambda x: (
        nn.softmax(jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), x @ x.mT / 2, -1e9)) @ x
    ),
    heads=lambda x: x.reshape(x.shape[0], x.shape[1], 2, 2).transpose(0, 2, 1, 3),
    heads_and_back=lambda x: (
        x.reshape(*x.shape[:2], 2, 2).transpose(0, 2, 1, 3).transpose(0, 2, 1, 3).reshape(x.shape) * 2
    ),
    attention_function=lambda x: nn.dot_product_attention(*[x.reshape(*x.shape[:2], 2, 2)] * 3, is_causal=True),
    positions=lambda x: x + jnp.arange(x.shape[1])[None, :, None],
    rotary=lambda x: x * jnp.cos(jnp.arange(x.shape[1])[:, None] * jnp.arange(4.0)),
    scan_time=lambda x: lax.scan(lambda h, v: (jnp.tanh(h + v), h), jnp.zeros((x.shape[0], 4)), x.swapaxes(0, 1)),
    pool_time=lambda x: jnp.max(x, axis=1) - jnp.min(x, axis=1),
    conv_time=lambda x: lax.conv_general_dilated(
        x, jnp.ones((3, 4, 2)) / 12, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    ),
    einsum_time=lambda x: jnp.einsum("btd,bsd->bts", x, x),
    cumsum_time=lambda x: jnp.cumsum(x, 1),
    interleaved=lambda x: jnp.stack([x, -x], 2).reshape(x.shape[0], -1, 4),
    twice_as_long=lambda x: jnp.repeat(x, 2, axis=1),
    sizes_as_values=lambda x: jnp.array([x.shape[0], x.shape[1]]) * x.shape[0],
    mask_from_lengths=lambda x: jnp.arange(x.shape[1])[None] < jnp.full((x.shape[0], 1), 2),
    first_half=lambda x: x[:, : x.shape[1] // 2 + 1],
    normalised=lambda x: nn.standardize(x, axis=-1),
    relative_positions=lambda x: jnp.arange(x.shape[1])[:, None] - jnp.arange(x.shape[1])[None],
)
cases(
    "f32[b,2*n] plain",
    "f32[n,3] plain",
    halves=lambda x, y: x[:, : x.shape[1] // 2] + x[:, x.shape[1] // 2 :],
    pairs=lambda x, y: x.reshape(x.shape[0], -1, 2).sum(-1) @ y,
    split_in_two=lambda x, y: jnp.split(x, 2, axis=1)[1] @ y,
    even_minus_odd=lambda x, y: (x[:, ::2] - x[:, 1::2]) @ y,
)
cases(
    "f32[b,8,8,3] plain",
    images_to_rows=lambda x: x.reshape(x.shape[0], -1),
    images_channels_first=lambda x: x.transpose(0, 3, 1, 2),
    images_pooled=lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    images_patches=lambda x: x.reshape(-1, 4, 2, 4, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape[0], 16, 12),
    images_resized=lambda x: jax.image.resize(x, (x.shape[0], 4, 4, 3), "bilinear"),
    images_convolved=lambda x: lax.conv_general_dilated(
        x, jnp.ones((3, 3, 3, 2)) / 27, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ),
    images_normalised=lambda x: nn.standardize(x, axis=(1, 2, 3)),
)


@case("f32[b,4] plain", "f32[4,5] plain", "f32[5] plain")
def dense(x, w, b):
    return nn.gelu(x @ w + b)


@case("f32[b,4] plain", "f32[b] plain")
def two_inputs_of_one_batch(x, y):
    return x * y[:, None], x.T @ y


@case("i32[b,t] 0..9", "f32[10,4] plain")
def embeddings(ids, table):
    return table[ids].mean(1), (ids != 0).sum(1)


@case("f32[b,c] plain", "i32[b] 0..1")
def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()


@case("f32[h,w,3] plain")
def image_of_any_size(x):
    padded = jnp.pad(x, ((1, 1), (1, 1), (0, 0)), mode="edge")
    return (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2, x.mean((0, 1)), x.shape[0] * jnp.ones(2)


@case("f32[n,3] plain", "f32[m,3] plain")
def distances_of_two_clouds(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.min(1).mean() + d.min(0).mean(), jnp.argmin(d, 1)


@case("f32[n,4] plain", "i32[e,2] 0..0")
def graph_of_any_size(nodes, edges):
    return jnp.zeros_like(nodes).at[edges[:, 1]].add(nodes[edges[:, 0]])


@case("f32[b,p,4] plain", "f32[b,t,4] plain")
def cache_and_new_tokens(past, new):
    keys = jnp.concatenate([past, new], 1)
    return keys, nn.softmax(new @ keys.mT) @ keys


@case("f32[b,t] plain", "i32[b] 1..2")
def masked_mean(x, lengths):
    mask = jnp.arange(x.shape[1])[None] < lengths[:, None]
    return (x * mask).sum(1) / lengths


@case("u32[2]", "f32[b,4] plain")
def noise_of_the_size_of_the_batch(key, x):
    return x + jax.random.uniform(key, x.shape)


@case("f32[4*k] plain")
def chunks(x):
    return x.reshape(4, -1).sum(1), x.reshape(-1, 4).max(1)


@case("f32[b,t,6] plain", "f32[6,6] plain")
def layer_of_a_transformer(x, w):
    q, k, v = x @ w, x @ w.T, x
    q, k, v = (part.reshape(*part.shape[:-1], 3, 2) for part in (q, k, v))
    attended = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2), v)
    return nn.standardize(x + attended.reshape(x.shape))


@case("f32[b,6] plain")
def batch_by_jit(x):
    return jax.jit(lambda v: jax.jit(nn.softmax)(v) * v.shape[0])(x)
