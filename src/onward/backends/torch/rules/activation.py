"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Name
from onward.backends.emit.weights import Part
from onward.backends.shared import activation as shared
from onward.backends.shared.elementwise import functions, is_float
from onward.backends.torch.dtypes import UNSIGNED
from onward.backends.torch.target import TARGET, F, nn, ops, rule, torch
from onward.backends.torch.window import typed
from onward.graph.origin import origin
from onward.spec.activation import Along, Dropout, HardSigmoid, Selu, Shrink

_D = ir.DataType
_WIDE = (_D.FLOAT, _D.DOUBLE)


TARGET.rules.take(
    {
        **functions({"Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh}),
        **functions({"Mish": F.mish, "Softsign": F.softsign}),
        "LeakyRelu": lambda e, x, p: F.leaky_relu(x, p.alpha),
        "Elu": lambda e, x, p: F.elu(x, **_scaled(p.alpha)),
        "Celu": lambda e, x, p: F.celu(x, **_scaled(p.alpha)),
        "ThresholdedRelu": lambda e, x, p: torch.where(Binary(">", x, p.alpha), x, 0.0),
        "Swish": lambda e, x, p: F.silu(x) if p.alpha == 1 else x * torch.sigmoid(x * p.alpha),
        "Gelu": lambda e, x, p: F.gelu(x, **({"approximate": "tanh"} if p.approximate == "tanh" else {})),
        "LogSoftmax": lambda e, x, p: torch.log_softmax(x, dim=p.axis),
    }
)


def _scaled(alpha: float) -> dict[str, float]:
    return {} if alpha == 1 else {"alpha": alpha}


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


@rule("Selu")
def selu(e: Emitter, x: Expr, p: Selu) -> Expr:
    if p.is_usual and e.dtype(x) != _D.DOUBLE:
        return F.selu(x)
    return Binary("*", p.gamma, F.elu(x, **_scaled(p.alpha)))


@rule("HardSigmoid")
def hard_sigmoid(e: Emitter, x: Expr, p: HardSigmoid) -> Expr:
    if p.is_usual and e.dtype(x) != _D.DOUBLE:
        return F.hardsigmoid(x)
    return torch.clamp(x * p.alpha + p.beta, 0.0, 1.0)


@rule("HardSwish")
def hard_swish(e: Emitter, x: Expr) -> Expr:
    """PyTorch's own overflows beyond a sixth of the largest number, as what it exports and what is written out does."""
    if e.producer == "pytorch" or origin(e.node).op_type != "HardSwish" or e.dtype(x) not in _WIDE:
        return F.hardswish(x)
    if e.dtype(x) == _D.DOUBLE:  # the gradient of PyTorch's hardsigmoid has a sixth in single precision
        return x * torch.clamp(x / 6 + 0.5, 0, 1)
    return x * F.hardsigmoid(x)


@rule("Softplus")
def softplus(e: Emitter, x: Expr) -> Expr:
    """PyTorch takes softplus(x) for x above 20, which is exact in single precision only."""
    return F.softplus(x, threshold=40.0) if e.dtype(x) == _D.DOUBLE else F.softplus(x)


@rule("Shrink")
def shrink(e: Emitter, x: Expr, p: Shrink) -> Expr:
    """PyTorch's own keep NaN, of which ONNX's definition makes zero: it is on neither side of the limits."""
    if e.producer == "pytorch" and is_float(e, x) and p.lambd >= 0:
        if p.bias == 0:
            return F.hardshrink(x, p.lambd)
        if p.bias == p.lambd:
            return F.softshrink(x, p.lambd)
    return shared.shrink(e, x, p)


@rule("Softmax")
def softmax(e: Emitter, x: Expr, p: Along) -> Expr:
    return ops.half_precision_softmax(x, p.axis) if e.dtype(x) == _D.FLOAT16 else torch.softmax(x, dim=p.axis)


@rule("Hardmax")
def hardmax(e: Emitter, x: Expr, p: Along) -> Expr:
    shape = e.shape(x)
    if shape is None or not shape[p.axis]:
        return ops.hardmax(x, p.axis)
    return torch.zeros_like(x).scatter(p.axis, x.argmax(dim=p.axis, keepdim=True), 1.0)


@rule("Dropout")
def dropout(e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, p: Dropout) -> Any:
    """Off in `eval()` and on in `train()`, as in PyTorch, unless the file itself switches it on."""
    rate = 0.5 if ratio is None else _number(e, ratio)
    switch = False if training is None else _number(e, training)
    active = Name("self").training if switch is False else switch
    if e.used(1) or (p.seed is not None and switch is not False):
        return shared.dropout_with_mask(e, x, rate, active, p)
    if isinstance(rate, float) and switch is False:
        return e.module(nn.Dropout(rate), "dropout")(x), None
    return F.dropout(x, p=rate, training=active), None


def _number(e: Emitter, x: Expr) -> Any:
    """A scalar input as a Python number, read from the tensor if it is computed when the model runs."""
    found = e.scalar(x, 1)
    return x.item() if found is None else found
