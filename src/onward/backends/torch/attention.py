"""Attention."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import F, rule


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
) -> Expr:
    options: dict[str, Any] = {}
    if mask is not None:
        options["attn_mask"] = mask
    if is_causal:
        options["is_causal"] = True
    if scale is not None:
        options["scale"] = scale
    return F.scaled_dot_product_attention(q, k, v, **options)
