"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.bodies import hint_of, kind_of
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name, Var
from onward.backends.jax.target import TARGET, jax, rule
from onward.backends.shared import training as shared
from onward.spec.training import Gradient

TARGET.rules.take(shared.RULES)


@rule("onward::Gradient")
def gradient(e: Emitter, *inputs: Expr, p: Gradient) -> list[Any]:
    parameters = [Var(hint_of(value), kind_of(value)) for value in p.body.inputs]
    for value, parameter in zip(p.body.inputs, parameters, strict=True):
        e.bind(value, parameter)
    with e.nested() as block:
        (y,) = e.graph(p.body)
    function = e.define("function", parameters, block, [y._force().sum()])
    if p.count == 1:
        return [jax.grad(function)(*inputs)]
    return list(e.unpack(jax.grad(function, argnums=Name("tuple")(Name("range")(p.count)))(*inputs), p.count))
