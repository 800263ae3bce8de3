"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Expr
from onward.backends.jax.dtypes import UNSIGNED
from onward.backends.jax.rules.random import key
from onward.backends.jax.target import KEYS, TARGET, dtype, jax, jnp, ops, rule
from onward.backends.shared import activation as shared
from onward.backends.shared.elementwise import functions
from onward.spec.activation import Along, Dropout, HardSigmoid, Selu

_D = ir.DataType

rule("Shrink")(shared.shrink)
TARGET.rules.take(
    {
        **functions({"Relu": jax.nn.relu, "Sigmoid": jax.nn.sigmoid, "Tanh": jnp.tanh, "Mish": jax.nn.mish}),
        **functions({"Softplus": jax.nn.softplus, "Softsign": jax.nn.soft_sign}),
        "LeakyRelu": lambda e, x, p: jax.nn.leaky_relu(x, p.alpha),
        "Elu": lambda e, x, p: jax.nn.elu(x, *_scaled(p.alpha)),
        "Celu": lambda e, x, p: jax.nn.celu(x, *_scaled(p.alpha)),
        "ThresholdedRelu": lambda e, x, p: jnp.where(Binary(">", x, p.alpha), x, 0.0),
        "HardSwish": lambda e, x: jax.nn.hard_swish(x),
        "Swish": lambda e, x, p: jax.nn.silu(x) if p.alpha == 1 else x * jax.nn.sigmoid(x * p.alpha),
        "Gelu": lambda e, x, p: jax.nn.gelu(x, **({} if p.approximate == "tanh" else {"approximate": False})),
        "Softmax": lambda e, x, p: jax.nn.softmax(x, **_along(p.axis)),
        "LogSoftmax": lambda e, x, p: jax.nn.log_softmax(x, **_along(p.axis)),
    }
)


def _scaled(alpha: float) -> list[float]:
    return [] if alpha == 1 else [alpha]


def _along(axis: int) -> dict[str, int]:
    return {} if axis == -1 else {"axis": axis}


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else jnp.where(Binary("<", x, 0), x * slope, x)


@rule("Selu")
def selu(e: Emitter, x: Expr, p: Selu) -> Expr:
    if p.is_usual and e.dtype(x) != _D.DOUBLE:
        return jax.nn.selu(x)
    return Binary("*", p.gamma, jax.nn.elu(x, *_scaled(p.alpha)))


@rule("HardSigmoid")
def hard_sigmoid(e: Emitter, x: Expr, p: HardSigmoid) -> Expr:
    if p.is_usual and e.dtype(x) != _D.DOUBLE:
        return jax.nn.hard_sigmoid(x)
    return jnp.clip(x * p.alpha + p.beta, 0.0, 1.0)


@rule("Hardmax")
def hardmax(e: Emitter, x: Expr, p: Along) -> Expr:
    return ops.hardmax(x, p.axis)


@rule("Dropout")
def dropout(e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, p: Dropout) -> Any:
    """Off, unless the file itself switches it on."""
    switch = False if training is None else e.scalar(training, 1)
    if switch is False:
        return x, jnp.ones_like(x, dtype=dtype(_D.BOOL)) if e.used(1) else None
    rate = 0.5 if ratio is None else e.scalar(ratio, 1)
    active = training if switch is None else switch
    amount = ratio if rate is None else rate
    if KEYS not in e.flags or p.seed is not None:
        return shared.dropout_with_mask(e, x, amount, active, p)
    if active is True and not e.used(1):
        return ops.dropout(x, amount, key(e)), None
    return shared.dropout_with_mask(e, x, amount, active, p, key=key(e))
