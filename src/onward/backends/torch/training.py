"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Ref
from onward.backends.torch.target import ops, rule, torch
from onward.errors import InvalidModelError

DOMAIN = "ai.onnx.preview.training"


def _steps(
    e: Emitter, helper: Expr, rate: Expr, count: Expr, tensors: Sequence[Expr], kinds: int, **options: Any
) -> list[Expr]:
    """Call the helper for each optimized tensor: inputs and outputs come kind by kind, not tensor by tensor."""
    if not tensors or len(tensors) % kinds:
        raise InvalidModelError(f"{e.node.op_type}: {len(tensors)} tensors are not {kinds} for each optimized one")
    size = len(tensors) // kinds
    results = [e.unpack(helper(rate, count, *tensors[i::size], **options), kinds - 1) for i in range(size)]
    return [result[kind] for kind in range(kinds - 1) for result in results]


@rule(f"{DOMAIN}::Adam")
def adam(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, **options: float) -> list[Expr]:
    return _steps(e, ops.adam_step, rate, count, tensors, 4, **options)


@rule(f"{DOMAIN}::Adagrad")
def adagrad(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, **options: float) -> list[Expr]:
    return _steps(e, ops.adagrad_step, rate, count, tensors, 3, **options)


@rule(f"{DOMAIN}::Momentum")
def momentum(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, mode: str, **options: float) -> list[Expr]:
    if mode not in ("standard", "nesterov"):
        raise InvalidModelError(f"Momentum: mode is {mode!r}, not standard or nesterov")
    nesterov = {"nesterov": True} if mode == "nesterov" else {}
    return _steps(e, ops.momentum_step, rate, count, tensors, 3, **options, **nesterov)


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
