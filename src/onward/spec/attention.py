"""What attention means, and the ops around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.spec.meaning import Spec, attributes, means, rank

_D = ir.DataType
_SCORES = ("raw", "capped", "masked", "probabilities")


@means("onward::SDPA")
@dataclass(frozen=True)
class SDPA(Spec):
    """PyTorch's own attention. `widens`: it computes in single precision, and its mask is broadcast. `hides`: its mask
    may hide all keys from a query, which gets zeros."""

    scale: float | None = None
    is_causal: int = 0
    widens: int = 0
    hides: int = 0


@means("onward::Repeat")
@dataclass(frozen=True)
class Repeat(Spec):
    axis: int
    repeats: int


@means("Attention")
@dataclass(frozen=True)
class Attention(Spec):
    packed: bool
    """Heads and features share the last axis."""
    scores: str
    """The stage at which the scores are given out."""
    bounds: dict[str, Any]
    """How many positions to the `left` and to the `right` are seen, where that is limited."""
    scale: float | None = None
    is_causal: int = 0
    softcap: float = 0.0
    softmax_precision: int | None = None
    q_num_heads: int = 0
    kv_num_heads: int = 0

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        sides = {side: given.pop(f"{side}_window_size", -1) for side in ("left", "right")}
        scores = _SCORES[given.pop("qk_matmul_output_mode", 0)]
        packed = _is_packed(node, given.get("q_num_heads", 0))
        return cls(packed, scores, {side: size for side, size in sides.items() if size >= 0}, **given)


def _is_packed(node: ir.Node, heads: int) -> bool:
    known = rank(node)
    return bool(heads) if known is None else known == 3


@means("RotaryEmbedding")
@dataclass(frozen=True)
class RotaryEmbedding(Spec):
    packed: bool
    """Heads and features share the last axis."""
    interleaved: int = 0
    rotary_embedding_dim: int = 0
    num_heads: int = 0

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        return cls(_is_packed(node, given.get("num_heads", 0)), **given)


@means("onward::GroupQueryAttention")
@dataclass(frozen=True)
class GroupQueryAttention(Spec):
    """Attention over a cache. `window`: how many places an element sees, 0 for all; `smooth`: it may see nothing."""

    num_heads: int
    kv_num_heads: int
    scale: float | None = None
    softcap: float = 0.0
    window: int = 0
    causal: bool = True
    smooth: bool = False
    interleaved: bool = False
    bits: int = 8


@means("SwiGLU")
@dataclass(frozen=True)
class SwiGLU(Spec):
    alpha: float = 1.0


@means("LinearAttention")
@dataclass(frozen=True)
class LinearAttention(Spec):
    q_num_heads: int
    kv_num_heads: int
    scale: float = 0.0
    update_rule: str = "gated_delta"
    chunk_size: int = 64

    def __post_init__(self) -> None:
        if self.update_rule not in ("linear", "gated", "delta", "gated_delta"):
            raise UnsupportedError(f"LinearAttention: update_rule {self.update_rule!r} is not known")


@means("CausalConvWithState")
@dataclass(frozen=True)
class CausalConvWithState(Spec):
    activation: str = "none"

    def __post_init__(self) -> None:
        if self.activation not in ("none", "silu", "swish"):
            raise UnsupportedError(f"CausalConvWithState: activation {self.activation!r} is not known")


@means("ai.onnx.preview::FlexAttention")
@dataclass(frozen=True)
class FlexAttention(Spec):
    precision: ir.DataType
    """In which the softmax is computed."""
    scale: float | None = None
    score_mod: ir.Graph | None = None
    prob_mod: ir.Graph | None = None

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        q = node.inputs[0]
        usual = _D.DOUBLE if q is not None and q.dtype == _D.DOUBLE else _D.FLOAT
        return cls(_D(given.pop("softmax_precision", 0) or usual), **given)
