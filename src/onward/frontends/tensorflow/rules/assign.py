"""Ops that change variables: assignments, and the steps of TensorFlow's own optimizers."""

from __future__ import annotations

from collections.abc import Sequence

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

Nothing = Sequence[Value]


def _now(op: Writer, *variables: Variable) -> list[Tensor]:
    return [op.translator.weight(variable) for variable in variables]


def _let(op: Writer, changes: dict[Variable, Tensor]) -> Nothing:
    for variable, tensor in changes.items():
        op.translator.assign(variable, tensor)
    return []


@rule("AssignVariableOp")
def assign(op: Writer, variable: Variable, value: Tensor) -> Nothing:
    return _let(op, {variable: value})


@rule("AssignAddVariableOp")
def assign_add(op: Writer, variable: Variable, value: Tensor) -> Nothing:
    return _let(op, {variable: _now(op, variable)[0] + value})


@rule("AssignSubVariableOp")
def assign_sub(op: Writer, variable: Variable, value: Tensor) -> Nothing:
    return _let(op, {variable: _now(op, variable)[0] - value})


def _scattered(op: Writer, variable: Variable, indices: Tensor, updates: Tensor, reduction: str) -> Nothing:
    rows = op.unsqueeze(op.flat(op.int64(indices)), [1])
    (before,) = _now(op, variable)
    shape = [-1, *variable.array.shape[1:]]
    after = op.ScatterND(before, rows, op.Reshape(updates, op.ints(shape)), reduction=reduction)
    return _let(op, {variable: after})


@rule("ResourceScatterAdd")
def scatter_add(op: Writer, variable: Variable, indices: Tensor, updates: Tensor) -> Nothing:
    return _scattered(op, variable, indices, updates, "add")


@rule("ResourceScatterSub")
def scatter_sub(op: Writer, variable: Variable, indices: Tensor, updates: Tensor) -> Nothing:
    return _scattered(op, variable, indices, -updates, "add")


@rule("ResourceScatterUpdate")
def scatter_update(op: Writer, variable: Variable, indices: Tensor, updates: Tensor) -> Nothing:
    return _scattered(op, variable, indices, updates, "none")


@rule("ResourceApplyGradientDescent")
def gradient_descent(op: Writer, variable: Variable, alpha: Tensor, delta: Tensor) -> Nothing:
    return _let(op, {variable: _now(op, variable)[0] - alpha * delta})


@rule("ResourceApplyMomentum")
def momentum(
    op: Writer,
    variable: Variable,
    accumulated: Variable,
    lr: Tensor,
    g: Tensor,
    share: Tensor,
    *,
    use_nesterov: bool = False,
) -> Nothing:
    w, before = _now(op, variable, accumulated)
    total = before * share + g
    move = g * lr + total * share * lr if use_nesterov else total * lr
    return _let(op, {variable: w - move, accumulated: total})


@rule("ResourceApplyKerasMomentum")
def keras_momentum(
    op: Writer,
    variable: Variable,
    accumulated: Variable,
    lr: Tensor,
    g: Tensor,
    share: Tensor,
    *,
    use_nesterov: bool = False,
) -> Nothing:
    w, before = _now(op, variable, accumulated)
    total = before * share - lr * g
    move = total * share - lr * g if use_nesterov else total
    return _let(op, {variable: w + move, accumulated: total})


@rule("ResourceApplyAdam")
def adam(
    op: Writer,
    variable: Variable,
    mean: Variable,
    square: Variable,
    beta1_power: Tensor,
    beta2_power: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    epsilon: Tensor,
    g: Tensor,
    *,
    use_nesterov: bool = False,
) -> Nothing:
    w, m, v = _now(op, variable, mean, square)
    rate = lr * op.Sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    m = m + (g - m) * (1.0 - beta1)
    v = v + (g * g - v) * (1.0 - beta2)
    ahead = g * (1.0 - beta1) + m * beta1 if use_nesterov else m
    return _let(op, {variable: w - ahead * rate / (op.Sqrt(v) + epsilon), mean: m, square: v})


@rule("ResourceApplyAdaMax")
def adamax(
    op: Writer,
    variable: Variable,
    mean: Variable,
    largest: Variable,
    beta1_power: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    epsilon: Tensor,
    g: Tensor,
) -> Nothing:
    w, m, v = _now(op, variable, mean, largest)
    m = m + (g - m) * (1.0 - beta1)
    v = op.Max(v * beta2, op.Abs(g))
    return _let(op, {variable: w - lr / (1.0 - beta1_power) * (m / (v + epsilon)), mean: m, largest: v})


@rule("ResourceApplyAdagrad")
def adagrad(
    op: Writer, variable: Variable, total: Variable, lr: Tensor, g: Tensor, *, update_slots: bool = True
) -> Nothing:
    return _adagrad(op, variable, total, lr, None, g, update_slots)


@rule("ResourceApplyAdagradV2")
def adagrad_v2(
    op: Writer,
    variable: Variable,
    total: Variable,
    lr: Tensor,
    epsilon: Tensor,
    g: Tensor,
    *,
    update_slots: bool = True,
) -> Nothing:
    return _adagrad(op, variable, total, lr, epsilon, g, update_slots)


def _adagrad(
    op: Writer, variable: Variable, total: Variable, lr: Tensor, epsilon: Tensor | None, g: Tensor, update_slots: bool
) -> Nothing:
    w, squares = _now(op, variable, total)
    if update_slots:
        squares = squares + g * g
    root = op.Sqrt(squares)
    return _let(op, {variable: w - lr * g / (root if epsilon is None else root + epsilon), total: squares})


@rule("ResourceApplyRMSProp")
def rmsprop(
    op: Writer,
    variable: Variable,
    square: Variable,
    moved: Variable,
    lr: Tensor,
    rho: Tensor,
    share: Tensor,
    epsilon: Tensor,
    g: Tensor,
) -> Nothing:
    w, ms, before = _now(op, variable, square, moved)
    ms = ms + (g * g - ms) * (1.0 - rho)
    move = before * share + g * lr / op.Sqrt(ms + epsilon)
    return _let(op, {variable: w - move, square: ms, moved: move})


@rule("ResourceApplyCenteredRMSProp")
def centered_rmsprop(
    op: Writer,
    variable: Variable,
    mean: Variable,
    square: Variable,
    moved: Variable,
    lr: Tensor,
    rho: Tensor,
    share: Tensor,
    epsilon: Tensor,
    g: Tensor,
) -> Nothing:
    w, mg, ms, before = _now(op, variable, mean, square, moved)
    ms = ms + (g * g - ms) * (1.0 - rho)
    mg = mg + (g - mg) * (1.0 - rho)
    move = before * share + g * lr / op.Sqrt(ms - mg * mg + epsilon)
    return _let(op, {variable: w - move, mean: mg, square: ms, moved: move})


@rule("ResourceApplyAdadelta")
def adadelta(
    op: Writer,
    variable: Variable,
    square: Variable,
    moved: Variable,
    lr: Tensor,
    rho: Tensor,
    epsilon: Tensor,
    g: Tensor,
) -> Nothing:
    w, ms, before = _now(op, variable, square, moved)
    ms = ms * rho + g * g * (1.0 - rho)
    move = op.Sqrt(before + epsilon) / op.Sqrt(ms + epsilon) * g
    after = before * rho + move * move * (1.0 - rho)
    return _let(op, {variable: w - move * lr, square: ms, moved: after})
