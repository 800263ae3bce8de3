"""ONNX's optimizers, and gradients inside a model."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.bodies import hint_of, kind_of
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Var
from onward.backends.shared import training as shared
from onward.backends.tensorflow.target import TARGET, ops, rule
from onward.spec.training import Gradient

TARGET.rules.take(shared.RULES)


@rule("onward::Gradient")
def gradient(e: Emitter, *inputs: Expr, p: Gradient) -> list[Any]:
    parameters = [Var(hint_of(value), kind_of(value)) for value in p.body.inputs]
    for value, parameter in zip(p.body.inputs, parameters, strict=True):
        e.bind(value, parameter)
    with e.nested() as block:
        (y,) = e.graph(p.body)
    function = e.define("function", parameters, block, [y._force()])
    found = ops.gradients(function, list(inputs[: p.count]), *inputs[p.count :])
    return [found[0]] if p.count == 1 else list(e.unpack(found, p.count))
