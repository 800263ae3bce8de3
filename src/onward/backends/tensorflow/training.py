"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import hint_of, kind_of
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Var
from onward.backends.tensorflow.target import ops, rule
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
    parameters = [Var(hint_of(value), kind_of(value)) for value in body.inputs]
    for value, parameter in zip(body.inputs, parameters, strict=True):
        e.bind(value, parameter)
    with e.nested() as block:
        (y,) = e.graph(body)
    function = e.define("function", parameters, block, [y._force()])
    found = ops.gradients(function, list(inputs[:count]), *inputs[count:])
    return [found[0]] if count == 1 else list(e.unpack(found, count))
