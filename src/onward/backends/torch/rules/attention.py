"""Attention: `F.scaled_dot_product_attention` wherever it means the same, and what models put around it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.attention import linear_attention
from onward.backends.torch.target import F, dtype, ops, rule, torch
from onward.errors import UnsupportedError

_D = ir.DataType


@rule("onward::SDPA")
def sdpa(
    e: Emitter,
    q: Expr,
    k: Expr,
    v: Expr,
    mask: Expr | None = None,
    *,
    scale: float | None = None,
    is_causal: int = 0,
    widens: int = 0,
) -> Expr:
    if widens:
        return ops.widened_attention(q, k, v, mask, **options(scale=scale))
    return F.scaled_dot_product_attention(q, k, v, **options(attn_mask=mask, is_causal=bool(is_causal), scale=scale))


def _symbol(x: Expr | None, axis: int) -> Any:
    """A dimension as a number or a name, or None where nothing is known of it."""
    shape = x._value.shape if isinstance(x, Arg) else None
    if shape is None or len(shape) < -axis:
        return None
    found = shape[axis]
    return found if isinstance(found, int) else found.value


def _same(a: Any, b: Any) -> bool:
    return a is not None and a == b


def _is_grouped(q: Expr, k: Expr, q_heads: int, kv_heads: int) -> bool:
    """Whether several query heads share a key head, or may do so."""
    if q_heads and kv_heads:
        return q_heads != kv_heads
    return not _same(_symbol(q, -3), _symbol(k, -3))


@rule("Attention")
def attention(
    e: Emitter,
    q: Expr,
    k: Expr,
    v: Expr,
    mask: Expr | None = None,
    past_key: Expr | None = None,
    past_value: Expr | None = None,
    lengths: Expr | None = None,
    *,
    scale: float | None = None,
    is_causal: int = 0,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    qk_matmul_output_mode: int = 0,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> list[Any]:
    rank = e.rank(q)
    packed = bool(q_num_heads) if rank is None else rank == 3
    grouped = _is_grouped(q, k, q_num_heads, kv_num_heads)
    mask_fits = mask is None or (e.rank(mask) in (2, 3, 4) and _same(_symbol(mask, -1), _symbol(k, -2)))
    query, key, value = q, k, v
    if packed:
        query = e.let(ops.split_heads(q, q_num_heads))
        key, value = ops.split_heads(k, kv_num_heads), ops.split_heads(v, kv_num_heads)
    past: Any = 0
    if past_key is not None and past_value is not None:
        past = e.dim(past_key, 2)
        key, value = torch.cat((past_key, key), dim=2), torch.cat((past_value, value), dim=2)
    key, value = e.let(key), e.let(value)
    causal, window = bool(is_causal), (left_window_size, right_window_size)
    needs_mask = (
        lengths is not None
        or window != (-1, -1)
        or (causal and (past_key is not None or mask is not None))
        or not (mask_fits and (mask is None or past_key is None))
    )
    if needs_mask:
        given = [mask] if lengths is None and mask is not None else [mask, lengths] if lengths is not None else []
        sides = {"left": window[0], "right": window[1]}
        bounds = {name: side for name, side in sides.items() if side >= 0}
        if past_key is not None and (causal or bounds):
            bounds["past"] = past
        mask = ops.attention_mask(query, key, *given, **options(causal=causal), **bounds)
        causal = False
    precise = softmax_precision is None or _D(softmax_precision) in (e.dtype(q), _D.FLOAT)
    if e.used(3) or softcap or not precise:
        if causal:
            mask = ops.attention_mask(query, key, causal=True)
        inner = ("raw", "capped", "masked", "probabilities")[qk_matmul_output_mode]
        keywords = options(
            scale=scale,
            softcap=softcap or None,
            softmax_dtype=None if softmax_precision is None else dtype(softmax_precision),
            scores=inner if e.used(3) and inner != "raw" else None,
        )
        masks = [] if mask is None else [mask]
        y, scores = e.unpack(ops.attention(query, key, value, *masks, **keywords), 2)
    else:
        keywords = options(attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped)
        half = e.dtype(q) == _D.FLOAT16
        function = ops.half_precision_attention if half else F.scaled_dot_product_attention
        y, scores = function(query, key, value, **keywords), None
    return [ops.merge_heads(y) if packed else y, key, value, scores]


@rule("RotaryEmbedding")
def rotary_embedding(
    e: Emitter,
    x: Expr,
    cos: Expr,
    sin: Expr,
    positions: Expr | None = None,
    *,
    interleaved: int = 0,
    rotary_embedding_dim: int = 0,
    num_heads: int = 0,
) -> Expr:
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    rank = e.rank(x)
    packed = bool(num_heads) if rank is None else rank == 3
    heads = ops.split_heads(x, num_heads) if packed else x
    keywords = options(width=rotary_embedding_dim or None, interleaved=bool(interleaved))
    y = ops.rotary_embedding(heads, cos, sin, **keywords)
    return ops.merge_heads(y) if packed else y


@rule("SwiGLU")
def swiglu(e: Emitter, gate: Expr, value: Expr, *, alpha: float = 1.0) -> Expr:
    return F.silu(gate) * value if alpha == 1 else gate * torch.sigmoid(alpha * gate) * value


@rule("LinearAttention")
def linear(e: Emitter, q: Expr, k: Expr, v: Expr, *more: Expr | None, **attributes: Any) -> list[Any]:
    return linear_attention(e, q, k, v, *more, **attributes)


@rule("CausalConvWithState")
def causal_conv_with_state(
    e: Emitter,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    past: Expr | None = None,
    *,
    activation: str = "none",
) -> list[Any]:
    if activation not in ("none", "silu", "swish"):
        raise UnsupportedError(f"CausalConvWithState: unknown activation {activation!r}")
    size = e.dim(weight, 2)
    padded = e.let(F.pad(x, (size - 1, 0)) if past is None else torch.cat((past, x), dim=2))
    y = F.conv1d(padded, weight, **options(bias=bias), groups=e.dim(weight, 0))
    state = padded[:, :, padded.shape[2] - (size - 1) :] if e.used(1) else None
    return [F.silu(y) if activation != "none" else y, state]


@rule("ai.onnx.preview::FlexAttention")
def flex_attention(
    e: Emitter,
    q: Expr,
    k: Expr,
    v: Expr,
    *,
    scale: float | None = None,
    softmax_precision: int | None = None,
    score_mod: ir.Graph | None = None,
    prob_mod: ir.Graph | None = None,
) -> Expr:
    of = e.dtype(q)
    precision = _D(softmax_precision) if softmax_precision else _D.DOUBLE if of == _D.DOUBLE else _D.FLOAT
    grouped = _is_grouped(q, k, 0, 0)
    if score_mod is None and prob_mod is None and precision in (of, _D.FLOAT):
        return F.scaled_dot_product_attention(q, k, v, **options(scale=scale, enable_gqa=grouped))
    key, value = k, v
    if grouped:
        group = e.let_host(e.dim(q, 1) // e.dim(k, 1), "group")
        key, value = (x.repeat_interleave(group, dim=1) for x in (k, v))
    factor = e.dim(q, 3) ** -0.5 if scale is None else scale
    scores = (q @ key.transpose(2, 3) * factor).to(dtype(precision))
    probabilities = torch.softmax(_modified(e, score_mod, scores, precision), dim=-1)
    return _modified(e, prob_mod, probabilities, precision).to(q.dtype) @ value


def _modified(e: Emitter, graph: ir.Graph | None, x: Expr, of: ir.DataType) -> Expr:
    """What a graph of one input and one output makes of x."""
    if graph is None:
        return x
    var = e.fresh("scores")
    e.assign(var, x)
    e.bind(graph.inputs[0], var)
    graph.inputs[0].type = ir.TensorType(of)
    node = e.node
    (result,) = e.graph(graph)
    e.node = node
    return result
