"""Ops of `com.microsoft` of models with a state instead of attention, and of several streams side by side."""

import onnx_ir as ir

from onward.canon.lower.microsoft_attention import refuse
from onward.canon.lower.microsoft_fused import MS, channels_first
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, input_of, needed, rank, require, take

_D = ir.DataType


def _float(x: ir.Value, op: Rewriter) -> ir.Value:
    return x if x.dtype == _D.FLOAT else op("Cast", x, to=_D.FLOAT)


def _like(x: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    return x if x.dtype is not None and x.dtype == like.dtype else op("CastLike", x, like)


def _normal(x: ir.Value, epsilon: float, op: Rewriter) -> ir.Value:
    """Divided by the root of the mean of the squares along the last axis, in single precision."""
    wide = _float(x, op)
    mean = op("ReduceMean", op("Mul", wide, wide), op.ints([-1]), keepdims=1)
    return op("Div", wide, op("Sqrt", op("Add", mean, op.floats(epsilon))))


@lowering(f"{MS}::LinearAttention")
def linear_attention(node: ir.Node, op: Rewriter) -> None:
    """As the standard op, where each query has a key of its own, or several queries share one."""
    refuse(node, "states of several steps", take(node, "state_window", 0))
    q_heads, kv_heads = require(node, "q_num_heads"), require(node, "kv_num_heads")
    inputs = [input_of(node, i) for i in range(6)]
    if q_heads < kv_heads:
        inputs[0] = _repeated(needed(node, 0), q_heads, kv_heads // q_heads, op)
        q_heads = kv_heads
    rule = take(node, "update_rule", "gated_delta")
    if not rule.startswith("gated"):
        inputs[4] = None
    if not rule.endswith("delta"):
        inputs[5] = None
    outputs = op.many(
        *(2, "LinearAttention"),
        *inputs,
        q_num_heads=q_heads,
        kv_num_heads=kv_heads,
        scale=take(node, "scale", 0.0),
        update_rule=rule,
    )
    op.created[-1].version = 27
    op.replace(*outputs[: len(node.outputs)])


def _repeated(x: ir.Value, heads: int, times: int, op: Rewriter) -> ir.Value:
    """(batch, time, heads · width), where each head stands there so many times."""
    apart = op("Reshape", x, op.ints([0, 0, heads, 1, -1]))
    return op("Reshape", op("Tile", apart, op.ints([1, 1, 1, times, 1])), op.ints([0, 0, -1]))


@lowering(f"{MS}::LinearAttentionGate")
def linear_attention_gate(node: ir.Node, op: Rewriter) -> None:
    a, bias, scale, b = needed(node, 0), needed(node, 1), needed(node, 2), input_of(node, 3)
    decay = _like(op("Mul", op("Softplus", op("Add", _float(a, op), bias)), scale), a, op)
    outputs = [decay, None if b is None else _like(op("Sigmoid", _float(b, op)), b, op)]
    op.replace(*outputs[: len(node.outputs)])


@lowering(f"{MS}::CausalConvWithState")
def causal_conv(node: ir.Node, op: Rewriter) -> None:
    """A convolution over time of each channel by itself, after what its earlier inputs left over."""
    x, weight, bias, past = needed(node, 0), needed(node, 1), input_of(node, 2), input_of(node, 3)
    refuse(node, "states of several steps", take(node, "state_window", 0))
    refuse(node, "convolutions over images", take(node, "ndim", 1) != 1)
    is_last, dilation = take(node, "channels_last", 0), take(node, "dilation", 1)
    known = rank(x)
    if is_last and known != 3:
        raise UnsupportedError(f"{describe(node)}: channels on several last axes, or of unknown rank, have no rule")
    size = dims(weight) or [None] * 3
    if size[2] is None or size[0] is None:
        raise UnsupportedError(f"{describe(node)}: the shape of its weight is not known")
    before = (size[2] - 1) * dilation
    rows = channels_first(x, op) if is_last else x
    if past is None:
        padded = op("Pad", rows, op.ints([before, 0]), None, op.ints([2]))
    else:
        padded = op("Concat", channels_first(past, op) if is_last else past, rows, axis=2)
    y = op("Conv", padded, weight, bias, group=size[0], dilations=[dilation])
    if take(node, "activation", "none") in ("silu", "swish"):
        y = op("Mul", y, op("Sigmoid", y))
    end = op("Shape", padded, start=2, end=3)
    state = op("Slice", padded, op("Sub", end, op.ints([before])), end, op.ints([2]))
    outputs = [op("Transpose", v, perm=[0, 2, 1]) if is_last else v for v in (y, state)]
    op.replace(*outputs[: len(node.outputs)])


@lowering(f"{MS}::GatedAdd")
def gated_add(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Add", needed(node, 0), op("Mul", needed(node, 1), needed(node, 2))))


@lowering(f"{MS}::ScaledSiLU")
def scaled_silu(node: ir.Node, op: Rewriter) -> None:
    x, scale, alpha = needed(node, 0), input_of(node, 1), take(node, "alpha", 1.0)
    if scale is None:
        z = x if alpha == 1 else _like(op("Mul", _float(x, op), op.floats(alpha)), x, op)
    else:
        z = _like(op("Mul", _float(x, op), op("Squeeze", _float(scale, op))), x, op)
    op.replace(op("Mul", z, op("Sigmoid", z)))


@lowering(f"{MS}::GatedRMSNorm")
def gated_rms_norm(node: ir.Node, op: Rewriter) -> None:
    """Each group of as many elements as the scale has is normalised by itself, and multiplied by its gate."""
    x, scale, gate = (needed(node, i) for i in range(3))
    size = (dims(scale) or [None])[0]
    if size is None:
        raise UnsupportedError(f"{describe(node)}: the size of its scale is not known")
    shape = op("Concat", op("Shape", x, end=-1), op.ints([-1, size]), axis=0)
    groups = op("Reshape", x, shape)
    normal = op("Mul", _normal(groups, take(node, "epsilon", 1e-5), op), _float(scale, op))
    wide = _float(op("Reshape", gate, shape), op)
    share = op("Sigmoid", wide)
    factor = share if take(node, "activation", "silu") == "sigmoid" else op("Mul", wide, share)
    op.replace(op("Reshape", _like(op("Mul", normal, factor), x, op), op("Shape", x), allowzero=1))


def _branches(x: ir.Value, count: int, op: Rewriter) -> ir.Value:
    """(…, branches, width), of what may be (…, branches · width)."""
    if not count:
        return x
    return op("Reshape", x, op("Concat", op("Shape", x, end=-1), op.ints([count, -1]), axis=0))


@lowering(f"{MS}::BranchwiseRMSNorm")
def branchwise_rms_norm(node: ir.Node, op: Rewriter) -> None:
    x, scale, count = needed(node, 0), input_of(node, 1), take(node, "num_branches", 0)
    branches = _branches(x, count, op)
    y = _normal(branches, take(node, "epsilon", 1e-5), op)
    if scale is not None:
        factor = _float(scale, op)
        if rank(scale) != 2:
            width = op("Shape", branches, start=-1)
            factor = op("Reshape", factor, op("Concat", op.ints([-1]), width, axis=0))
        y = op("Mul", y, factor)
    op.replace(op("Reshape", _like(y, x, op), op("Shape", x), allowzero=1))


def _gates(mix: ir.Value, streams: ir.Value, op: Rewriter) -> ir.Value:
    """Gates of branches or of all their elements, as (…, branches, 1 or width)."""
    wide, known, of = _float(mix, op), rank(mix), rank(streams)
    if known is None or of is None:
        raise UnsupportedError(f"{describe(op.node)}: the rank of its gates or streams is not known")
    if known == of:
        return wide
    branches = op("Shape", streams, start=-2, end=-1)
    return op("Reshape", wide, op("Concat", op("Shape", mix, end=-1), branches, op.ints([-1]), axis=0))


@lowering(f"{MS}::HyperConnectionPreMix")
def hyper_connection_pre_mix(node: ir.Node, op: Rewriter) -> None:
    x, mix = needed(node, 0), needed(node, 1)
    streams = _branches(x, take(node, "num_branches", 0), op)
    total = op("ReduceSum", op("Mul", _float(streams, op), _gates(mix, streams, op)), op.ints([-2]), keepdims=0)
    scale = take(node, "reduction_scale", 1.0)
    op.replace(_like(total if scale == 1 else op("Mul", total, op.floats(scale)), x, op))


@lowering(f"{MS}::HyperConnectionPostMix")
def hyper_connection_post_mix(node: ir.Node, op: Rewriter) -> None:
    x, block, gates, matrix = needed(node, 0), needed(node, 1), needed(node, 2), input_of(node, 3)
    streams = _branches(x, take(node, "num_branches", 0), op)
    kept = _float(streams, op)
    if matrix is not None:
        known = rank(matrix)
        if known is None:
            raise UnsupportedError(f"{describe(node)}: the rank of its matrices is not known")
        turned = op("Transpose", _float(matrix, op), perm=[*range(known - 2), known - 1, known - 2])
        kept = op("MatMul", turned, kept)
    added = op("Mul", _gates(gates, streams, op), op("Unsqueeze", _float(block, op), op.ints([-2])))
    op.replace(op("Reshape", _like(op("Add", kept, added), x, op), op("Shape", x), allowzero=1))


@lowering(f"{MS}::EngramGate")
def engram_gate(node: ir.Node, op: Rewriter) -> None:
    """How much of a value is let through, by how well its key fits the query."""
    key, query, value, key_scale, query_scale = (needed(node, i) for i in range(5))
    epsilon, size = take(node, "epsilon", 1e-5), (dims(key) or [None])[-1] or (dims(key_scale) or [None])[-1]
    if size is None:
        raise UnsupportedError(f"{describe(node)}: the width of its keys is not known")

    def normal(x: ir.Value, scale: ir.Value) -> ir.Value:
        return op("Mul", _normal(x, epsilon, op), _float(scale, op))

    product = op("Mul", normal(key, key_scale), normal(query, query_scale))
    dot = op("Mul", op("ReduceSum", product, op.ints([-1]), keepdims=1), op.floats(size**-0.5))
    root = op("Sqrt", op("Max", op("Abs", dot), op.floats(1e-6)))
    gate = op("Sigmoid", op("Mul", op("Sign", dot), root))
    gated = op("Mul", gate, op("Unsqueeze", _float(value, op), op.ints([-2])))
    outputs: list[ir.Value | None] = [_like(gated, key, op)]
    if len(node.outputs) > 1:
        outputs.append(_like(normal(gated, needed(node, 5)), key, op))
    op.replace(*outputs)
