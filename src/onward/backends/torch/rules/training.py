"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Ref
from onward.backends.shared import training as shared
from onward.backends.torch.target import TARGET, ops, rule, torch
from onward.spec.training import Gradient

TARGET.rules.take(shared.RULES)


@rule("onward::Gradient")
def gradient(e: Emitter, *inputs: Expr, p: Gradient) -> list[Any]:
    keep = e.let(torch.is_grad_enabled(), "keep", kind="host")
    results = [e.fresh(f"d_{value.name}") for value in p.body.inputs[: p.count]]
    node = e.node
    with e.nested() as block:
        variables = [e.fresh(value.name or "x") for value in p.body.inputs]
        for i, (value, var, given) in enumerate(zip(p.body.inputs, variables, inputs, strict=True)):
            e.assign(var, ops.differentiable(given) if i < p.count else given)
            e.bind(value, var)
        (y,) = e.graph(p.body)
        e.node = node
        found = ops.gradients(y, variables[: p.count], keep)
        e.assign(results, found if p.count > 1 else found[0])
    e.compound(("with", torch.enable_grad(), block))
    return [Ref(result) for result in results]
