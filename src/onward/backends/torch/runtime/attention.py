"""Attention as ONNX defines it, where `F.scaled_dot_product_attention` alone does not say it."""

import torch
import torch.nn.functional as F
from torch import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, time, heads · width) as (batch, heads, time, width)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, time, width) as (batch, time, heads · width)."""
    return x.transpose(1, 2).flatten(2)


def attention_mask(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    causal: bool = False,
    past: int = 0,
    left: int = -1,
    right: int = -1,
) -> Tensor:
    """One mask out of all that hides keys from queries, for `F.scaled_dot_product_attention`.

    A mask that is shorter than the keys hides the rest of them. `lengths` are the numbers of keys that are no
    padding; without `past`, the queries stand at the end of these, else behind `past` keys. `causal`, `left` and
    `right` (where not negative) bound how far a query sees.
    """
    time = torch.arange(k.shape[2], device=k.device)
    positions = torch.arange(q.shape[2], device=q.device)[:, None] + past
    visible = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
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
        return visible
    missing = k.shape[2] - mask.shape[-1]
    if mask.dtype == torch.bool:
        return F.pad(mask, (0, missing)) & visible
    return F.pad(mask, (0, missing), value=-torch.inf).masked_fill(~visible, -torch.inf)


def widened_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, *, scale: float | None = None) -> Tensor:
    """`F.scaled_dot_product_attention` under a mask that may be for more batches, heads, queries or keys than given."""
    mask = attn_mask[(None,) * (q.ndim - attn_mask.ndim)]
    sizes = zip((*q.shape[:-1], k.shape[-2]), (*k.shape[:-2], 1, 1), mask.shape, strict=True)
    scores = [next((n for n in each if n != 1), 1) for each in sizes]
    q = q.expand(*scores[:-1], q.shape[-1])
    k = k.expand(*scores[:-2], scores[-1], k.shape[-1])
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)


def half_precision_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`F.scaled_dot_product_attention` computed in single precision: half precision can be off by two units."""
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask.float()
    y = F.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return y.to(q.dtype)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_dtype: torch.dtype | None = None,
    scores: str = "raw",
) -> tuple[Tensor, Tensor]:
    """Attention with its inner values: the result and the 'raw', 'capped', 'masked' scores or 'probabilities'.

    A query that sees no key at all gives zeros.
    """
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    root = (q.shape[3] ** -0.5 if scale is None else scale) ** 0.5
    raw = (q * root) @ (k * root).transpose(2, 3)
    capped = softcap * torch.tanh(raw / softcap) if softcap else raw
    masked, blind = capped, None
    if mask is not None:
        hidden = ~mask if mask.dtype == torch.bool else mask.isneginf()
        blind = hidden.all(-1, keepdim=True)
        biased = capped if mask.dtype == torch.bool else capped + mask
        masked = torch.where(hidden, -torch.inf, biased)
    probabilities = torch.softmax(masked, -1, dtype=softmax_dtype)
    if blind is not None:
        probabilities = torch.where(blind, 0.0, probabilities)
    probabilities = probabilities.to(q.dtype)
    inner = {"raw": raw, "capped": capped, "masked": masked, "probabilities": probabilities}
    return probabilities @ v, inner[scores]


def rotate_half(x: Tensor) -> Tensor:
    """The second half of the features, negated, before the first one."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, *, width: int | None = None, interleaved: bool = False
) -> Tensor:
    """Rotate pairs of the first `width` (by default all) elements of each head by the angles given.

    x is (batch, heads, time, width of a head), cos and sin are (batch, time, width / 2). A pair is elements i and
    i + width / 2, or 2i and 2i + 1 where interleaved.
    """
    width = x.shape[-1] if width is None else width
    turned, rest = x[..., :width], x[..., width:]
    pairs = turned.reshape(*turned.shape[:-1], *((width // 2, 2) if interleaved else (2, width // 2)))
    a, b = pairs.unbind(-1 if interleaved else -2)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    rotated = torch.stack((cos * a - sin * b, sin * a + cos * b), -1 if interleaved else -2).flatten(-2)
    return torch.cat((rotated, rest), -1) if width < x.shape[-1] else rotated


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention by a matrix of key-value associations that is updated at each time; returns it at the end, too.

    q, k, v and decay are (batch, heads, time, …), beta is (batch, time, heads or 1). The state fades by exp(decay),
    then takes in k ⊗ v, or, with `beta`, that share of the difference between v and what it already answers to k.
    Half precision is computed in single precision.
    """
    dtype, kind = q.dtype, torch.promote_types(q.dtype, torch.float32)
    if state is None:
        state = q.new_zeros(k.shape[0], k.shape[1], k.shape[3], v.shape[3])
    kept, groups = state.dtype, q.shape[1] // k.shape[1]
    root = q.shape[3] ** -0.5 if scale is None else scale
    q, k, v, state = (x.to(kind) for x in (q, k, v, state))
    outputs = []
    for t in range(q.shape[2]):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        if decay is not None:
            state = decay[:, :, t, :, None].to(kind).exp() * state
        if beta is not None:
            value = beta[:, t, :, None, None].to(kind) * (value - (state * key).sum(2, keepdim=True))
        state = state + key * value
        outputs.append(root * (q[:, :, t, None, :] @ state.repeat_interleave(groups, 1)).squeeze(2))
    return torch.stack(outputs, 2).to(dtype), state.to(kept)


def group_query_attention(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    last: Tensor,
    total: int | Tensor,
    *,
    heads: int,
    kv_heads: int,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    positions: Tensor | None = None,
    interleaved: bool = False,
    bias: Tensor | None = None,
    sink: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    smooth: bool = False,
    bits: int = 8,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of new elements over a cache; returns the result and the caches with the new keys and values.

    q is (batch, time, heads · width); k and v have `kv_heads` heads, or stand behind q where they are None. `last` is
    the place of the last element of each row, and the caches have room for `total` places at least. Tables `cos` and
    `sin` rotate q and k by their places. Scales tell that a cache is of integers of so many `bits`. An element sees the
    `window` places up to its own (0: all of them), and a `sink` or `smooth` takes a share of its attention.
    """
    if k is None or v is None:
        width = q.shape[2] // (heads + 2 * kv_heads)
        q, k, v = torch.split(q, [heads * width, kv_heads * width, kv_heads * width], 2)
    q, k, v = split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
    start = (last.reshape(-1).long() + 1 - q.shape[2]).clamp(min=0)
    places = start[:, None] + torch.arange(q.shape[2], device=q.device)
    if cos is not None and sin is not None:
        at = places if positions is None else positions
        if positions is not None and int(total) == q.shape[2]:
            at = positions[:1, :1] + torch.arange(q.shape[2], device=q.device)
        angles, width = (cos[at], sin[at]), 2 * cos.shape[1]
        q, k = (rotary_embedding(x, *angles, width=width, interleaved=interleaved) for x in (q, k))
    key = extend_cache(past_key, in_steps(k, k_scale, bits), places, total)
    value = extend_cache(past_value, in_steps(v, v_scale, bits), places, total)
    all_keys, all_values = of_steps(key, k_scale, bits, q), of_steps(value, v_scale, bits, q)
    here, time = places[:, None, :, None], torch.arange(key.shape[2], device=q.device)
    mask = time <= (here if causal else last.reshape(-1, 1, 1, 1))
    if window:
        mask = mask & (time > here - window)
    if bias is not None:
        wide = F.pad(bias, (0, key.shape[2] - bias.shape[3]))
        mask = wide.masked_fill(~mask, -torch.inf)
    if sink is not None or smooth:
        mask = mask if bias is not None else torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        score = q.new_zeros(1) if sink is None else sink
        column = score[:, None, None].expand(*q.shape[:3], 1)
        mask = torch.cat((mask.expand(*q.shape[:3], -1), column), 3)
        all_keys, all_values = F.pad(all_keys, (0, 0, 0, 1)), F.pad(all_values, (0, 0, 0, 1))
    if softcap:
        y, _ = attention(q, all_keys, all_values, mask, scale=scale, softcap=softcap)
    elif q.dtype == torch.float16:
        y = half_precision_attention(q, all_keys, all_values, mask, scale=scale, enable_gqa=True)
    else:
        y = F.scaled_dot_product_attention(q, all_keys, all_values, mask, scale=scale, enable_gqa=True)
    return merge_heads(y), key, value


def extend_cache(past: Tensor | None, new: Tensor, places: Tensor, total: int | Tensor) -> Tensor:
    """The earlier elements of each row with the new ones at their places, and room for `total` in all."""
    base = new if past is None else past
    room = F.pad(base, (0, 0, 0, max(int(total) - base.shape[2], 0)))
    return room if past is None else room.scatter(2, places[:, None, :, None].expand_as(new), new)


def in_steps(x: Tensor, scale: Tensor | None, bits: int) -> Tensor:
    """Numbers as integers, in steps of one scale, or of one for each channel; those of 4 bits are two to a byte."""
    if scale is None:
        return x
    most = 2 ** (bits - 1)
    whole = torch.round(x.float() / cache_steps(scale, x)).clamp(-most, most - 1)
    if bits == 8:
        return whole.to(torch.int8)
    codes = (whole + most).to(torch.uint8)
    return torch.bitwise_or(codes[..., ::2], codes[..., 1::2] << 4)


def of_steps(x: Tensor, scale: Tensor | None, bits: int, like: Tensor) -> Tensor:
    """The numbers that integers stand for."""
    if scale is None:
        return x
    if bits == 4:
        x = torch.stack((x & 15, x >> 4), -1).flatten(-2).to(torch.int8) - 8
    return (x.float() * cache_steps(scale, x)).to(like.dtype)


def cache_steps(scale: Tensor, x: Tensor) -> Tensor:
    """One scale, or those of the channels of each head, so that it broadcasts with a cache."""
    return scale.float().reshape(1, 1 if scale.numel() == 1 else x.shape[1], 1, -1)
