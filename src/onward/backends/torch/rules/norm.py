"""Normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.arguments import changed
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_made_up, without_zeros
from onward.backends.shared import norm
from onward.backends.torch.target import TARGET, F, dtype, nn, ops, rule
from onward.backends.torch.window import typed
from onward.spec.norm import LRN, BatchNorm, GroupNorm, LayerNorm, Norm

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


TARGET.rules.take(norm.RULES)


@rule("BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, p: BatchNorm) -> Any:
    if p.training_mode:
        return tuple(e.unpack(ops.batch_norm_train(x, scale, bias, mean, var, p.epsilon, p.momentum), 3))
    parts = {"weight": scale, "bias": bias, "running_mean": mean, "running_var": var}
    dimension = {2: 1, 3: 1, 4: 2, 5: 3}.get(e.rank(x) or 0)
    one_type = len({e.dtype(part) for part in (x, *parts.values())}) == 1
    if not one_type:
        return ops.batch_norm_mixed(x, scale, bias, mean, var, p.epsilon)
    if dimension is None or any(e.const(part) is None for part in parts.values()):
        return F.batch_norm(x, mean, var, scale, bias, eps=p.epsilon)
    channels = e.const(scale)
    assert channels is not None
    options = changed(p, eps="epsilon")
    if abs(p.momentum - 0.9) > 1e-6:
        options["momentum"] = round(1 - p.momentum, 7)
    layer = getattr(nn, f"BatchNorm{dimension}d")(channels.size, **options, **typed(e, scale))
    return e.module(
        layer,
        "bn",
        buffers=("running_mean", "running_var", "num_batches_tracked"),
        **parts,
        num_batches_tracked=np.zeros((), np.int64),
    )(x)


@rule("InstanceNormalization")
def instance_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: Norm) -> Expr:
    """PyTorch's own refuse a batch of nothing."""
    shape, eps = e.shape(x), changed(p, eps="epsilon")
    if shape is None or not 3 <= len(shape) <= 5 or set(shape[2:]) == {1} or e.dtype(x) not in _WIDE:
        return ops.instance_norm(x, scale, bias, **eps)
    may_be_empty = not shape[0] and e.producer != "pytorch"
    own = ops.instance_norm if may_be_empty else F.instance_norm
    if is_made_up(e, scale, 1) and is_made_up(e, bias, 0) and not may_be_empty:
        return F.instance_norm(x, **eps)
    weight = e.const(scale)
    if weight is None or e.const(bias) is None:
        return own(x, weight=scale, bias=bias, **eps)
    constructor: Expr = getattr(nn, f"InstanceNorm{len(shape) - 2}d")
    made = constructor(weight.size, **eps, affine=True, **typed(e, scale))
    layer = e.module(made, "norm", weight=scale, bias=bias)
    return ops.unless_empty(layer, x) if may_be_empty else layer(x)


@rule("LayerNormalization")
def layer_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr | None = None, *, p: LayerNorm) -> Any:
    eps = changed(p, eps="epsilon")
    if e.used(1) or e.used(2):
        return Unpack(ops.layer_norm_statistics(x, scale, bias, p.axis, **eps, dtype=dtype(p.stash_type)))
    shape = _normalized(e, x, scale, p.axis)
    bias = without_zeros(e, bias)
    if shape is None or (bias is not None and e.shape(bias) != shape):
        return ops.layer_norm(x, scale, bias, p.axis, **eps)
    if bias is None and is_made_up(e, scale, 1):
        return F.layer_norm(x, shape, **eps)
    if e.const(scale) is None or (bias is not None and e.const(bias) is None):
        return F.layer_norm(x, shape, scale, bias, **eps)
    no_bias = {"bias": False} if bias is None else {}
    layer = nn.LayerNorm(_sizes(shape), **eps, **no_bias, **typed(e, scale))
    return e.module(layer, "norm", weight=scale, bias=bias)(x)


@rule("RMSNormalization")
def rms_norm(e: Emitter, x: Expr, scale: Expr, p: LayerNorm) -> Expr:
    shape = _normalized(e, x, scale, p.axis)
    if shape is None:
        return ops.rms_norm(x, scale, p.axis, **changed(p, eps="epsilon"))
    if e.const(scale) is None:
        return F.rms_norm(x, shape, scale, eps=p.epsilon)
    layer = nn.RMSNorm(_sizes(shape), eps=p.epsilon, **typed(e, scale))
    return e.module(layer, "norm", weight=scale)(x)


@rule("GroupNormalization")
def group_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, p: GroupNorm) -> Expr:
    eps = changed(p, eps="epsilon")
    if is_made_up(e, scale, 1) and is_made_up(e, bias, 0):
        return F.group_norm(x, p.num_groups, **eps)
    weight = e.const(scale)
    if weight is None or e.const(bias) is None:
        return F.group_norm(x, p.num_groups, scale, bias, **eps)
    layer = nn.GroupNorm(p.num_groups, weight.size, **eps, **typed(e, scale))
    return e.module(layer, "norm", weight=scale, bias=bias)(x)


@rule("LRN")
def local_response_norm(e: Emitter, x: Expr, p: LRN) -> Expr:
    if p.size % 2 == 0 or (e.rank(x) or 0) < 3 or e.dtype(x) not in _WIDE:
        return ops.local_response_norm(x, p.size, **changed(p, "alpha", "beta", "bias"))
    return F.local_response_norm(x, p.size, **changed(p, "alpha", "beta", k="bias"))


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
