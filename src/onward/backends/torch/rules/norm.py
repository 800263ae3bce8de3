"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import F, dtype, nn, ops, rule
from onward.backends.torch.window import typed

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@rule("BatchNormalization")
def batch_norm(
    e: Emitter,
    x: Expr,
    scale: Expr,
    bias: Expr,
    mean: Expr,
    var: Expr,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    if training_mode:
        return tuple(e.unpack(ops.batch_norm_train(x, scale, bias, mean, var, epsilon, momentum), 3))
    parts = {"weight": scale, "bias": bias, "running_mean": mean, "running_var": var}
    dimension = {2: 1, 3: 1, 4: 2, 5: 3}.get(e.rank(x) or 0)
    one_type = len({e.dtype(p) for p in (x, *parts.values())}) == 1
    if not one_type:
        return ops.batch_norm_mixed(x, scale, bias, mean, var, epsilon)
    if dimension is None or any(e.const(p) is None for p in parts.values()):
        return F.batch_norm(x, mean, var, scale, bias, eps=epsilon)
    channels = e.const(scale)
    assert channels is not None
    options = _eps(epsilon)
    if abs(momentum - 0.9) > 1e-6:
        options["momentum"] = round(1 - momentum, 7)
    layer = getattr(nn, f"BatchNorm{dimension}d")(channels.size, **options, **typed(e, scale))
    return e.module(
        layer,
        "bn",
        buffers=("running_mean", "running_var", "num_batches_tracked"),
        **parts,
        num_batches_tracked=np.zeros((), np.int64),
    )(x)


@rule("InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, *, epsilon: float = 1e-5) -> Expr:
    """PyTorch's own refuse a batch of nothing."""
    shape = e.shape(x)
    if shape is None or not 3 <= len(shape) <= 5 or set(shape[2:]) == {1} or e.dtype(x) not in _WIDE:
        return ops.instance_norm(x, scale, bias, **_eps(epsilon))
    may_be_empty = not shape[0] and e.producer != "pytorch"
    own = ops.instance_norm if may_be_empty else F.instance_norm
    if _made_up(e, scale, 1) and _made_up(e, bias, 0) and not may_be_empty:
        return F.instance_norm(x, **_eps(epsilon))
    weight = e.const(scale)
    if weight is None or e.const(bias) is None:
        return own(x, weight=scale, bias=bias, **_eps(epsilon))
    constructor: Expr = getattr(nn, f"InstanceNorm{len(shape) - 2}d")
    made = constructor(weight.size, **_eps(epsilon), affine=True, **typed(e, scale))
    layer = e.module(made, "norm", weight=scale, bias=bias)
    return ops.unless_empty(layer, x) if may_be_empty else layer(x)


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
    if e.used(1) or e.used(2):
        call = ops.layer_norm_statistics(x, scale, bias, axis, **_eps(epsilon), dtype=dtype(stash_type))
        return Unpack(call)
    shape = _normalized(e, x, scale, axis)
    if bias is not None and _made_up(e, bias, 0):
        bias = None
    if shape is None or (bias is not None and e.shape(bias) != shape):
        return ops.layer_norm(x, scale, bias, axis, **_eps(epsilon))
    if bias is None and _made_up(e, scale, 1):
        return F.layer_norm(x, shape, **_eps(epsilon))
    if e.const(scale) is None or (bias is not None and e.const(bias) is None):
        return F.layer_norm(x, shape, scale, bias, **_eps(epsilon))
    no_bias = {"bias": False} if bias is None else {}
    layer = nn.LayerNorm(_sizes(shape), **_eps(epsilon), **no_bias, **typed(e, scale))
    return e.module(layer, "norm", weight=scale, bias=bias)(x)


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Expr:
    shape = _normalized(e, x, scale, axis)
    if shape is None:
        return ops.rms_norm(x, scale, axis, **_eps(epsilon))
    if e.const(scale) is None:
        return F.rms_norm(x, shape, scale, eps=epsilon)
    layer = nn.RMSNorm(_sizes(shape), eps=epsilon, **typed(e, scale))
    return e.module(layer, "norm", weight=scale)(x)


@rule("GroupNormalization")
def group_norm(
    e: Emitter,
    x: Expr,
    scale: Expr,
    bias: Expr,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    if _made_up(e, scale, 1) and _made_up(e, bias, 0):
        return F.group_norm(x, num_groups, **_eps(epsilon))
    weight = e.const(scale)
    if weight is None or e.const(bias) is None:
        return F.group_norm(x, num_groups, scale, bias, **_eps(epsilon))
    layer = nn.GroupNorm(num_groups, weight.size, **_eps(epsilon), **typed(e, scale))
    return e.module(layer, "norm", weight=scale, bias=bias)(x)


@rule("LRN")
def local_response_norm(
    e: Emitter, x: Expr, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Expr:
    rank, kind = e.rank(x) or 0, e.dtype(x)
    given = {"alpha": alpha, "beta": beta}
    changed = {k: v for k, v in given.items() if v != {"alpha": 1e-4, "beta": 0.75}[k]}
    if size % 2 == 0 or rank < 3 or kind not in _WIDE:
        return ops.local_response_norm(x, size, **changed, **({} if bias == 1 else {"bias": bias}))
    return F.local_response_norm(x, size, **changed, **({} if bias == 1 else {"k": bias}))


@rule("LpNormalization")
def lp_normalize(e: Emitter, x: Expr, *, axis: int = -1, p: int = 2) -> Expr:
    return ops.lp_normalize(x, p, axis)


@rule("MeanVarianceNormalization")
def mean_variance_norm(e: Emitter, x: Expr, *, axes: Sequence[int] = (0, 2, 3)) -> Expr:
    return ops.mean_variance_norm(x, tuple(axes))


def _eps(epsilon: float) -> dict[str, float]:
    return {} if epsilon == 1e-5 else {"eps": epsilon}


def _made_up(e: Emitter, x: Expr, value: float) -> bool:
    """Whether the input is a constant full of `value` that an exporter wrote because the op wants an input."""
    constant = e.const(x)
    return constant is not None and not e.is_weight(x) and bool((constant == value).all())


def _normalized(e: Emitter, x: Expr, scale: Expr, axis: int) -> tuple[int, ...] | None:
    """The shape of the axes from `axis` on, if it is known and the scale has it."""
    shape = e.shape(x)
    sizes = tuple(n for n in e.shape(scale) or () if n is not None)
    if not sizes or len(sizes) != e.rank(scale):
        return None
    rank = None if shape is None else len(shape)
    count = -axis if axis < 0 else None if rank is None else rank - axis
    if count != len(sizes):
        return None
    known = sizes if shape is None else shape[-count:]
    fits = all(n > 1 if m is None else m == n for m, n in zip(known, sizes, strict=True))
    return sizes if fits else None


def _sizes(shape: tuple[int, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape
