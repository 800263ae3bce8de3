"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import hint_of, kind_of
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Var
from onward.backends.shared import training as optimizers
from onward.backends.tensorflow.target import ops, rule

DOMAIN = "ai.onnx.preview.training"


@rule(f"{DOMAIN}::Adam")
def adam(e: Emitter, *inputs: Expr, **options: Any) -> list[Expr]:
    return optimizers.adam(e, *inputs, **options)


@rule(f"{DOMAIN}::Adagrad")
def adagrad(e: Emitter, *inputs: Expr, **options: Any) -> list[Expr]:
    return optimizers.adagrad(e, *inputs, **options)


@rule(f"{DOMAIN}::Momentum")
def momentum(e: Emitter, *inputs: Expr, **options: Any) -> list[Expr]:
    return optimizers.momentum(e, *inputs, **options)


@rule("onward::Gradient")
def gradient(e: Emitter, *inputs: Expr, body: ir.Graph, count: int) -> list[Any]:
    """Derivatives of the sum of the body's output with respect to its first `count` inputs."""
    parameters = [Var(hint_of(value), kind_of(value)) for value in body.inputs]
    for value, parameter in zip(body.inputs, parameters, strict=True):
        e.bind(value, parameter)
    with e.nested() as block:
        (y,) = e.graph(body)
    function = e.define("function", parameters, block, [y._force()])
    found = ops.gradients(function, list(inputs[:count]), *inputs[count:])
    return [found[0]] if count == 1 else list(e.unpack(found, count))
