"""Gradients of activation functions and Dropout."""

from __future__ import annotations

import math

from onward.graph.build import Tensor
from onward.spec.activation import Along, Dropout, Gelu, HardSigmoid, LeakyRelu, Scaled, Selu, Shrink
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp
from onward.training.autodiff.vjp.elementwise import constant_of


@vjp("Relu")
def relu(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return c.op.where(c.y > 0, g, 0)


@vjp("LeakyRelu")
def leaky_relu(c: Context, g: Tensor, x: Tensor, p: LeakyRelu) -> Gradients:
    return c.op.where(x > 0, g, g * p.alpha)


@vjp("PRelu")
def prelu(c: Context, g: Tensor, x: Tensor, slope: Tensor) -> Gradients:
    positive = x > 0
    return c.op.where(positive, g, g * slope), unbroadcast(c.op.where(positive, 0, g * x), slope)


@vjp("ThresholdedRelu")
def thresholded_relu(c: Context, g: Tensor, x: Tensor, p: Scaled) -> Gradients:
    return c.op.where(x > p.alpha, g, 0)


@vjp("Elu")
def elu(c: Context, g: Tensor, x: Tensor, p: Scaled) -> Gradients:
    return c.op.where(x > 0, g, g * (c.y + p.alpha))


@vjp("Selu")
def selu(c: Context, g: Tensor, x: Tensor, p: Selu) -> Gradients:
    return c.op.where(x > 0, g * p.gamma, g * (c.y + p.alpha * p.gamma))


@vjp("Celu")
def celu(c: Context, g: Tensor, x: Tensor, p: Scaled) -> Gradients:
    return c.op.where(x > 0, g, g * (c.y * (1 / p.alpha) + 1))


@vjp("Sigmoid")
def sigmoid(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.y * (1 - c.y)


@vjp("HardSigmoid")
def hard_sigmoid(c: Context, g: Tensor, x: Tensor, p: HardSigmoid) -> Gradients:
    return c.op.where(c.op.And(c.y > 0, c.y < 1), g * p.alpha, 0)


@vjp("HardSwish")
def hard_swish(c: Context, g: Tensor, x: Tensor) -> Gradients:
    between = g * (x * (1 / 3) + 0.5)
    return c.op.where(x >= 3, g, c.op.where(x > -3, between, 0))


@vjp("Swish")
def swish(c: Context, g: Tensor, x: Tensor, p: Scaled) -> Gradients:
    s = c.op.Sigmoid(x * p.alpha)
    return g * (s + c.y * p.alpha * (1 - s))


@vjp("Tanh")
def tanh(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * (1 - c.y * c.y)


@vjp("Softplus")
def softplus(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.op.Sigmoid(x)


@vjp("Softsign")
def softsign(c: Context, g: Tensor, x: Tensor) -> Gradients:
    rest = c.op.Reciprocal(c.op.Abs(x) + 1)
    return g * rest * rest


@vjp("Mish")
def mish(c: Context, g: Tensor, x: Tensor) -> Gradients:
    t, s = c.op.Tanh(c.op.Softplus(x)), c.op.Sigmoid(x)
    return g * (t + x * s * (1 - t * t))


@vjp("Gelu")
def gelu(c: Context, g: Tensor, x: Tensor, p: Gelu) -> Gradients:
    op = c.op
    if p.approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        t = op.Tanh(inner)
        slope = (x * x * (3 * 0.044715) + 1) * math.sqrt(2 / math.pi)
        return g * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * slope)
    share = (op.Erf(x * math.sqrt(0.5)) + 1) * 0.5
    return g * (share + x * op.Exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))


@vjp("Shrink")
def shrink(c: Context, g: Tensor, x: Tensor, p: Shrink) -> Gradients:
    return c.op.where(c.op.Or(x > p.lambd, x < -p.lambd), g, 0)


@vjp("Softmax")
def softmax(c: Context, g: Tensor, x: Tensor, p: Along) -> Gradients:
    weighted = g * c.y
    return weighted - c.y * c.op.sum(weighted, [p.axis])


@vjp("LogSoftmax")
def log_softmax(c: Context, g: Tensor, x: Tensor, p: Along) -> Gradients:
    return g - c.op.Exp(c.y) * c.op.sum(g, [p.axis])


@vjp("Dropout")
def dropout(
    c: Context,
    g: Tensor,
    x: Tensor,
    ratio: Tensor | None = None,
    training_mode: Tensor | None = None,
    *,
    p: Dropout,
) -> Gradients:
    """By the mask of the very same draw. What is kept was divided by its probability."""
    op = c.op
    known = None if training_mode is None else constant_of(training_mode)
    if training_mode is None or (known is not None and not known.any()):
        return g
    kept = 1 - (op.like(0.5, g) if ratio is None else ratio.cast(g.dtype))
    factor = op.Reciprocal(op.where(kept > 0, kept, 1))
    if known is None:
        factor = op.Where(training_mode, factor, op.like(1, factor))
    return g * (c.optional_output(1).cast(g.dtype) * factor)


no_gradient("constant between its steps", "Hardmax")
