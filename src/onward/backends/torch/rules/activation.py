"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Name
from onward.backends.emit.weights import Part
from onward.backends.torch.dtypes import UNSIGNED, number
from onward.backends.torch.rules.elementwise import is_float
from onward.backends.torch.target import F, dtype, nn, ops, rule, torch
from onward.backends.torch.window import typed
from onward.graph.origin import origin

_D = ir.DataType
_WIDE = (_D.FLOAT, _D.DOUBLE)


@rule("Relu")
def relu(e: Emitter, x: Expr) -> Expr:
    return F.relu(x)


@rule("Sigmoid")
def sigmoid(e: Emitter, x: Expr) -> Expr:
    return torch.sigmoid(x)


@rule("Tanh")
def tanh(e: Emitter, x: Expr) -> Expr:
    return torch.tanh(x)


@rule("LeakyRelu")
def leaky_relu(e: Emitter, x: Expr, *, alpha: float = 0.01) -> Expr:
    return F.leaky_relu(x, number(e, x, alpha))


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr:
    if e.dtype(x) in UNSIGNED:
        return x
    if is_float(e, x) and e.const(slope) is not None and (channels := _slope_channels(e, x, slope)):
        flat = Part(slope, lambda w: w.reshape(-1), "flat")
        return e.module(nn.PReLU(channels, **typed(e, x)), "prelu", weight=flat)(x)
    return torch.where(x < 0, x * slope, x)


def _slope_channels(e: Emitter, x: Expr, slope: Expr) -> int | None:
    """How many slopes there are if they are one for all, or one for each of dimension 1, as `nn.PReLU` has them."""
    rank, shape = e.rank(x), e.shape(slope)
    if rank is None or shape is None or None in shape or len(shape) > rank:
        return None
    sizes = [1] * (rank - len(shape)) + [int(n) for n in shape if n is not None]
    if all(n == 1 for i, n in enumerate(sizes) if i != 1):
        return sizes[1] if rank > 1 else 1
    return None


@rule("Elu")
def elu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return F.elu(x) if alpha == 1 else F.elu(x, alpha=number(e, x, alpha))


@rule("Selu")
def selu(e: Emitter, x: Expr, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Expr:
    usual = np.float32(alpha) == np.float32(1.6732632) and np.float32(gamma) == np.float32(1.050701)
    if usual and e.dtype(x) != _D.DOUBLE:
        return F.selu(x)
    return Binary("*", number(e, x, gamma), elu(e, x, alpha=alpha))


@rule("Celu")
def celu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return F.celu(x) if alpha == 1 else F.celu(x, alpha=number(e, x, alpha))


@rule("ThresholdedRelu")
def thresholded_relu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return torch.where(Binary(">", x, number(e, x, alpha)), x, 0.0)


@rule("HardSigmoid")
def hard_sigmoid(e: Emitter, x: Expr, *, alpha: float = 0.2, beta: float = 0.5) -> Expr:
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5 and e.dtype(x) != _D.DOUBLE:
        return F.hardsigmoid(x)
    return torch.clamp(x * number(e, x, alpha) + number(e, x, beta), 0.0, 1.0)


@rule("HardSwish")
def hard_swish(e: Emitter, x: Expr) -> Expr:
    """PyTorch's own overflows beyond a sixth of the largest number, as what it exports and what is written out does."""
    if e.producer == "pytorch" or origin(e.node).op_type != "HardSwish" or e.dtype(x) not in _WIDE:
        return F.hardswish(x)
    if e.dtype(x) == _D.DOUBLE:  # the gradient of PyTorch's hardsigmoid has a sixth in single precision
        return x * torch.clamp(x / 6 + 0.5, 0, 1)
    return x * F.hardsigmoid(x)


@rule("Swish")
def swish(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return F.silu(x) if alpha == 1 else x * torch.sigmoid(x * number(e, x, alpha))


@rule("Mish")
def mish(e: Emitter, x: Expr) -> Expr:
    return F.mish(x)


@rule("Gelu")
def gelu(e: Emitter, x: Expr, *, approximate: str = "none") -> Expr:
    return F.gelu(x, approximate="tanh") if approximate == "tanh" else F.gelu(x)


@rule("Softplus")
def softplus(e: Emitter, x: Expr) -> Expr:
    """PyTorch takes softplus(x) for x above 20, which is exact in single precision only."""
    return F.softplus(x, threshold=40.0) if e.dtype(x) == _D.DOUBLE else F.softplus(x)


@rule("Softsign")
def softsign(e: Emitter, x: Expr) -> Expr:
    return F.softsign(x)


@rule("Shrink")
def shrink(e: Emitter, x: Expr, *, lambd: float = 0.5, bias: float = 0.0) -> Expr:
    """PyTorch's own keep NaN, of which ONNX's definition makes zero: it is on neither side of the limits."""
    if is_float(e, x):
        limit, by = number(e, x, lambd), number(e, x, bias)
        if e.producer != "pytorch":
            return ops.shrink(x, limit, by)
        if by == 0 and limit >= 0:
            return F.hardshrink(x, limit)
        if by == limit >= 0:
            return F.softshrink(x, limit)
        return ops.shrink(x, limit, by)
    return ops.shrink(x.to(torch.float64), lambd, bias).to(dtype(e.dtype(x) or _D.INT64))


@rule("Softmax")
def softmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    if e.dtype(x) == _D.FLOAT16:
        return ops.half_precision_softmax(x, axis)
    return torch.softmax(x, dim=axis)


@rule("LogSoftmax")
def log_softmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    return torch.log_softmax(x, dim=axis)


@rule("Hardmax")
def hardmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    shape = e.shape(x)
    if shape is None or not shape[axis]:
        return ops.hardmax(x, axis)
    return torch.zeros_like(x).scatter(axis, x.argmax(dim=axis, keepdim=True), 1.0)


@rule("Dropout")
def dropout(
    e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, seed: int | None = None
) -> Any:
    """Off in `eval()` and on in `train()`, as in PyTorch, unless the file itself switches it on."""
    rate = 0.5 if ratio is None else _number(e, ratio)
    switch = False if training is None else _number(e, training)
    active = Name("self").training if switch is False else switch
    if e.used(1) or (seed is not None and switch is not False):
        seeded = {} if seed is None else {"seed": seed}
        return tuple(e.unpack(ops.dropout_with_mask(x, rate, active, **seeded), 2))
    if isinstance(rate, float) and switch is False:
        return e.module(nn.Dropout(rate), "dropout")(x), None
    return F.dropout(x, p=rate, training=active), None


def _number(e: Emitter, x: Expr) -> Any:
    """A scalar input as a Python number, read from the tensor if it is computed when the model runs."""
    found = e.scalar(x, 1)
    return x.item() if found is None else found
