"""ONNX's optimizers."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.matlab.target import ops, rule
from onward.backends.shared.training import steps
from onward.spec.training import TRAINING, Adagrad, Adam, Momentum


@rule(f"{TRAINING}::Adam")
def adam(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Adam) -> list[Expr]:
    norms = p.norm_coefficient, p.norm_coefficient_post

    def step(*inputs: Any) -> Expr:
        return ops.adam_step(*inputs, p.alpha, p.beta, p.epsilon, *norms)

    return steps(e, step, rate, count, tensors, 4)


@rule(f"{TRAINING}::Adagrad")
def adagrad(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Adagrad) -> list[Expr]:
    def step(*inputs: Any) -> Expr:
        return ops.adagrad_step(*inputs, p.decay_factor, p.epsilon, p.norm_coefficient)

    return steps(e, step, rate, count, tensors, 3)


@rule(f"{TRAINING}::Momentum")
def momentum(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Momentum) -> list[Expr]:
    def step(*inputs: Any) -> Expr:
        return ops.momentum_step(*inputs, p.alpha, p.beta, p.norm_coefficient, p.is_nesterov)

    return steps(e, step, rate, count, tensors, 3)
