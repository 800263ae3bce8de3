"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import applied, made, owning, owns, rule


@rule("BatchNormalization", "onward.nhwc::BatchNormalization")
def batch_norm(
    e: Emitter,
    x: Expr,
    scale: Expr,
    bias: Expr,
    mean: Arg,
    var: Arg,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr | None:
    """Channels are last: images have been turned, and others have them last anyhow."""
    shape = e.shape(x)
    same = {e.dtype(t) for t in (x, scale, bias, mean, var)}
    if training_mode or len(same) > 1 or shape is None or shape[-1] is None or not owns(e, scale, bias, mean, var):
        return None
    if e.node.domain == "" and len(shape) != 2:
        return None
    options = {} if math.isclose(momentum, 0.99) else {"momentum": momentum}
    layer = made(e, x, "BatchNormalization", **options, epsilon=epsilon)
    return applied(e, owning(e, layer, "bn", weight=scale, bias=bias, running_mean=mean, running_var=var), x)


@rule("onward.nhwc::GroupNormalization")
def group_norm(
    e: Emitter, x: Expr, scale: Expr, bias: Expr, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Expr | None:
    return _in_groups(e, x, scale, bias, num_groups, epsilon)


@rule("onward.nhwc::InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, *, epsilon: float = 1e-5) -> Expr | None:
    return _in_groups(e, x, scale, bias, -1, epsilon)


def _in_groups(e: Emitter, x: Expr, scale: Expr, bias: Expr, groups: int, epsilon: float) -> Expr | None:
    shape = e.shape(x)
    if e.dtype(x) != ir.DataType.FLOAT or shape is None or shape[-1] is None or not owns(e, scale, bias):
        return None
    layer = made(e, x, "GroupNormalization", groups, epsilon=epsilon)
    return applied(e, owning(e, layer, "norm", weight=scale, bias=bias), x)


@rule("LayerNormalization")
def layer_norm(
    e: Emitter,
    x: Expr,
    scale: Expr,
    bias: Expr | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    shape = e.shape(x)
    if e.dtype(x) != ir.DataType.FLOAT or shape is None or e.used(1) or e.used(2) or not owns(e, scale, bias):
        return None
    axes = list(range(axis % len(shape), len(shape)))
    full = tuple(shape[a] for a in axes)
    if None in full or 0 in axes or e.shape(scale) != full or (bias is not None and e.shape(bias) != full):
        return None
    options: dict[str, Any] = {} if len(axes) == 1 else {"axis": axes}
    options |= {"epsilon": epsilon} | ({"center": False} if bias is None else {})
    layer = made(e, x, "LayerNormalization", **options)
    return applied(e, owning(e, layer, "norm", weight=scale, bias=bias), x), None, None
