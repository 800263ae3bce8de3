"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.keras.target import applied, layers, made, owning, owns, rule, typed
from onward.spec.norm import BatchNorm, GroupNorm, LayerNorm, Norm


@rule("BatchNormalization", "onward.nhwc::BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Arg, var: Arg, p: BatchNorm) -> Expr | None:
    """Channels are last: images have been turned, and others have them last anyhow."""
    shape = e.shape(x)
    same = {e.dtype(t) for t in (x, scale, bias, mean, var)}
    if p.training_mode or len(same) > 1 or shape is None or shape[-1] is None or not owns(e, scale, bias, mean, var):
        return None
    if e.node.domain == "" and len(shape) != 2:
        return None
    options: dict[str, Any] = {} if math.isclose(p.momentum, 0.99) else {"momentum": p.momentum}
    options |= {"epsilon": p.epsilon} | typed(e, x)
    layer = (Name("UnbiasedBatchNormalization") if p.unbiased else layers.BatchNormalization)(**options)
    return applied(e, owning(e, layer, "bn", weight=scale, bias=bias, running_mean=mean, running_var=var), x)


@rule("onward.nhwc::GroupNormalization")
def group_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: GroupNorm) -> Expr | None:
    return _in_groups(e, x, scale, bias, p.num_groups, p.epsilon)


@rule("onward.nhwc::InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: Norm) -> Expr | None:
    return _in_groups(e, x, scale, bias, -1, p.epsilon)


def _in_groups(e: Emitter, x: Expr, scale: Expr, bias: Expr, groups: int, epsilon: float) -> Expr | None:
    shape = e.shape(x)
    if e.dtype(x) != ir.DataType.FLOAT or shape is None or shape[-1] is None or not owns(e, scale, bias):
        return None
    layer = made(e, x, "GroupNormalization", groups, epsilon=epsilon)
    return applied(e, owning(e, layer, "norm", weight=scale, bias=bias), x)


@rule("LayerNormalization")
def layer_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr | None = None, *, p: LayerNorm) -> Any:
    shape = e.shape(x)
    if e.dtype(x) != ir.DataType.FLOAT or shape is None or e.used(1) or e.used(2) or not owns(e, scale, bias):
        return None
    axes = list(range(p.axis % len(shape), len(shape)))
    full = tuple(shape[a] for a in axes)
    if None in full or 0 in axes or e.shape(scale) != full or (bias is not None and e.shape(bias) != full):
        return None
    options: dict[str, Any] = {} if len(axes) == 1 else {"axis": axes}
    options |= {"epsilon": p.epsilon} | ({"center": False} if bias is None else {})
    layer = made(e, x, "LayerNormalization", **options)
    return applied(e, owning(e, layer, "norm", weight=scale, bias=bias), x), None, None
