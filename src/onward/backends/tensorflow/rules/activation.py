"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Binary, Conditional, Expr, Ref
from onward.backends.tensorflow.dtypes import UNSIGNED, dtype_of, is_float, number, scalar
from onward.backends.tensorflow.target import dtype, ops, rule, tf

_D = ir.DataType


def _function(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr) -> Expr:
        return function(x)


_function("Relu", tf.nn.relu)
_function("Sigmoid", tf.sigmoid)
_function("Tanh", tf.tanh)
_function("Softplus", tf.nn.softplus)
_function("Softsign", tf.nn.softsign)


@rule("LeakyRelu")
def leaky_relu(e: Emitter, x: Expr, *, alpha: float = 0.01) -> Expr:
    return tf.nn.leaky_relu(x, number(e, x, alpha))


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr:
    return x if e.dtype(x) in UNSIGNED else tf.where(Binary("<", x, 0), x * slope, x)


@rule("Elu")
def elu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return tf.nn.elu(x) if alpha == 1 else ops.scaled_elu(x, number(e, x, alpha))


@rule("Selu")
def selu(e: Emitter, x: Expr, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Expr:
    usual = np.float32(alpha) == np.float32(1.6732632) and np.float32(gamma) == np.float32(1.050701)
    if usual and e.dtype(x) != _D.DOUBLE:
        return tf.nn.selu(x)
    return Binary("*", number(e, x, gamma), elu(e, x, alpha=alpha))


@rule("Celu")
def celu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    by = number(e, x, alpha)
    return tf.nn.elu(x) if alpha == 1 else ops.scaled_elu(x, by, by)


@rule("ThresholdedRelu")
def thresholded_relu(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return tf.where(Binary(">", x, number(e, x, alpha)), x, 0.0)


@rule("HardSigmoid")
def hard_sigmoid(e: Emitter, x: Expr, *, alpha: float = 0.2, beta: float = 0.5) -> Expr:
    return tf.clip_by_value(x * number(e, x, alpha) + number(e, x, beta), 0.0, 1.0)


@rule("HardSwish")
def hard_swish(e: Emitter, x: Expr) -> Expr:
    return x * (tf.nn.relu6(x + 3) / 6)


@rule("Swish")
def swish(e: Emitter, x: Expr, *, alpha: float = 1.0) -> Expr:
    return tf.nn.silu(x) if alpha == 1 else x * tf.sigmoid(x * number(e, x, alpha))


@rule("Mish")
def mish(e: Emitter, x: Expr) -> Expr:
    return x * tf.tanh(tf.nn.softplus(x))


@rule("Gelu")
def gelu(e: Emitter, x: Expr, *, approximate: str = "none") -> Expr:
    return tf.nn.gelu(x, approximate=True) if approximate == "tanh" else tf.nn.gelu(x)


@rule("Shrink")
def shrink(e: Emitter, x: Expr, *, lambd: float = 0.5, bias: float = 0.0) -> Expr:
    if is_float(e, x):
        return ops.shrink(x, number(e, x, lambd), number(e, x, bias))
    return tf.cast(ops.shrink(tf.cast(x, tf.float64), lambd, bias), dtype(dtype_of(e, x)))


def _along(axis: int) -> dict[str, int]:
    return {} if axis == -1 else {"axis": axis}


@rule("Softmax")
def softmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    if e.dtype(x) == _D.FLOAT16 or (e.rank(x) is None and axis != -1):
        return ops.softmax_by_steps(x, axis)
    return tf.nn.softmax(x, **_along(axis))


@rule("LogSoftmax")
def log_softmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    if e.rank(x) is None and axis != -1:
        return x - tf.reduce_logsumexp(x, axis=axis, keepdims=True)
    return tf.nn.log_softmax(x, **_along(axis))


@rule("Hardmax")
def hardmax(e: Emitter, x: Expr, *, axis: int = -1) -> Expr:
    return ops.hardmax(x, axis)


@rule("Dropout")
def dropout(
    e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, seed: int | None = None
) -> Any:
    """On when the model is called with `training=True`, as in Keras, unless the file itself switches it on."""
    rate = 0.5 if ratio is None else scalar(e, ratio, _D.FLOAT)
    switch = False if training is None else scalar(e, training, _D.BOOL)
    active = Ref(e.flags["training"]) if switch is False else switch
    if e.used(1) or (seed is not None and switch is not False) or isinstance(switch, Expr) or isinstance(rate, Expr):
        seeded = {} if seed is None else {"seed": seed}
        return tuple(e.unpack(ops.dropout_with_mask(x, rate, active, **seeded), 2))
    dropped = tf.nn.dropout(x, rate) if rate < 1 else tf.zeros_like(x)
    return (dropped if active is True else Conditional(active, dropped, x)), None
