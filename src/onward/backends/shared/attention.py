"""Attention, as far as every backend says it alike. The helpers are named alike in every backend."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given, leading, options
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.backends.shared.elementwise import FLOATS
from onward.spec.attention import Attention, GroupQueryAttention, LinearAttention, RotaryEmbedding

_D = ir.DataType


def by_heads(
    e: Emitter, q: Expr, k: Expr, v: Expr, past_key: Expr | None, past_value: Expr | None, p: Attention
) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values with an axis for the heads; keys and values with those of the past before them."""
    if p.packed:
        q = e.let(ops.split_heads(q, p.q_num_heads))
        k, v = ops.split_heads(k, p.kv_num_heads), ops.split_heads(v, p.kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = e.target.concat([past_key, k], 2), e.target.concat([past_value, v], 2)
    return q, e.let(k), e.let(v)


def general_options(e: Emitter, p: Attention, softmax_dtype: int | None) -> dict[str, Any]:
    """The options of the helper that computes attention of any kind, beside its mask."""
    return options(
        scale=p.scale,
        softcap=p.softcap or None,
        softmax_dtype=None if softmax_dtype is None else e.target.dtype(softmax_dtype),
        scores=p.scores if e.used(3) and p.scores != "raw" else None,
    )


def attention(e: Emitter, q: Expr, k: Expr, v: Expr, *more: Expr | None, p: Attention) -> list[Any]:
    """By the helper that computes attention of any kind, and one that makes a single mask of all that hides keys."""
    mask, past_key, past_value, lengths = (*more, None, None, None, None)[:4]
    query, key, value = by_heads(e, q, k, v, past_key, past_value, p)
    bounds: dict[str, Any] = p.bounds | options(causal=bool(p.is_causal))
    if past_key is not None and bounds:
        bounds["past"] = e.dim(past_key, 2)
    if mask is not None and e.dtype(mask) not in (*FLOATS, _D.BOOL, None):
        masks = leading(e.target.cast(mask, e.dtype(q) or _D.FLOAT), lengths)
    else:
        masks = leading(mask, lengths)
    if bounds or lengths is not None or not _fits(e, mask, k, past_key):
        masks = [ops.attention_mask(query, key, *masks, **bounds)]
    wide = p.softmax_precision in (None, _D.FLOAT, _D.FLOAT16, _D.BFLOAT16)
    keywords = general_options(e, p, None if wide else p.softmax_precision)
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


def rotary_embedding(
    e: Emitter, x: Expr, cos: Expr, sin: Expr, positions: Expr | None = None, *, p: RotaryEmbedding
) -> Expr:
    if positions is not None:
        cos, sin = e.target.pick(cos, positions), e.target.pick(sin, positions)
    heads = ops.split_heads(x, p.num_heads) if p.packed else x
    keywords = options(width=p.rotary_embedding_dim or None, interleaved=bool(p.interleaved))
    y = ops.rotary_embedding(heads, cos, sin, **keywords)
    return ops.merge_heads(y) if p.packed else y


def linear_attention(
    e: Emitter,
    q: Expr,
    k: Expr,
    v: Expr,
    state: Expr | None = None,
    decay: Expr | None = None,
    beta: Expr | None = None,
    *,
    p: LinearAttention,
) -> list[Any]:
    parts = [ops.split_heads(q, p.q_num_heads), *(ops.split_heads(x, p.kv_num_heads) for x in (k, v))]
    fades = p.update_rule.startswith("gated") and decay is not None
    keywords = given(
        state=state,
        decay=ops.split_heads(decay, p.kv_num_heads) if fades else None,
        beta=beta if p.update_rule.endswith("delta") else None,
        scale=p.scale or None,
    )
    y, last = e.unpack(ops.linear_attention(*parts, **keywords), 2)
    return [ops.merge_heads(y), last]


def group_query_attention(
    e: Emitter,
    q: Expr,
    k: Expr | None,
    v: Expr | None,
    past_key: Expr | None,
    past_value: Expr | None,
    last: Expr,
    total: Expr,
    *more: Expr | None,
    p: GroupQueryAttention,
) -> Unpack:
    names = ("cos", "sin", "positions", "bias", "sink", "k_scale", "v_scale")
    e.call(q=q, k=k, v=v, past_key=past_key, past_value=past_value, last=last)
    count = e.scalar(total, 1)
    where = (past_key, past_value, last, total if count is None else count)
    tables = given(**dict(zip(names, more, strict=False)))
    keywords = changed(p, "interleaved", "scale", "softcap", "window", "causal", "smooth", "bits")
    return Unpack(
        ops.group_query_attention(q, k, v, *where, heads=p.num_heads, kv_heads=p.kv_num_heads, **tables, **keywords),
        roles=("", "key", "value"),
    )


def modified(e: Emitter, graph: ir.Graph | None, x: Expr, of: ir.DataType) -> Expr:
    """What a graph of one input and one output makes of scores or probabilities."""
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


RULES: dict[str, Rule] = {
    "RotaryEmbedding": rotary_embedding,
    "LinearAttention": linear_attention,
    "onward::GroupQueryAttention": group_query_attention,
}
