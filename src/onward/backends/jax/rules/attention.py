"""Attention, and what models put around it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import TARGET, dtype, jax, jnp, ops, rule
from onward.backends.shared import attention as shared
from onward.spec.attention import SDPA, Attention, CausalConvWithState, FlexAttention, Repeat, SwiGLU

_D = ir.DataType
_FLOATS = (_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16)

TARGET.rules.take(shared.RULES)


@rule("onward::SDPA")
def sdpa(e: Emitter, q: Expr, k: Expr, v: Expr, mask: Expr | None = None, *, p: SDPA) -> Expr:
    flags = options(scale=p.scale, causal=bool(p.is_causal), hides=bool(p.hides))
    return ops.dot_attention(q, k, v, *leading(mask), **flags)


@rule("onward::Repeat")
def repeat(e: Emitter, x: Expr, p: Repeat) -> Expr:
    return x.repeat(p.repeats, axis=p.axis)


@rule("onward::RotateHalf")
def rotate_half(e: Emitter, x: Expr) -> Expr:
    return ops.rotate_half(x)


@rule("Attention")
def attention(e: Emitter, q: Expr, k: Expr, v: Expr, *more: Expr | None, p: Attention) -> list[Any]:
    mask, past_key, past_value, lengths = (*more, None, None, None, None)[:4]
    query, key, value = shared.by_heads(e, q, k, v, past_key, past_value, p)
    bounds: dict[str, Any] = p.bounds | options(causal=bool(p.is_causal))
    if past_key is not None and bounds:
        bounds["past"] = e.dim(past_key, 2)
    typed = mask is None or e.dtype(mask) in (*_FLOATS, _D.BOOL, None)
    masks = leading(mask if typed else mask.astype(q.dtype), lengths)  # type: ignore[union-attr]
    if bounds or lengths is not None or not _fits(e, mask, k, past_key):
        masks = [ops.attention_mask(query, key, *masks, **bounds)]
    wide = p.softmax_precision in (None, _D.FLOAT, _D.FLOAT16, _D.BFLOAT16)
    keywords = shared.general_options(e, p, None if wide else p.softmax_precision)
    call = ops.attention(query, key, value, *masks, **keywords)
    y, scores = e.unpack(call, 2) if e.used(3) else (call[0], None)
    return [ops.merge_heads(y) if p.packed else y, key, value, scores]


def _fits(e: Emitter, mask: Expr | None, k: Expr, past_key: Expr | None) -> bool:
    """Whether a mask is known to have as many columns as there are keys."""
    if mask is None:
        return True
    shapes = e.shape(mask), e.shape(k)
    columns, keys = (None if s is None else s[axis] for s, axis in zip(shapes, (-1, -2), strict=True))
    return past_key is None and columns is not None and columns == keys


@rule("SwiGLU")
def swiglu(e: Emitter, gate: Expr, value: Expr, p: SwiGLU) -> Expr:
    return jax.nn.silu(gate) * value if p.alpha == 1 else gate * jax.nn.sigmoid(p.alpha * gate) * value


@rule("CausalConvWithState")
def causal_conv_with_state(
    e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, past: Expr | None = None, *, p: CausalConvWithState
) -> list[Any]:
    before = e.dim(weight, 2) - 1
    padded = e.let(jnp.pad(x, ((0, 0), (0, 0), (before, 0))) if past is None else jnp.concatenate((past, x), axis=2))
    y = ops.depthwise_over_time(padded, weight, *leading(bias))
    state = padded[:, :, padded.shape[2] - before :] if e.used(1) else None
    return [jax.nn.silu(y) if p.activation != "none" else y, state]


@rule("ai.onnx.preview::FlexAttention")
def flex_attention(e: Emitter, q: Expr, k: Expr, v: Expr, p: FlexAttention) -> Expr:
    if p.score_mod is None and p.prob_mod is None and p.precision in (e.dtype(q), _D.FLOAT):
        return ops.attention(q, k, v, **options(scale=p.scale))[0]
    group = e.let_host(e.dim(q, 1) // e.dim(k, 1), "group")
    key, value = k.repeat(group, axis=1), v.repeat(group, axis=1)
    factor = e.dim(q, 3) ** -0.5 if p.scale is None else p.scale
    scores = (q @ key.swapaxes(2, 3) * factor).astype(dtype(p.precision))
    probabilities = jax.nn.softmax(shared.modified(e, p.score_mod, scores, p.precision))
    return shared.modified(e, p.prob_mod, probabilities, p.precision).astype(q.dtype) @ value
