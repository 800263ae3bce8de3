"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Conditional, Expr, Ref
from onward.backends.shared import activation as shared
from onward.backends.shared.elementwise import functions
from onward.backends.tensorflow.dtypes import UNSIGNED, scalar
from onward.backends.tensorflow.target import TARGET, ops, rule, tf
from onward.spec.activation import Along, Dropout, Selu

_D = ir.DataType


rule("Shrink")(shared.shrink)
TARGET.rules.take(
    {
        **functions({"Relu": tf.nn.relu, "Sigmoid": tf.sigmoid, "Tanh": tf.tanh}),
        **functions({"Softplus": tf.nn.softplus, "Softsign": tf.nn.softsign}),
        "LeakyRelu": lambda e, x, p: tf.nn.leaky_relu(x, p.alpha),
        "Elu": lambda e, x, p: _elu(x, p.alpha),
        "Celu": lambda e, x, p: _elu(x, p.alpha, p.alpha),
        "ThresholdedRelu": lambda e, x, p: tf.where(Binary(">", x, p.alpha), x, 0.0),
        "HardSigmoid": lambda e, x, p: tf.clip_by_value(x * p.alpha + p.beta, 0.0, 1.0),
        "HardSwish": lambda e, x: x * (tf.nn.relu6(x + 3) / 6),
        "Swish": lambda e, x, p: tf.nn.silu(x) if p.alpha == 1 else x * tf.sigmoid(x * p.alpha),
        "Mish": lambda e, x: x * tf.tanh(tf.nn.softplus(x)),
        "Gelu": lambda e, x, p: tf.nn.gelu(x, **options(approximate=p.approximate == "tanh")),
        "Hardmax": lambda e, x, p: ops.hardmax(x, p.axis),
    }
)


def _elu(x: Expr, alpha: float, *width: float) -> Expr:
    return tf.nn.elu(x) if alpha == 1 else ops.scaled_elu(x, alpha, *width)


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else tf.where(Binary("<", x, 0), x * slope, x)


@rule("Selu")
def selu(e: Emitter, x: Expr, p: Selu) -> Expr:
    if p.is_usual and e.dtype(x) != _D.DOUBLE:
        return tf.nn.selu(x)
    return Binary("*", p.gamma, _elu(x, p.alpha))


def _along(axis: int) -> dict[str, int]:
    return {} if axis == -1 else {"axis": axis}


@rule("Softmax")
def softmax(e: Emitter, x: Expr, p: Along) -> Expr:
    if e.dtype(x) == _D.FLOAT16 or (e.rank(x) is None and p.axis != -1):
        return ops.softmax_by_steps(x, p.axis)
    return tf.nn.softmax(x, **_along(p.axis))


@rule("LogSoftmax")
def log_softmax(e: Emitter, x: Expr, p: Along) -> Expr:
    if e.rank(x) is None and p.axis != -1:
        return x - tf.reduce_logsumexp(x, axis=p.axis, keepdims=True)
    return tf.nn.log_softmax(x, **_along(p.axis))


@rule("Dropout")
def dropout(e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, p: Dropout) -> Any:
    """On when the model is called with `training=True`, as in Keras, unless the file itself switches it on."""
    rate = 0.5 if ratio is None else scalar(e, ratio, _D.FLOAT)
    switch = False if training is None else scalar(e, training, _D.BOOL)
    active = Ref(e.flags["training"]) if switch is False else switch
    seeded = p.seed is not None and switch is not False
    if e.used(1) or seeded or isinstance(switch, Expr) or isinstance(rate, Expr):
        return shared.dropout_with_mask(e, x, rate, active, p)
    dropped = tf.nn.dropout(x, rate) if rate < 1 else tf.zeros_like(x)
    return (dropped if active is True else Conditional(active, dropped, x)), None
