"""Attention, and what models put around it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared import attention as shared
from onward.backends.tensorflow.dtypes import dtype_of
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule, tf
from onward.spec.attention import SDPA, CausalConvWithState, FlexAttention, Repeat, SwiGLU

_D = ir.DataType

TARGET.rules.take(shared.RULES)


@rule("onward::SDPA")
def sdpa(e: Emitter, q: Expr, k: Expr, v: Expr, mask: Expr | None = None, *, p: SDPA) -> Expr:
    flags = options(scale=p.scale, causal=bool(p.is_causal), hides=bool(p.hides))
    return ops.dot_attention(q, k, v, *leading(mask), **flags)


@rule("onward::Repeat")
def repeat(e: Emitter, x: Expr, p: Repeat) -> Expr:
    return tf.repeat(x, p.repeats, axis=p.axis)


@rule("onward::RotateHalf")
def rotate_half(e: Emitter, x: Expr) -> Expr:
    return ops.rotate_half(x)


rule("Attention")(shared.attention)


@rule("SwiGLU")
def swiglu(e: Emitter, gate: Expr, value: Expr, p: SwiGLU) -> Expr:
    return tf.nn.silu(gate, **({} if p.alpha == 1 else {"beta": p.alpha})) * value


@rule("CausalConvWithState")
def causal_conv_with_state(
    e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, past: Expr | None = None, *, p: CausalConvWithState
) -> list[Any]:
    before = e.dim(weight, 2) - 1
    padded = e.let(tf.pad(x, [[0, 0], [0, 0], [before, 0]]) if past is None else tf.concat([past, x], axis=2))
    y = ops.depthwise_over_time(padded, weight, *leading(bias))
    state = padded[:, :, ops.size(padded, 2) - before :] if e.used(1) else None
    return [tf.nn.silu(y) if p.activation != "none" else y, state]


@rule("ai.onnx.preview::FlexAttention")
def flex_attention(e: Emitter, q: Expr, k: Expr, v: Expr, p: FlexAttention) -> Expr:
    of = dtype_of(e, q)
    if p.score_mod is None and p.prob_mod is None and p.precision in (e.dtype(q), _D.FLOAT):
        return ops.attention(q, k, v, **options(scale=p.scale))[0]
    group = e.let_host(e.dim(q, 1) // e.dim(k, 1), "group")
    key, value = tf.repeat(k, group, axis=1), tf.repeat(v, group, axis=1)
    factor = ops.inverse_root(e.dim(q, 3), dtype(of)) if p.scale is None else p.scale
    scores = tf.cast(tf.matmul(q, key, transpose_b=True) * factor, dtype(p.precision))
    probabilities = tf.nn.softmax(shared.modified(e, p.score_mod, scores, p.precision))
    return tf.matmul(tf.cast(shared.modified(e, p.prob_mod, probabilities, p.precision), dtype(of)), value)
