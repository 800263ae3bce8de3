"""ONNX's optimizers. The helpers that take one step for one tensor are named alike in every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.errors import InvalidModelError
from onward.spec.training import TRAINING, Adagrad, Adam, Momentum


def steps(
    e: Emitter,
    helper: Callable[..., Expr],
    rate: Expr,
    count: Expr,
    tensors: Sequence[Expr],
    kinds: int,
    **options: Any,
) -> list[Expr]:
    """Call the helper for each optimized tensor: inputs and outputs come kind by kind, not tensor by tensor."""
    if not tensors or len(tensors) % kinds:
        raise InvalidModelError(f"{e.node.op_type}: {len(tensors)} tensors are not {kinds} for each optimized one")
    size = len(tensors) // kinds
    results = [e.unpack(helper(rate, count, *tensors[i::size], **options), kinds - 1) for i in range(size)]
    return [result[kind] for kind in range(kinds - 1) for result in results]


def adam(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Adam) -> list[Expr]:
    return steps(e, ops.adam_step, rate, count, tensors, 4, **vars(p))


def adagrad(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Adagrad) -> list[Expr]:
    return steps(e, ops.adagrad_step, rate, count, tensors, 3, **vars(p))


def momentum(e: Emitter, rate: Expr, count: Expr, *tensors: Expr, p: Momentum) -> list[Expr]:
    numbers = {name: value for name, value in vars(p).items() if name != "mode"}
    return steps(e, ops.momentum_step, rate, count, tensors, 3, **numbers, **options(nesterov=p.is_nesterov))


RULES: dict[str, Rule] = {
    f"{TRAINING}::Adam": adam,
    f"{TRAINING}::Adagrad": adagrad,
    f"{TRAINING}::Momentum": momentum,
}
