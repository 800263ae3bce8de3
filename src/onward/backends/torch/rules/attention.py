"""Attention: `F.scaled_dot_product_attention` wherever it means the same, and what models put around it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared import attention as shared
from onward.backends.torch.target import TARGET, F, dtype, ops, rule, torch
from onward.spec.attention import SDPA, Attention, CausalConvWithState, FlexAttention, Repeat, SwiGLU

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("onward::SDPA")
def sdpa(e: Emitter, q: Expr, k: Expr, v: Expr, mask: Expr | None = None, *, p: SDPA) -> Expr:
    if p.widens:
        return ops.widened_attention(q, k, v, mask, **options(scale=p.scale))
    keywords = options(attn_mask=mask, is_causal=bool(p.is_causal), scale=p.scale)
    return F.scaled_dot_product_attention(q, k, v, **keywords)


@rule("onward::Repeat")
def repeat(e: Emitter, x: Expr, p: Repeat) -> Expr:
    return x.repeat_interleave(p.repeats, dim=p.axis)


@rule("onward::RotateHalf")
def rotate_half(e: Emitter, x: Expr) -> Expr:
    return ops.rotate_half(x)


def _symbol(x: Expr | None, axis: int) -> Any:
    """A dimension as a number or a name, or None where nothing is known of it."""
    shape = x._value.shape if isinstance(x, Arg) else None
    if shape is None or len(shape) < -axis:
        return None
    found = shape[axis]
    return found if isinstance(found, int) else found.value


def _same(a: Any, b: Any) -> bool:
    return a is not None and a == b


def _is_grouped(q: Expr, k: Expr, q_heads: int = 0, kv_heads: int = 0) -> bool:
    """Whether several query heads share a key head, or may do so."""
    if q_heads and kv_heads:
        return q_heads != kv_heads
    return not _same(_symbol(q, -3), _symbol(k, -3))


@rule("Attention")
def attention(e: Emitter, q: Expr, k: Expr, v: Expr, *more: Expr | None, p: Attention) -> list[Any]:
    mask, past_key, past_value, lengths = (*more, None, None, None, None)[:4]
    query, key, value = shared.by_heads(e, q, k, v, past_key, past_value, p)
    causal, bounds = bool(p.is_causal), dict(p.bounds)
    fits = mask is None or (e.rank(mask) in (2, 3, 4) and _same(_symbol(mask, -1), _symbol(k, -2)))
    others = [x for x in (mask, past_key) if x is not None]
    if lengths is not None or bounds or (causal and others) or len(others) == 2 or not fits:
        if past_key is not None and (causal or bounds):
            bounds["past"] = e.dim(past_key, 2)
        mask = ops.attention_mask(query, key, *leading(mask, lengths), **options(causal=causal), **bounds)
        causal = False
    precise = p.softmax_precision is None or _D(p.softmax_precision) in (e.dtype(q), _D.FLOAT)
    if e.used(3) or p.softcap or not precise:
        if causal:
            mask = ops.attention_mask(query, key, causal=True)
        keywords = shared.general_options(e, p, p.softmax_precision)
        y, scores = e.unpack(ops.attention(query, key, value, *leading(mask), **keywords), 2)
    else:
        grouped = _is_grouped(q, k, p.q_num_heads, p.kv_num_heads)
        keywords = options(attn_mask=mask, is_causal=causal, scale=p.scale, enable_gqa=grouped)
        half = e.dtype(q) == _D.FLOAT16
        function = ops.half_precision_attention if half else F.scaled_dot_product_attention
        y, scores = function(query, key, value, **keywords), None
    return [ops.merge_heads(y) if p.packed else y, key, value, scores]


@rule("SwiGLU")
def swiglu(e: Emitter, gate: Expr, value: Expr, p: SwiGLU) -> Expr:
    return F.silu(gate) * value if p.alpha == 1 else gate * torch.sigmoid(p.alpha * gate) * value


@rule("CausalConvWithState")
def causal_conv_with_state(
    e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, past: Expr | None = None, *, p: CausalConvWithState
) -> list[Any]:
    size = e.dim(weight, 2)
    padded = e.let(F.pad(x, (size - 1, 0)) if past is None else torch.cat((past, x), dim=2))
    y = F.conv1d(padded, weight, **options(bias=bias), groups=e.dim(weight, 0))
    state = padded[:, :, padded.shape[2] - (size - 1) :] if e.used(1) else None
    return [F.silu(y) if p.activation != "none" else y, state]


@rule("ai.onnx.preview::FlexAttention")
def flex_attention(e: Emitter, q: Expr, k: Expr, v: Expr, p: FlexAttention) -> Expr:
    grouped = _is_grouped(q, k)
    if p.score_mod is None and p.prob_mod is None and p.precision in (e.dtype(q), _D.FLOAT):
        return F.scaled_dot_product_attention(q, k, v, **options(scale=p.scale, enable_gqa=grouped))
    key, value = k, v
    if grouped:
        group = e.let_host(e.dim(q, 1) // e.dim(k, 1), "group")
        key, value = (x.repeat_interleave(group, dim=1) for x in (k, v))
    factor = e.dim(q, 3) ** -0.5 if p.scale is None else p.scale
    scores = (q @ key.transpose(2, 3) * factor).to(dtype(p.precision))
    probabilities = torch.softmax(shared.modified(e, p.score_mod, scores, p.precision), dim=-1)
    return shared.modified(e, p.prob_mod, probabilities, p.precision).to(q.dtype) @ value
