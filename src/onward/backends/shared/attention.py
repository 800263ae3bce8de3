"""Linear attention. Its helpers are named alike in every backend."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.errors import UnsupportedError


def linear_attention(
    e: Emitter,
    q: Expr,
    k: Expr,
    v: Expr,
    state: Expr | None = None,
    decay: Expr | None = None,
    beta: Expr | None = None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
    chunk_size: int = 64,
) -> list[Any]:
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise UnsupportedError(f"LinearAttention: unknown update_rule {update_rule!r}")
    parts = [
        ops.split_heads(q, q_num_heads),
        ops.split_heads(k, kv_num_heads),
        ops.split_heads(v, kv_num_heads),
    ]
    fades = update_rule.startswith("gated") and decay is not None
    keywords = given(
        state=state,
        decay=ops.split_heads(decay, kv_num_heads) if fades else None,
        beta=beta if update_rule.endswith("delta") else None,
        scale=scale or None,
    )
    y, last = e.unpack(ops.linear_attention(*parts, **keywords), 2)
    return [ops.merge_heads(y), last]
