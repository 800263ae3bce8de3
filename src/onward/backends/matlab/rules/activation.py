"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr, Name
from onward.backends.matlab.target import axis_dim, ops, rule, take
from onward.backends.shared.elementwise import in_float
from onward.errors import UnsupportedError
from onward.spec.activation import Dropout, Gelu, HardSigmoid, Scaled, Selu, Shrink

_D = ir.DataType

take(
    {
        "Relu": lambda e, x: ops.relu(x),
        "Sigmoid": lambda e, x: ops.sigmoid(x),
        "Tanh": lambda e, x: Name("tanh")(x),
        "Softplus": lambda e, x: ops.softplus(x),
        "Softsign": lambda e, x: x / (Name("abs")(x) + 1),
        "Mish": lambda e, x: x * Name("tanh")(ops.softplus(x)),
        "HardSwish": lambda e, x: x * ops.hard_sigmoid(x, 1 / 6, 0.5),
        "LeakyRelu": lambda e, x, p: ops.leaky_relu(x, p.alpha),
        "Softmax": lambda e, x, p: ops.softmax(x, axis_dim(e, x, p.axis)),
        "LogSoftmax": lambda e, x, p: ops.log_softmax(x, axis_dim(e, x, p.axis)),
        "Hardmax": lambda e, x, p: ops.hardmax(x, axis_dim(e, x, p.axis)),
    }
)


@rule("Elu")
def elu(e: Emitter, x: Expr, p: Scaled) -> Expr:
    return ops.elu(x, p.alpha)


@rule("Celu")
def celu(e: Emitter, x: Expr, p: Scaled) -> Expr:
    return ops.celu(x, p.alpha)


@rule("ThresholdedRelu")
def thresholded_relu(e: Emitter, x: Expr, p: Scaled) -> Expr:
    return x * Binary(">", x, Name("single")(p.alpha) if e.dtype(x) != _D.DOUBLE else p.alpha)


@rule("Swish")
def swish(e: Emitter, x: Expr, p: Scaled) -> Expr:
    return x * ops.sigmoid(x if p.alpha == 1 else x * p.alpha)


@rule("Gelu")
def gelu(e: Emitter, x: Expr, p: Gelu) -> Expr:
    return ops.gelu_tanh(x) if p.approximate == "tanh" else ops.gelu(x)


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr:
    return ops.prelu(x, slope)


@rule("Selu")
def selu(e: Emitter, x: Expr, p: Selu) -> Expr:
    return Binary("*", p.gamma, ops.elu(x, p.alpha))


@rule("HardSigmoid")
def hard_sigmoid(e: Emitter, x: Expr, p: HardSigmoid) -> Expr:
    return ops.hard_sigmoid(x, p.alpha, p.beta)


@rule("Shrink")
def shrink(e: Emitter, x: Expr, p: Shrink) -> Expr:
    return in_float(e, x, lambda y: ops.shrink(y, p.lambd, p.bias))


@rule("Dropout")
def dropout(e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, p: Dropout) -> Any:
    """Off, unless the file itself switches it on."""
    switch = False if training is None else e.scalar(training, 1)
    if switch is False:
        return x, Name("true")(Name("size")(x)) if e.used(1) else None
    rate = 0.5 if ratio is None else e.scalar(ratio, 1)
    active = training if switch is None else switch
    if p.seed is not None:
        raise UnsupportedError("a Dropout with a seed: MATLAB and Octave draw other numbers")
    return e.unpack(ops.dropout(x, ratio if rate is None else rate, active), 2)
