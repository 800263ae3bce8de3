"""Activations."""

from __future__ import annotations

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("Relu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Softsign")
def named_alike(op: Writer, x: Tensor) -> Tensor:
    return op.many(op.operation.type, 1, x)[0]


@rule("Relu6")
def relu6(op: Writer, x: Tensor) -> Tensor:
    return op.Clip(x, op.like(0, x), op.like(6, x))


@rule("LeakyRelu")
def leaky_relu(op: Writer, x: Tensor, *, alpha: float = 0.2) -> Tensor:
    return op.LeakyRelu(x, alpha=alpha)


@rule("Softmax")
def softmax(op: Writer, x: Tensor) -> Tensor:
    return op.Softmax(x, axis=-1)


@rule("LogSoftmax")
def log_softmax(op: Writer, x: Tensor) -> Tensor:
    return op.LogSoftmax(x, axis=-1)
