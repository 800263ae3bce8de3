"""Where gradients end: what rules refuse, and ops that have none, each with the reason."""

from __future__ import annotations

import onnx_ir as ir

from onward.canon.lower import key_of

PARTIAL = {
    "Attention": "not with respect to scores that it gives out, nor a mask of unknown shape that ends early",
    "CausalConvWithState": "where the number of channels is known",
    "DFT": "not along an axis that is computed, nor the inverse of one side",
    "DequantizeLinear": "straight through; scales and zero points are settings",
    "DynamicQuantizeLinear": "straight through; the scale that it computes is a setting",
    "If": "not through sequences or quantised integers",
    "Loop": "not through sequences or quantised integers, nor states whose shape changes",
    "OptionalGetElement": "of tensors only",
    "QuantizeLinear": "straight through, inside the range; scales and zero points are settings",
    "com.microsoft::MatMulNBits": "not of bytes laid out for one processor, nor of columns that choose blocks beside "
    "zero points; scales and zero points are settings",
    "com.microsoft::GroupQueryAttention": "not through a cache of integers",
    "Resize": "not with keep_aspect_ratio_policy without axes",
    "Scan": "not through sequences or quantised integers",
}
"""Ops with a rule, or a definition, that does not cover all that ONNX allows."""

SEQUENCE = "only where the number of elements and all positions are known: it is replaced then"
MISSING = {
    "Optional": "an optional value carries no gradient",
    "SequenceMap": "a sequence carries no gradient",
    **dict.fromkeys(
        (
            "ConcatFromSequence",
            "SequenceAt",
            "SequenceConstruct",
            "SequenceEmpty",
            "SequenceErase",
            "SequenceInsert",
            "SplitToSequence",
        ),
        SEQUENCE,
    ),
}
"""Ops of real numbers that have neither a rule nor a definition that leads to rules."""


def lost_by(node: ir.Node) -> str | None:
    """Why a gradient that passes a node would be zero without a word: its definition rounds, and has no rule for it."""
    if key_of(node) == "com.microsoft::GroupQueryAttention":
        kinds = [node.attributes.get_string(name, "NONE") for name in ("k_quant_type", "v_quant_type")]
        if kinds != ["NONE", "NONE"]:
            return "its cache is of integers, which carry no gradient to keys and values; use a cache of floats"
    return None
