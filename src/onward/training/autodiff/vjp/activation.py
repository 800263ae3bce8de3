"""Gradients of activation functions."""

from __future__ import annotations

import math

from onward.graph.build import Tensor
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


@vjp("Relu")
def relu(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return c.op.where(c.y > 0, g, 0)


@vjp("LeakyRelu")
def leaky_relu(c: Context, g: Tensor, x: Tensor, *, alpha: float) -> Gradients:
    return c.op.where(x > 0, g, g * alpha)


@vjp("PRelu")
def prelu(c: Context, g: Tensor, x: Tensor, slope: Tensor) -> Gradients:
    positive = x > 0
    return c.op.where(positive, g, g * slope), unbroadcast(c.op.where(positive, 0, g * x), slope)


@vjp("ThresholdedRelu")
def thresholded_relu(c: Context, g: Tensor, x: Tensor, *, alpha: float) -> Gradients:
    return c.op.where(x > alpha, g, 0)


@vjp("Elu")
def elu(c: Context, g: Tensor, x: Tensor, *, alpha: float) -> Gradients:
    return c.op.where(x > 0, g, g * (c.y + alpha))


@vjp("Selu")
def selu(c: Context, g: Tensor, x: Tensor, *, alpha: float, gamma: float) -> Gradients:
    return c.op.where(x > 0, g * gamma, g * (c.y + alpha * gamma))


@vjp("Celu")
def celu(c: Context, g: Tensor, x: Tensor, *, alpha: float) -> Gradients:
    return c.op.where(x > 0, g, g * (c.y * (1 / alpha) + 1))


@vjp("Sigmoid")
def sigmoid(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g * c.y * (1 - c.y)


@vjp("HardSigmoid")
def hard_sigmoid(c: Context, g: Tensor, x: Tensor, *, alpha: float, beta: float) -> Gradients:
    return c.op.where(c.op.And(c.y > 0, c.y < 1), g * alpha, 0)


@vjp("HardSwish")
def hard_swish(c: Context, g: Tensor, x: Tensor) -> Gradients:
    between = g * (x * (1 / 3) + 0.5)
    return c.op.where(x >= 3, g, c.op.where(x > -3, between, 0))


@vjp("Swish")
def swish(c: Context, g: Tensor, x: Tensor, *, alpha: float) -> Gradients:
    s = c.op.Sigmoid(x * alpha)
    return g * (s + c.y * alpha * (1 - s))


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
def gelu(c: Context, g: Tensor, x: Tensor, *, approximate: str) -> Gradients:
    op = c.op
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        t = op.Tanh(inner)
        slope = (x * x * (3 * 0.044715) + 1) * math.sqrt(2 / math.pi)
        return g * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * slope)
    share = (op.Erf(x * math.sqrt(0.5)) + 1) * 0.5
    return g * (share + x * op.Exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))


@vjp("Shrink")
def shrink(c: Context, g: Tensor, x: Tensor, *, bias: float, lambd: float) -> Gradients:
    return c.op.where(c.op.Or(x > lambd, x < -lambd), g, 0)


@vjp("Softmax")
def softmax(c: Context, g: Tensor, x: Tensor, *, axis: int) -> Gradients:
    weighted = g * c.y
    return weighted - c.y * c.op.sum(weighted, [axis])


@vjp("LogSoftmax")
def log_softmax(c: Context, g: Tensor, x: Tensor, *, axis: int) -> Gradients:
    return g - c.op.Exp(c.y) * c.op.sum(g, [axis])


no_gradient("constant between its steps", "Hardmax")
