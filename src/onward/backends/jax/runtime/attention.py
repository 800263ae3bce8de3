"""Attention as ONNX defines it, and what models put around it. Half precision is computed in single precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.host import number
from onward.backends.jax.runtime.norm import single
from onward.backends.jax.runtime.quantize import quotient


def split_heads(x: Array, heads: int) -> Array:
    """(batch, time, heads · width) as (batch, heads, time, width)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """(batch, heads, time, width) as (batch, time, heads · width)."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def dot_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    scale: float | None = None,
    causal: bool = False,
    hides: bool = False,
) -> Array:
    """softmax(q · kᵀ · scale + mask) · v; by default, the scale is one divided by the root of the width.

    A mask of booleans is true for keys that are seen. Where it `hides` all keys from a query, that one gets zeros.
    """
    scores = (single(q) * (q.shape[-1] ** -0.5 if scale is None else scale)) @ single(k).swapaxes(-1, -2)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + single(mask)
    if causal:
        scores = jnp.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -jnp.inf)
    if not hides:
        return (jax.nn.softmax(scores) @ single(v)).astype(q.dtype)
    blind = (scores == -jnp.inf).all(-1, keepdims=True)
    weights = jnp.where(blind, 0, jax.nn.softmax(jnp.where(blind, 0, scores)))
    return (weights @ single(v)).astype(q.dtype)


def attention_mask(
    q: Array,
    k: Array,
    mask: Array | None = None,
    lengths: Array | None = None,
    *,
    causal: bool = False,
    past: int = 0,
    left: int = -1,
    right: int = -1,
) -> Array:
    """One mask out of all that hides keys from queries.

    A mask that is shorter than the keys hides the rest of them. `lengths` are the numbers of keys that are no
    padding; without `past`, the queries stand at the end of these, else behind `past` keys. `causal`, `left` and
    `right` (where not negative) bound how far a query sees.
    """
    time = np.arange(k.shape[2])
    positions: Any = np.arange(q.shape[2])[:, None] + past
    visible: Any = np.ones((q.shape[2], k.shape[2]), bool)
    if lengths is not None:
        lengths = lengths.reshape(-1, 1, 1, 1)
        visible = visible & (time < lengths)
        positions = positions + lengths - q.shape[2]
    if causal:
        visible = visible & (time <= positions)
    if left >= 0:
        visible = visible & (time >= positions - left)
    if right >= 0:
        visible = visible & (time <= positions + right)
    if mask is None:
        return jnp.asarray(visible)
    missing = [(0, 0)] * (mask.ndim - 1) + [(0, k.shape[2] - mask.shape[-1])]
    if mask.dtype == bool:
        return jnp.pad(mask, missing) & visible
    return jnp.where(visible, jnp.pad(mask, missing, constant_values=-jnp.inf), -jnp.inf)


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_dtype: Any = None,
    scores: str = "raw",
) -> tuple[Array, Array]:
    """Attention with its inner values: the result and the 'raw', 'capped', 'masked' scores or 'probabilities'.

    Several query heads may share a key head. A query that sees no key at all gives zeros.
    """
    dtype, groups = q.dtype, q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat(groups, 1), v.repeat(groups, 1)
    q, k = single(q), single(k)
    v = v.astype(q.dtype)
    raw = (q * (q.shape[3] ** -0.5 if scale is None else scale)) @ k.swapaxes(2, 3)
    capped = softcap * jnp.tanh(raw / softcap) if softcap else raw
    masked, blind = capped, None
    if mask is not None:
        hidden = ~mask if mask.dtype == bool else mask == -jnp.inf
        blind = hidden.all(-1, keepdims=True)
        masked = jnp.where(hidden, -jnp.inf, capped if mask.dtype == bool else capped + mask.astype(capped.dtype))
    seen = masked if blind is None else jnp.where(blind, 0, masked)
    probabilities = jax.nn.softmax(seen if softmax_dtype is None else seen.astype(softmax_dtype))
    if blind is not None:
        probabilities = jnp.where(blind, 0, probabilities)
    probabilities = probabilities.astype(q.dtype)
    inner = {"raw": raw, "capped": capped, "masked": masked, "probabilities": probabilities}
    return (probabilities @ v).astype(dtype), inner[scores].astype(dtype)


def rotate_half(x: Array) -> Array:
    """The second half of the features, negated, before the first one."""
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate((-second, first), axis=-1)


def rotary_embedding(x: Array, cos: Array, sin: Array, *, width: int | None = None, interleaved: bool = False) -> Array:
    """Rotate pairs of the first `width` (by default all) elements of each head by the angles given.

    x is (batch, heads, time, width of a head), cos and sin are (batch, time, width / 2). A pair is elements i and
    i + width / 2, or 2i and 2i + 1 where interleaved.
    """
    turned = x if width is None else x[..., :width]
    cos, sin = cos[:, None], sin[:, None]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else jnp.split(turned, 2, -1)
    pair = cos * a - sin * b, sin * a + cos * b
    rotated = jnp.stack(pair, -1).reshape(turned.shape) if interleaved else jnp.concatenate(pair, -1)
    return rotated if width is None else jnp.concatenate((rotated, x[..., width:]), -1)


def linear_attention(
    q: Array,
    k: Array,
    v: Array,
    state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    *,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """Attention by a matrix of key-value associations that is updated at each time; returns it at the end, too.

    q, k, v and decay are (batch, heads, time, …), beta is (batch, time, heads or 1). The state fades by exp(decay),
    then takes in k ⊗ v, or, with `beta`, that share of the difference between v and what it already answers to k.
    """
    dtype = q.dtype
    if state is None:
        state = jnp.zeros((*k.shape[:2], k.shape[3], v.shape[3]), dtype)
    kept, groups = state.dtype, q.shape[1] // k.shape[1]
    factor = q.shape[3] ** -0.5 if scale is None else scale

    def step(state: Array, now: Any) -> tuple[Array, Array]:
        query, key, value, fading, share = now
        if fading is not None:
            state = jnp.exp(fading)[..., None] * state
        if share is not None:
            value = share[..., None] * (value - (state * key[..., None]).sum(2))
        state = state + key[..., None] * value[:, :, None]
        answer = query[:, :, None] @ state.repeat(groups, 1)
        return state, factor * answer[:, :, 0]

    by_time = [None if x is None else jnp.moveaxis(single(x), 2, 0) for x in (q, k, v, decay)]
    shares = None if beta is None else jnp.moveaxis(single(beta), 1, 0)
    wide = jnp.promote_types(jnp.promote_types(dtype, kept), jnp.float32)
    last, y = lax.scan(step, state.astype(wide), (*by_time, shares))
    return jnp.moveaxis(y, 0, 2).astype(dtype), last.astype(kept)


def depthwise_over_time(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """A convolution over time of each channel by itself: x is (batch, channels, time), weight (channels, 1, size)."""
    y = lax.conv_general_dilated(single(x), single(weight), (1,), "VALID", feature_group_count=x.shape[1])
    return (y if bias is None else y + single(bias)[:, None]).astype(x.dtype)


def group_query_attention(
    q: Array,
    k: Array | None,
    v: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    last: Array,
    total: Any,
    *,
    heads: int,
    kv_heads: int,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: Array | None = None,
    interleaved: bool = False,
    bias: Array | None = None,
    sink: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    smooth: bool = False,
    bits: int = 8,
) -> tuple[Array, Array, Array]:
    """Attention of new elements over a cache; returns the result and the caches with the new keys and values.

    q is (batch, time, heads · width); k and v have `kv_heads` heads, or stand behind q where they are None. `last` is
    the place of the last element of each row, and the caches have room for `total` places at least. Tables `cos` and
    `sin` rotate q and k by their places. Scales tell that a cache is of integers of so many `bits`. An element sees the
    `window` places up to its own (0: all of them), and a `sink` or `smooth` takes a share of its attention.
    """
    total = total if isinstance(total, int) else number(total, "GroupQueryAttention")
    if k is None or v is None:
        width = q.shape[2] // (heads + 2 * kv_heads)
        q, k, v = jnp.split(q, (heads * width, (heads + kv_heads) * width), 2)
    q, k, v = split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    last, new = last.reshape(-1, 1), q.shape[2]
    places = jnp.maximum(last + 1 - new, 0) + np.arange(new)
    if cos is not None and sin is not None:
        at = places
        if positions is not None:
            at = positions[:1, :1] + np.arange(new) if total == new else positions
        turn = {"width": 2 * cos.shape[1], "interleaved": interleaved}
        q, k = (rotary_embedding(x, cos[at], sin[at], **turn) for x in (q, k))
    key = extend_cache(past_key, in_steps(k, k_scale, bits), places, total)
    value = extend_cache(past_value, in_steps(v, v_scale, bits), places, total)
    all_keys, all_values = of_steps(key, k_scale, bits, q), of_steps(value, v_scale, bits, q)
    here, time = places[:, None, :, None], np.arange(key.shape[2])
    mask = time <= (here if causal else last[:, :, None, None])
    if window:
        mask = mask & (time > here - window)
    if bias is not None:
        beyond = [(0, 0), (0, 0), (0, 0), (0, key.shape[2] - bias.shape[3])]
        mask = jnp.where(mask, jnp.pad(bias, beyond), -jnp.inf)
    if sink is not None or smooth:
        scores = mask if bias is not None else jnp.where(mask, jnp.zeros((), q.dtype), -jnp.inf)
        score = jnp.zeros(1, q.dtype) if sink is None else sink
        rows = (q.shape[0], heads, new)
        column = jnp.broadcast_to(score[:, None, None], (*rows, 1))
        mask = jnp.concatenate((jnp.broadcast_to(scores, (*rows, key.shape[2])), column), 3)
        one = [(0, 0), (0, 0), (0, 1), (0, 0)]
        all_keys, all_values = jnp.pad(all_keys, one), jnp.pad(all_values, one)
    y, _ = attention(q, all_keys, all_values, mask, scale=scale, softcap=softcap)
    return merge_heads(y), key, value


def extend_cache(past: Array | None, new: Array, places: Array, total: int) -> Array:
    """The earlier elements of each row with the new ones at their places, and room for `total` in all."""
    base = new if past is None else past
    room = jnp.pad(base, [(0, 0), (0, 0), (0, max(total - base.shape[2], 0)), (0, 0)])
    if past is None:
        return room
    rows = np.arange(new.shape[0])[:, None]
    return room.at[rows, :, places].set(new.swapaxes(1, 2))


def in_steps(x: Array, scale: Array | None, bits: int) -> Array:
    """Numbers as integers, in steps of one scale, or of one for each channel; those of 4 bits are two to a byte."""
    if scale is None:
        return x
    most = 2.0 ** (bits - 1)
    whole = jnp.clip(jnp.round(quotient(x.astype(jnp.float32), cache_steps(scale, x))), -most, most - 1)
    if bits == 8:
        return whole.astype(jnp.int8)
    codes = whole + most
    return (codes[..., ::2] + 16.0 * codes[..., 1::2]).astype(jnp.uint8)


def of_steps(x: Array, scale: Array | None, bits: int, like: Array) -> Array:
    """The numbers that integers stand for."""
    if scale is None:
        return x
    codes = x.astype(jnp.float32)
    if bits == 4:
        high = jnp.floor(codes / 16)
        codes = jnp.stack((codes - 16 * high, high), -1).reshape(*x.shape[:3], 2 * x.shape[3]) - 8
    return (codes * cache_steps(scale, codes)).astype(like.dtype)


def cache_steps(scale: Array, x: Array) -> Array:
    """One scale, or those of the channels of each head, so that it broadcasts with a cache."""
    flat = scale.astype(jnp.float32).reshape(-1)
    return flat.reshape(1, 1 if flat.shape[0] == 1 else x.shape[1], 1, -1)
