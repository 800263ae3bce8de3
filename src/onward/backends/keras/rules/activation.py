"""Activation functions and Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.weights import Part
from onward.backends.keras.target import applied, made, owning, owns, rule
from onward.backends.shared.elementwise import literal
from onward.spec.activation import Along, Dropout, Gelu, LeakyRelu, Scaled


def _function(op: str, name: str, **only: Any) -> None:
    """An activation that Keras has by name; with `only`, of nodes with these attributes."""

    @rule(op)
    def apply(e: Emitter, x: Expr, p: Any = None) -> Expr | None:
        given = [(getattr(p, key), value) for key, value in only.items()]
        single = e.dtype(x) == ir.DataType.FLOAT
        if any(np.float32(a) != np.float32(b) if single else a != b for a, b in given):
            return None
        return applied(e, made(e, x, "Activation", name), x)


_function("Sigmoid", "sigmoid")
_function("Tanh", "tanh")
_function("Softplus", "softplus")
_function("Softsign", "softsign")
_function("Mish", "mish")
_function("HardSwish", "hard_silu")
_function("HardSigmoid", "hard_sigmoid", alpha=1 / 6, beta=0.5)
_function("Selu", "selu", alpha=1.6732632, gamma=1.050701)
_function("Swish", "silu", alpha=1.0)
_function("Celu", "elu", alpha=1.0)


@rule("Relu")
def relu(e: Emitter, x: Expr) -> Expr:
    return applied(e, made(e, x, "ReLU"), x)


@rule("Clip")
def clip(e: Emitter, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr | None:
    bounds = [None if bound is None else literal(e, bound, x) for bound in (low, high)]
    if bounds[0] != 0 or not isinstance(bounds[1], int | float) or bounds[1] <= 0:
        return None
    return applied(e, made(e, x, "ReLU", bounds[1]), x)


@rule("LeakyRelu")
def leaky_relu(e: Emitter, x: Expr, p: LeakyRelu) -> Expr:
    return applied(e, made(e, x, "LeakyReLU", p.alpha), x)


@rule("Elu")
def elu(e: Emitter, x: Expr, p: Scaled) -> Expr:
    return applied(e, made(e, x, "ELU", p.alpha), x)


@rule("Gelu")
def gelu(e: Emitter, x: Expr, p: Gelu) -> Expr | None:
    return applied(e, made(e, x, "Activation", "gelu"), x) if p.approximate == "none" else None


@rule("Softmax")
def softmax(e: Emitter, x: Expr, p: Along) -> Expr:
    return applied(e, made(e, x, "Softmax", *([] if p.axis == -1 else [p.axis])), x)


@rule("PRelu")
def prelu(e: Emitter, x: Expr, slope: Expr) -> Expr | None:
    """One slope for each channel, shared along the axes where the slopes have the length 1."""
    shape, slopes = e.shape(x), e.shape(slope)
    if not owns(e, slope) or shape is None or slopes is None or len(slopes) > len(shape) - 1:
        return None
    full = (1,) * (len(shape) - 1 - len(slopes)) + slopes
    if any(n not in (1, m) for n, m in zip(full, shape[1:], strict=True)):
        return None
    shared = [axis for axis, n in enumerate(full, 1) if n == 1]
    layer = made(e, x, "PReLU", **({"shared_axes": shared} if shared else {}))
    return applied(e, owning(e, layer, "prelu", weight=Part(slope, lambda a: a.reshape(full), f"as {full}")), x)


@rule("Dropout")
def dropout(e: Emitter, x: Expr, ratio: Expr | None = None, training: Expr | None = None, *, p: Dropout) -> Any:
    rate = 0.5 if ratio is None else e.scalar(ratio, 1)
    on = False if training is None else e.scalar(training, 1)
    if e.used(1) or on not in (False, 0) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        return None
    return applied(e, made(e, x, "Dropout", rate), x), None
