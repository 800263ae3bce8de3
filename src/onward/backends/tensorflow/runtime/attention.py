"""Attention as ONNX defines it, and what models put around it. Half precision is computed in single precision."""

from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.control_flow import loop
from onward.backends.tensorflow.runtime.host import is_number, size
from onward.backends.tensorflow.runtime.norm import single


def split_heads(x: tf.Tensor, heads: int) -> tf.Tensor:
    """(batch, time, heads · width) as (batch, heads, time, width)."""
    shape = [size(x, 0), size(x, 1), heads, size(x, 2) // heads]
    return tf.transpose(tf.reshape(x, shape), [0, 2, 1, 3])


def merge_heads(x: tf.Tensor) -> tf.Tensor:
    """(batch, heads, time, width) as (batch, time, heads · width)."""
    shape = [size(x, 0), size(x, 2), size(x, 1) * size(x, 3)]
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), shape)


def inverse_root(number: Any, dtype: tf.DType) -> Any:
    """One divided by the square root of a host number."""
    return number**-0.5 if is_number(number) else tf.math.rsqrt(tf.cast(number, dtype))


def sees_earlier(q: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    """Whether each key is no later than each query."""
    return tf.range(size(k, -2)) <= tf.range(size(q, -2))[:, tf.newaxis]


def dot_attention(
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    mask: tf.Tensor | None = None,
    scale: Any = None,
    causal: bool = False,
    hides: bool = False,
) -> tf.Tensor:
    """softmax(q · kᵀ · scale + mask) · v; by default, the scale is one divided by the root of the width.

    A mask of booleans is true for keys that are seen. Where it `hides` all keys from a query, that one gets zeros.
    """
    wide = single(q)
    scale = inverse_root(size(q, -1), wide.dtype) if scale is None else scale
    scores = tf.matmul(wide * scale, single(k), transpose_b=True)
    if mask is not None:
        scores = scores + single(mask) if mask.dtype != tf.bool else tf.where(mask, scores, -float("inf"))
    if causal:
        scores = tf.where(sees_earlier(q, k), scores, -float("inf"))
    weights = tf.nn.softmax(scores)
    if hides:
        weights = tf.where(tf.reduce_all(tf.math.is_inf(scores), axis=-1, keepdims=True), 0.0, weights)
    return tf.cast(tf.matmul(weights, single(v)), q.dtype)


def attention_mask(
    q: tf.Tensor,
    k: tf.Tensor,
    mask: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    *,
    causal: bool = False,
    past: Any = 0,
    left: int = -1,
    right: int = -1,
) -> tf.Tensor:
    """One mask out of all that hides keys from queries.

    A mask that is shorter than the keys hides the rest of them. `lengths` are the numbers of keys that are no
    padding; without `past`, the queries stand at the end of these, else behind `past` keys. `causal`, `left` and
    `right` (where not negative) bound how far a query sees.
    """
    queries, keys = (tf.cast(size(x, 2), tf.int64) for x in (q, k))
    time = tf.range(keys)
    positions = tf.range(queries)[:, tf.newaxis] + past
    visible = tf.ones([queries, keys], tf.bool)
    if lengths is not None:
        lengths = tf.reshape(tf.cast(lengths, tf.int64), [-1, 1, 1, 1])
        visible = visible & (time < lengths)
        positions = positions + lengths - queries
    if causal:
        visible = visible & (time <= positions)
    if left >= 0:
        visible = visible & (time >= positions - left)
    if right >= 0:
        visible = visible & (time <= positions + right)
    if mask is None:
        return visible
    missing = [[0, 0]] * (mask.shape.rank - 1) + [[0, size(k, 2) - size(mask, -1)]]
    if mask.dtype == tf.bool:
        return tf.pad(mask, missing) & visible
    hidden = tf.constant(-float("inf"), mask.dtype)
    return tf.where(visible, tf.pad(mask, missing, constant_values=hidden), hidden)


def attention(
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    scale: Any = None,
    softcap: float = 0.0,
    softmax_dtype: tf.DType | None = None,
    scores: str = "raw",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Attention with its inner values: the result and the 'raw', 'capped', 'masked' scores or 'probabilities'.

    Several query heads may share a key head. A query that sees no key at all gives zeros.
    """
    dtype, groups = q.dtype, size(q, 1) // size(k, 1)
    if not is_number(groups) or groups > 1:
        k, v = tf.repeat(k, groups, 1), tf.repeat(v, groups, 1)
    q, k = single(q), single(k)
    v = tf.cast(v, q.dtype)
    raw = tf.matmul(q * (inverse_root(size(q, 3), q.dtype) if scale is None else scale), k, transpose_b=True)
    capped = softcap * tf.tanh(raw / softcap) if softcap else raw
    masked, blind = capped, None
    if mask is not None:
        hidden = ~mask if mask.dtype == tf.bool else mask == -float("inf")
        blind = tf.reduce_all(hidden, -1, keepdims=True)
        biased = capped if mask.dtype == tf.bool else capped + tf.cast(mask, capped.dtype)
        masked = tf.where(hidden, -float("inf"), biased)
    seen = masked if blind is None else tf.where(blind, 0.0, masked)
    probabilities = tf.nn.softmax(seen if softmax_dtype is None else tf.cast(seen, softmax_dtype))
    if blind is not None:
        probabilities = tf.where(blind, tf.zeros_like(probabilities), probabilities)
    probabilities = tf.cast(probabilities, q.dtype)
    inner = {"raw": raw, "capped": capped, "masked": masked, "probabilities": probabilities}
    return tf.cast(tf.matmul(probabilities, v), dtype), tf.cast(inner[scores], dtype)


def rotate_half(x: tf.Tensor) -> tf.Tensor:
    """The second half of the features, negated, before the first one."""
    first, second = tf.split(x, 2, axis=-1)
    return tf.concat((-second, first), axis=-1)


def rotary_embedding(
    x: tf.Tensor, cos: tf.Tensor, sin: tf.Tensor, *, width: int | None = None, interleaved: bool = False
) -> tf.Tensor:
    """Rotate pairs of the first `width` (by default all) elements of each head by the angles given.

    x is (batch, heads, time, width of a head), cos and sin are (batch, time, width / 2). A pair is elements i and
    i + width / 2, or 2i and 2i + 1 where interleaved.
    """
    turned = x if width is None else x[..., :width]
    cos, sin = cos[:, tf.newaxis], sin[:, tf.newaxis]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else tf.split(turned, 2, -1)
    pair = cos * a - sin * b, sin * a + cos * b
    rotated = tf.reshape(tf.stack(pair, -1), tf.shape(turned)) if interleaved else tf.concat(pair, -1)
    return rotated if width is None else tf.concat((rotated, x[..., width:]), -1)


def linear_attention(
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    state: tf.Tensor | None = None,
    decay: tf.Tensor | None = None,
    beta: tf.Tensor | None = None,
    *,
    scale: float | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Attention by a matrix of key-value associations that is updated at each time; returns it at the end, too.

    q, k, v and decay are (batch, heads, time, …), beta is (batch, time, heads or 1). The state fades by exp(decay),
    then takes in k ⊗ v, or, with `beta`, that share of the difference between v and what it already answers to k.
    """
    dtype = q.dtype
    if state is None:
        state = tf.zeros([size(k, 0), size(k, 1), size(k, 3), size(v, 3)], dtype)
    kept, groups = state.dtype, size(q, 1) // size(k, 1)
    q, k, v, state = (single(x) for x in (q, k, v, state))
    factor = inverse_root(size(q, 3), q.dtype) if scale is None else scale

    def body(t: Any, state: tf.Tensor) -> tuple[Any, ...]:
        key, value = k[:, :, t, :, tf.newaxis], v[:, :, t, tf.newaxis, :]
        if decay is not None:
            state = tf.exp(single(decay[:, :, t, :, tf.newaxis])) * state
        if beta is not None:
            share = single(beta[:, t, :, tf.newaxis, tf.newaxis])
            value = share * (value - tf.reduce_sum(state * key, 2, keepdims=True))
        state = state + key * value
        answer = tf.matmul(q[:, :, t, tf.newaxis, :], tf.repeat(state, groups, 1))
        return True, state, factor * answer[:, :, 0]

    row = tf.TensorSpec([q.shape[0], None, v.shape[3]], q.dtype)
    last, y = loop(body, [state], count=size(q, 2), rows=[row])
    return tf.cast(tf.transpose(y, [1, 2, 0, 3]), dtype), tf.cast(last, kept)


def depthwise_over_time(x: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor | None = None) -> tf.Tensor:
    """A convolution over time of each channel by itself: x is (batch, channels, time), weight (channels, 1, size)."""
    images = tf.transpose(single(x), [0, 2, 1])[:, tf.newaxis]
    kernel = tf.transpose(single(weight), [2, 0, 1])[tf.newaxis]
    y = tf.transpose(tf.nn.depthwise_conv2d(images, kernel, [1, 1, 1, 1], "VALID")[:, 0], [0, 2, 1])
    return tf.cast(y if bias is None else y + single(bias)[:, tf.newaxis], x.dtype)


def group_query_attention(
    q: tf.Tensor,
    k: tf.Tensor | None,
    v: tf.Tensor | None,
    past_key: tf.Tensor | None,
    past_value: tf.Tensor | None,
    last: tf.Tensor,
    total: Any,
    *,
    heads: int,
    kv_heads: int,
    cos: tf.Tensor | None = None,
    sin: tf.Tensor | None = None,
    positions: tf.Tensor | None = None,
    interleaved: bool = False,
    bias: tf.Tensor | None = None,
    sink: tf.Tensor | None = None,
    k_scale: tf.Tensor | None = None,
    v_scale: tf.Tensor | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    smooth: bool = False,
    bits: int = 8,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Attention of new elements over a cache; returns the result and the caches with the new keys and values.

    q is (batch, time, heads · width); k and v have `kv_heads` heads, or stand behind q where they are None. `last` is
    the place of the last element of each row, and the caches have room for `total` places at least. Tables `cos` and
    `sin` rotate q and k by their places. Scales tell that a cache is of integers of so many `bits`. An element sees the
    `window` places up to its own (0: all of them), and a `sink` or `smooth` takes a share of its attention.
    """
    if k is None or v is None:
        width = size(q, 2) // (heads + 2 * kv_heads)
        q, k, v = tf.split(q, [heads * width, kv_heads * width, kv_heads * width], 2)
    q, k, v = split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    last = tf.reshape(tf.cast(last, tf.int64), [-1, 1])
    new = tf.cast(size(q, 2), tf.int64)
    places = tf.maximum(last + 1 - new, 0) + tf.range(new)
    if cos is not None and sin is not None:
        at = places if positions is None else positions
        if positions is not None:
            at = tf.where(tf.cast(total, tf.int64) == new, positions[:1, :1] + tf.range(new), positions)
        turn = {"width": 2 * size(cos, 1), "interleaved": interleaved}
        q, k = (rotary_embedding(x, tf.gather(cos, at), tf.gather(sin, at), **turn) for x in (q, k))
    key = extend_cache(past_key, in_steps(k, k_scale, bits), places, total)
    value = extend_cache(past_value, in_steps(v, v_scale, bits), places, total)
    all_keys, all_values = of_steps(key, k_scale, bits, q), of_steps(value, v_scale, bits, q)
    here, time = places[:, tf.newaxis, :, tf.newaxis], tf.range(tf.cast(size(key, 2), tf.int64))
    mask = time <= (here if causal else last[:, :, tf.newaxis, tf.newaxis])
    if window:
        mask = mask & (time > here - window)
    if bias is not None:
        mask = tf.where(mask, tf.pad(bias, [[0, 0], [0, 0], [0, 0], [0, size(key, 2) - size(bias, 3)]]), -float("inf"))
    if sink is not None or smooth:
        scores = mask if bias is not None else tf.where(mask, tf.zeros([], q.dtype), -float("inf"))
        score = tf.zeros([1], q.dtype) if sink is None else sink
        rows = [size(q, 0), heads, size(q, 2)]
        column = tf.broadcast_to(score[:, tf.newaxis, tf.newaxis], [*rows, 1])
        mask = tf.concat((tf.broadcast_to(scores, [*rows, size(key, 2)]), column), 3)
        all_keys, all_values = (tf.pad(x, [[0, 0], [0, 0], [0, 1], [0, 0]]) for x in (all_keys, all_values))
    y, _ = attention(q, all_keys, all_values, mask, scale=scale, softcap=softcap)
    return merge_heads(y), key, value


def extend_cache(past: tf.Tensor | None, new: tf.Tensor, places: tf.Tensor, total: Any) -> tf.Tensor:
    """The earlier elements of each row with the new ones at their places, and room for `total` in all."""
    base = new if past is None else past
    missing = tf.maximum(tf.cast(total, tf.int64) - tf.cast(size(base, 2), tf.int64), 0)
    room = tf.pad(base, [[0, 0], [0, 0], [0, missing], [0, 0]])
    if past is None:
        return room
    by_place = tf.transpose(room, [0, 2, 1, 3])
    rows = tf.broadcast_to(tf.range(tf.cast(size(new, 0), tf.int64))[:, tf.newaxis], tf.shape(places))
    filled = tf.tensor_scatter_nd_update(by_place, tf.stack((rows, places), -1), tf.transpose(new, [0, 2, 1, 3]))
    return tf.transpose(filled, [0, 2, 1, 3])


def in_steps(x: tf.Tensor, scale: tf.Tensor | None, bits: int) -> tf.Tensor:
    """Numbers as integers, in steps of one scale, or of one for each channel; those of 4 bits are two to a byte."""
    if scale is None:
        return x
    most = 2.0 ** (bits - 1)
    whole = tf.clip_by_value(tf.round(tf.cast(x, tf.float32) / cache_steps(scale, x)), -most, most - 1)
    if bits == 8:
        return tf.cast(whole, tf.int8)
    codes = whole + most
    return tf.cast(codes[..., ::2] + 16.0 * codes[..., 1::2], tf.uint8)


def of_steps(x: tf.Tensor, scale: tf.Tensor | None, bits: int, like: tf.Tensor) -> tf.Tensor:
    """The numbers that integers stand for."""
    if scale is None:
        return x
    number = tf.cast(x, tf.float32)
    if bits == 4:
        high = tf.floor(number / 16)
        pairs = tf.stack((number - 16 * high, high), -1)
        number = tf.reshape(pairs, [*(size(x, i) for i in range(3)), 2 * size(x, 3)]) - 8
    return tf.cast(number * cache_steps(scale, number), like.dtype)


def cache_steps(scale: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """One scale, or those of the channels of each head, so that it broadcasts with a cache."""
    flat = tf.reshape(tf.cast(scale, tf.float32), [-1])
    return tf.reshape(flat, [1, 1 if flat.shape[0] == 1 else size(x, 1), 1, -1])
