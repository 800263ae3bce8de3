"""Attention, as far as every backend says it alike. The helpers are named alike in every backend."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given, options
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.spec.attention import Attention, GroupQueryAttention, LinearAttention, RotaryEmbedding


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
