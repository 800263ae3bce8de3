"""Attention, and what models put around it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.attention import linear_attention
from onward.backends.tensorflow.dtypes import FLOATS, dtype_of
from onward.backends.tensorflow.target import dtype, ops, rule, tf
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
    masks = [] if mask is None else [mask]
    return ops.dot_attention(q, k, v, *masks, **options(scale=scale, causal=bool(is_causal)))


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
    query, key, value = q, k, v
    if packed:
        query = e.let(ops.split_heads(q, q_num_heads))
        key, value = ops.split_heads(k, kv_num_heads), ops.split_heads(v, kv_num_heads)
    bounds = {name: n for name, n in (("left", left_window_size), ("right", right_window_size)) if n >= 0}
    if is_causal:
        bounds["causal"] = True
    if past_key is not None and past_value is not None:
        if bounds:
            bounds["past"] = e.dim(past_key, 2)
        key, value = tf.concat([past_key, key], axis=2), tf.concat([past_value, value], axis=2)
    key, value = e.let(key), e.let(value)
    typed = mask is None or e.dtype(mask) in (*FLOATS, _D.BOOL, None)
    added = mask if typed else tf.cast(mask, dtype(dtype_of(e, q)))
    masks = [] if added is None else [added]
    if bounds or lengths is not None or not _fits(e, mask, k, past_key):
        given = [added, lengths] if lengths is not None else masks
        masks = [ops.attention_mask(query, key, *given, **bounds)]
    inner = ("raw", "capped", "masked", "probabilities")[qk_matmul_output_mode]
    precise = softmax_precision is None or _D(softmax_precision) in (_D.FLOAT, _D.FLOAT16, _D.BFLOAT16)
    call = ops.attention(
        query,
        key,
        value,
        *masks,
        **options(
            scale=scale,
            softcap=softcap or None,
            softmax_dtype=None if precise or softmax_precision is None else dtype(softmax_precision),
            scores=inner if e.used(3) and inner != "raw" else None,
        ),
    )
    y, scores = e.unpack(call, 2) if e.used(3) else (call[0], None)
    return [ops.merge_heads(y) if packed else y, key, value, scores]


def _fits(e: Emitter, mask: Expr | None, k: Expr, past_key: Expr | None) -> bool:
    """Whether a mask is known to have as many columns as there are keys."""
    if mask is None:
        return True
    shapes = e.shape(mask), e.shape(k)
    columns, keys = (None if s is None else s[axis] for s, axis in zip(shapes, (-1, -2), strict=True))
    return past_key is None and columns is not None and columns == keys


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
        cos, sin = tf.gather(cos, positions), tf.gather(sin, positions)
    rank = e.rank(x)
    packed = bool(num_heads) if rank is None else rank == 3
    heads = ops.split_heads(x, num_heads) if packed else x
    keywords = options(width=rotary_embedding_dim or None, interleaved=bool(interleaved))
    y = ops.rotary_embedding(heads, cos, sin, **keywords)
    return ops.merge_heads(y) if packed else y


@rule("SwiGLU")
def swiglu(e: Emitter, gate: Expr, value: Expr, *, alpha: float = 1.0) -> Expr:
    return tf.nn.silu(gate, **({} if alpha == 1 else {"beta": alpha})) * value


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
    before = e.dim(weight, 2) - 1
    padded = e.let(tf.pad(x, [[0, 0], [0, 0], [before, 0]]) if past is None else tf.concat([past, x], axis=2))
    biases = [] if bias is None else [bias]
    y = ops.depthwise_over_time(padded, weight, *biases)
    state = padded[:, :, ops.size(padded, 2) - before :] if e.used(1) else None
    return [tf.nn.silu(y) if activation != "none" else y, state]


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
    if score_mod is None and prob_mod is None and precision in (of, _D.FLOAT):
        return ops.attention(q, k, v, **options(scale=scale))[0]
    group = e.let_host(e.dim(q, 1) // e.dim(k, 1), "group")
    key, value = tf.repeat(k, group, axis=1), tf.repeat(v, group, axis=1)
    factor = ops.inverse_root(e.dim(q, 3), dtype(of or _D.FLOAT)) if scale is None else scale
    scores = tf.cast(tf.matmul(q, key, transpose_b=True) * factor, dtype(precision))
    probabilities = tf.nn.softmax(_modified(e, score_mod, scores, precision))
    return tf.matmul(tf.cast(_modified(e, prob_mod, probabilities, precision), dtype(of or _D.FLOAT)), value)


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
