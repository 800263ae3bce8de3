"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Ref
from onward.backends.shared import training as optimizers
from onward.backends.torch.target import ops, rule, torch

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
    keep = e.let(torch.is_grad_enabled(), "keep", kind="host")
    results = [e.fresh(f"d_{value.name}") for value in body.inputs[:count]]
    node = e.node
    with e.nested() as block:
        variables = [e.fresh(value.name or "x") for value in body.inputs]
        for i, (value, var, given) in enumerate(zip(body.inputs, variables, inputs, strict=True)):
            e.assign(var, ops.differentiable(given) if i < count else given)
            e.bind(value, var)
        (y,) = e.graph(body)
        e.node = node
        found = ops.gradients(y, variables[:count], keep)
        e.assign(results, found if count > 1 else found[0])
    e.compound(("with", torch.enable_grad(), block))
    return [Ref(result) for result in results]
