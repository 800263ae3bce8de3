"""Normalisations. Helpers are told the dimension of the channels, or how many dimensions they go over."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.matlab.target import axis_dim, ops, rank_of, row, rule
from onward.backends.shared.layer_weights import affine, owned
from onward.spec.norm import LRN, BatchNorm, GroupNorm, LayerNorm, LpNorm, MeanVarianceNorm, Norm

_D = ir.DataType


@rule("BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, p: BatchNorm) -> Any:
    parts = owned(e, "bn", weight=scale, bias=bias, running_mean=mean, running_var=var)
    channels = _channels(e, x)
    if p.training_mode:
        return tuple(e.unpack(ops.batch_norm_train(x, *parts, p.epsilon, p.momentum, channels), 3))
    return ops.batch_norm(x, *parts, p.epsilon, channels)


def _channels(e: Emitter, x: Expr) -> int:
    """The dimension of the channels."""
    return max(rank_of(e, x) - 1, 1)


@rule("InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: Norm) -> Expr:
    parts = affine(e, "norm", weight=scale, bias=bias)
    return ops.instance_norm(x, *parts, p.epsilon, rank_of(e, x) - 1)


@rule("GroupNormalization")
def group_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: GroupNorm) -> Expr:
    parts = affine(e, "norm", weight=scale, bias=bias)
    return ops.group_norm(x, p.num_groups, *parts, p.epsilon, rank_of(e, x) - 1)


@rule("LayerNormalization")
def layer_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr | None = None, *, p: LayerNorm) -> Any:
    parts = affine(e, "norm", **({"weight": scale} if bias is None else {"weight": scale, "bias": bias}))
    weight, offset = (*parts, None)[:2]
    call = ops.layer_norm(x, weight, offset, p.epsilon, axis_dim(e, x, p.axis))
    if e.used(1) or e.used(2):
        return tuple(e.unpack(call, 3))
    return call


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, p: LayerNorm) -> Expr:
    (weight,) = affine(e, "norm", weight=scale)
    return ops.rms_norm(x, weight, p.epsilon, axis_dim(e, x, p.axis))


@rule("LRN")
def local_response_norm(e: Emitter, x: Expr, p: LRN) -> Expr:
    return ops.local_response_norm(x, p.size, p.alpha, p.beta, p.bias, _channels(e, x))


@rule("LpNormalization")
def lp_normalize(e: Emitter, x: Expr, p: LpNorm) -> Expr:
    return ops.lp_normalize(x, p.p, axis_dim(e, x, p.axis))


@rule("MeanVarianceNormalization")
def mean_variance_norm(e: Emitter, x: Expr, p: MeanVarianceNorm) -> Expr:
    return ops.mean_variance_norm(x, row(sorted(axis_dim(e, x, axis) for axis in p.axes)))
