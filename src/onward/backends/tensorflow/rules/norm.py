"""Normalisations, with the channels first as in ONNX, or last (`onward.nhwc`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter, Unpack
from onward.backends.emit.expr import Expr, Ref
from onward.backends.tensorflow.layer_weights import owned
from onward.backends.tensorflow.target import dtype, ops, rule, tf
from onward.layout.roles import DOMAIN


def _both(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register `f(e, channels, …)` for both layouts: `channels` is the argument that tells a helper their axis."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        for key, channels in ((name, {"axis": 1}), (f"{DOMAIN}::{name}", {})):

            @rule(key)
            def apply(e: Emitter, *inputs: Expr, channels: dict[str, int] = channels, **attributes: Any) -> Any:
                return f(e, channels, *inputs, **attributes)

        return f

    return register


def _changing(**given: tuple[Any, Any]) -> dict[str, Any]:
    """Keyword arguments that are not the defaults they are given with."""
    return {name: value for name, (value, default) in given.items() if value != default}


def _eps(epsilon: float) -> dict[str, float]:
    return _changing(epsilon=(epsilon, 1e-5))


@_both("BatchNormalization")
def batch_norm(
    e: Emitter,
    channels: dict[str, int],
    x: Expr,
    scale: Expr,
    bias: Expr,
    mean: Arg,
    var: Arg,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    if e.rank(x) == 2:
        channels = {}
    same = {e.dtype(t) for t in (x, scale, bias, mean, var)}
    weight, offset = owned(e, "bn", weight=scale, bias=bias)
    options = _changing(momentum=(momentum, 0.9)) | _eps(epsilon) | channels
    if training_mode:
        return list(e.unpack(ops.batch_norm_train(x, weight, offset, mean, var, **options), 3))
    if e.const(mean) is not None and e.const(var) is not None:
        running = [e.weights.running(statistic._value, e.node) for statistic in (mean, var)]
        return ops.batch_norm(x, weight, offset, *running, Ref(e.flags["training"]), **options)
    if not channels and same <= {ir.DataType.FLOAT, ir.DataType.DOUBLE} and len(same) == 1:
        return tf.nn.batch_normalization(x, mean, var, offset, weight, epsilon)
    return ops.normalized_by(x, weight, offset, mean, var, epsilon, channels.get("axis", -1))


def _parts(e: Emitter, **parts: Expr) -> list[Expr | None]:
    """The weight and bias of a layer; those that do nothing and that no one named are no parameters."""
    neutral = {"weight": 1, "bias": 0}
    made_up = [
        (c := e.const(x)) is not None and not e.is_weight(x) and (c == neutral[a]).all() for a, x in parts.items()
    ]
    return list(parts.values()) if all(made_up) else owned(e, "norm", None, **parts)


@_both("InstanceNormalization")
def instance_norm(
    e: Emitter, channels: dict[str, int], x: Expr, scale: Expr, bias: Expr, *, epsilon: float = 1e-5
) -> Expr:
    return ops.instance_norm(x, *_parts(e, weight=scale, bias=bias), **_eps(epsilon), **channels)


@_both("GroupNormalization")
def group_norm(
    e: Emitter,
    channels: dict[str, int],
    x: Expr,
    scale: Expr,
    bias: Expr,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    return ops.group_norm(x, *_parts(e, weight=scale, bias=bias), num_groups, **_eps(epsilon), **channels)


@_both("LRN")
def local_response_norm(
    e: Emitter,
    channels: dict[str, int],
    x: Expr,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Expr:
    if size % 2 and not channels and e.rank(x) == 4 and e.dtype(x) == ir.DataType.FLOAT:
        options = {"depth_radius": size // 2, "bias": bias, "alpha": alpha / size, "beta": beta}
        return tf.nn.local_response_normalization(x, **options)
    options = _changing(alpha=(alpha, 1e-4), beta=(beta, 0.75), bias=(bias, 1.0))
    return ops.local_response_norm(x, size, **options, **channels)


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
    parts = {"weight": scale} if bias is None else {"weight": scale, "bias": bias}
    given = [x, *_parts(e, **parts)]
    options = _changing(axis=(axis, -1)) | _eps(epsilon)
    if e.used(1) or e.used(2):
        kind = {} if stash_type == ir.DataType.FLOAT else {"dtype": dtype(stash_type)}
        return Unpack(ops.layer_norm_statistics(*given, **options, **kind))
    return ops.layer_norm(*given, **options)


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Expr:
    return ops.rms_norm(x, *_parts(e, weight=scale), **_changing(axis=(axis, -1)), **_eps(epsilon))


@rule("LpNormalization")
def lp_normalize(e: Emitter, x: Expr, *, axis: int = -1, p: int = 2) -> Expr:
    return ops.lp_normalize(x, p, axis)


@rule("MeanVarianceNormalization")
def mean_variance_norm(e: Emitter, x: Expr, *, axes: Sequence[int] = (0, 2, 3)) -> Expr:
    return ops.mean_variance_norm(x, list(axes))
