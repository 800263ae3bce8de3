"""Normalisations, with the channels first as in ONNX, or last (`onward.nhwc`)."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Expr, Ref
from onward.backends.emit.facts import is_made_up
from onward.backends.shared import norm
from onward.backends.tensorflow.layer_weights import owned
from onward.backends.tensorflow.target import TARGET, dtype, ops, rule, tf
from onward.spec.norm import LRN, BatchNorm, GroupNorm, LayerNorm, Norm

TARGET.rules.take(norm.RULES)


def _channels(e: Emitter) -> dict[str, int]:
    """The argument that tells a helper the axis of the channels."""
    return {} if e.node.domain else {"axis": 1}


@rule("BatchNormalization", "onward.nhwc::BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Arg, var: Arg, p: BatchNorm) -> Any:
    channels = {} if e.rank(x) == 2 else _channels(e)
    same = {e.dtype(t) for t in (x, scale, bias, mean, var)}
    weight, offset = owned(e, "bn", weight=scale, bias=bias)
    options = changed(p, "momentum", "epsilon") | channels
    if p.training_mode:
        return list(e.unpack(ops.batch_norm_train(x, weight, offset, mean, var, **options), 3))
    if e.const(mean) is not None and e.const(var) is not None:
        running = [e.weights.running(statistic._value, e.node) for statistic in (mean, var)]
        options |= {"unbiased": True} if p.unbiased else {}
        return ops.batch_norm(x, weight, offset, *running, Ref(e.flags["training"]), **options)
    if not channels and same <= {ir.DataType.FLOAT, ir.DataType.DOUBLE} and len(same) == 1:
        return tf.nn.batch_normalization(x, mean, var, offset, weight, p.epsilon)
    return ops.normalized_by(x, weight, offset, mean, var, p.epsilon, channels.get("axis", -1))


def _parts(e: Emitter, **parts: Expr) -> list[Expr | None]:
    """The weight and bias of a layer; those that do nothing and that no one named are no parameters."""
    neutral = {"weight": 1, "bias": 0}
    made_up = all(is_made_up(e, x, neutral[name]) for name, x in parts.items())
    return list(parts.values()) if made_up else owned(e, "norm", None, **parts)


@rule("InstanceNormalization", "onward.nhwc::InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: Norm) -> Expr:
    return ops.instance_norm(x, *_parts(e, weight=scale, bias=bias), **changed(p, "epsilon"), **_channels(e))


@rule("GroupNormalization", "onward.nhwc::GroupNormalization")
def group_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: GroupNorm) -> Expr:
    parts = _parts(e, weight=scale, bias=bias)
    return ops.group_norm(x, *parts, p.num_groups, **changed(p, "epsilon"), **_channels(e))


@rule("LRN", "onward.nhwc::LRN")
def local_response_norm(e: Emitter, x: Expr, p: LRN) -> Expr:
    if p.size % 2 and e.node.domain and e.rank(x) == 4 and e.dtype(x) == ir.DataType.FLOAT:
        options = {"depth_radius": p.size // 2, "bias": p.bias, "alpha": p.alpha / p.size, "beta": p.beta}
        return tf.nn.local_response_normalization(x, **options)
    return ops.local_response_norm(x, p.size, **changed(p, "alpha", "beta", "bias"), **_channels(e))


@rule("LayerNormalization")
def layer_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr | None = None, *, p: LayerNorm) -> Any:
    parts = {"weight": scale} if bias is None else {"weight": scale, "bias": bias}
    given, options = [x, *_parts(e, **parts)], changed(p, "axis", "epsilon")
    if e.used(1) or e.used(2):
        kind = {} if p.stash_type == ir.DataType.FLOAT else {"dtype": dtype(p.stash_type)}
        return Unpack(ops.layer_norm_statistics(*given, **options, **kind))
    return ops.layer_norm(*given, **options)


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, p: LayerNorm) -> Expr:
    return ops.rms_norm(x, *_parts(e, weight=scale), **changed(p, "axis", "epsilon"))
