"""Normalisations."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.jax.images import channel_axis
from onward.backends.jax.target import TARGET, dtype, ops, rule
from onward.backends.shared import norm
from onward.backends.shared.layer_weights import affine, owned
from onward.spec.norm import LRN, BatchNorm, GroupNorm, LayerNorm, Norm

TARGET.rules.take(norm.RULES)


@rule("BatchNormalization", "onward.nhwc::BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, p: BatchNorm) -> Any:
    parts = owned(e, "bn", weight=scale, bias=bias, running_mean=mean, running_var=var)
    if p.training_mode:
        options = (
            changed(p, "momentum", eps="epsilon") | channel_axis(e, x) | ({"unbiased": True} if p.unbiased else {})
        )
        return tuple(e.unpack(ops.batch_norm_train(x, *parts, **options), 3))
    return ops.batch_norm(x, *parts, **changed(p, eps="epsilon"), **channel_axis(e, x))


@rule("InstanceNormalization", "onward.nhwc::InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: Norm) -> Expr:
    parts = affine(e, "norm", weight=scale, bias=bias)
    return ops.instance_norm(x, *parts, **changed(p, eps="epsilon"), **channel_axis(e, x))


@rule("GroupNormalization", "onward.nhwc::GroupNormalization")
def group_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: GroupNorm) -> Expr:
    parts = affine(e, "norm", weight=scale, bias=bias)
    return ops.group_norm(x, p.num_groups, *parts, **changed(p, eps="epsilon"), **channel_axis(e, x))


@rule("LayerNormalization")
def layer_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr | None = None, *, p: LayerNorm) -> Any:
    parts = affine(e, "norm", **({"weight": scale} if bias is None else {"weight": scale, "bias": bias}))
    options = changed(p, "axis", eps="epsilon")
    if e.used(1) or e.used(2):
        kind = {} if p.stash_type == ir.DataType.FLOAT else {"dtype": dtype(p.stash_type)}
        return Unpack(ops.layer_norm_statistics(x, *parts, **options, **kind))
    return ops.layer_norm(x, *parts, **options)


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, p: LayerNorm) -> Expr:
    return ops.rms_norm(x, *affine(e, "norm", weight=scale), **changed(p, "axis", eps="epsilon"))


@rule("LRN", "onward.nhwc::LRN")
def local_response_norm(e: Emitter, x: Expr, p: LRN) -> Expr:
    return ops.local_response_norm(x, p.size, **changed(p, "alpha", "beta", "bias"), **channel_axis(e, x))
