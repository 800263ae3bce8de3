"""Optimizers: how a parameter and its state follow a gradient, written as standard ONNX nodes.

The formulas and defaults are those of `torch.optim`, so that training can go on there with the state as it is. The
learning rate and the number of the step are inputs, not constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor

State = dict[str, Tensor]
Update = tuple[Tensor, State]


@dataclass(frozen=True)
class Moment:
    """What a step depends on besides parameter, gradient and state."""

    lr: Tensor
    """A scalar of float32."""
    step: Tensor
    """A scalar of int64: 1 at the first step."""
    decay: float
    """Weight decay of this parameter."""


class Optimizer(Protocol):
    """A rule for updates, parameter by parameter."""

    name: ClassVar[str]

    @property
    def by_element(self) -> bool:
        """Whether each element of a parameter goes its own way, so that a step can be made piece by piece."""

    @property
    def lr(self) -> float: ...

    @property
    def weight_decay(self) -> float: ...

    @property
    def states(self) -> tuple[str, ...]:
        """The state that a parameter has, zero at first (but `average`).

        It is of the parameter's shape, unless there is a method `state_shapes` that says which a shape has.
        """

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        """The parameter and its state after the step."""


@dataclass(frozen=True)
class SGD:
    """Gradient descent, with momentum or Nesterov's if asked for."""

    name: ClassVar[str] = "sgd"
    by_element: ClassVar[bool] = True
    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if self.nesterov and (self.momentum <= 0 or self.dampening):
            raise OnwardError("nesterov needs a momentum, and no dampening")

    @property
    def states(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.momentum else ()

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        lr = now.lr.cast(w.dtype)
        g = decayed(w, g, now.decay)
        if not self.momentum:
            return w - g * lr, {}
        before = state["momentum_buffer"] * self.momentum
        buffer = before + g
        if self.dampening:  # the first step is not dampened
            buffer = before + g * op.where(op.Equal(now.step, op.index(1)), op.like(1, w), 1 - self.dampening)
        move = g + buffer * self.momentum if self.nesterov else buffer
        return w - move * lr, {"momentum_buffer": buffer}


@dataclass(frozen=True)
class Adagrad:
    """Steps shrink with the sum of squared gradients."""

    name: ClassVar[str] = "adagrad"
    by_element: ClassVar[bool] = True
    lr: float = 1e-2
    lr_decay: float = 0.0
    eps: float = 1e-10
    weight_decay: float = 0.0

    @property
    def states(self) -> tuple[str, ...]:
        return ("sum",)

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        g = decayed(w, g, now.decay)
        lr = now.lr.cast(w.dtype)
        if self.lr_decay:
            lr = lr / ((now.step.cast(w.dtype) - 1) * self.lr_decay + 1)
        total = state["sum"] + g * g
        return w - g * lr / (op.Sqrt(total) + self.eps), {"sum": total}


@dataclass(frozen=True)
class RMSprop:
    """Steps are scaled by a running mean of squared gradients."""

    name: ClassVar[str] = "rmsprop"
    by_element: ClassVar[bool] = True
    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0
    centered: bool = False
    weight_decay: float = 0.0

    @property
    def states(self) -> tuple[str, ...]:
        more = (("momentum_buffer",) if self.momentum else ()) + (("grad_avg",) if self.centered else ())
        return ("square_avg", *more)

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        g = decayed(w, g, now.decay)
        lr = now.lr.cast(w.dtype)
        square = state["square_avg"] * self.alpha + g * g * (1 - self.alpha)
        after: State = {"square_avg": square}
        spread = square
        if self.centered:
            mean = state["grad_avg"] * self.alpha + g * (1 - self.alpha)
            after["grad_avg"], spread = mean, square - mean * mean
        move = g / (op.Sqrt(spread) + self.eps)
        if self.momentum:
            move = state["momentum_buffer"] * self.momentum + move
            after["momentum_buffer"] = move
        return w - move * lr, after


@dataclass(frozen=True)
class _Moments:
    """What Adam and those after it have in common: running means of the gradient and of its square."""

    by_element: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Adam(_Moments):
    """Adaptive moments; weight decay is added to the gradient."""

    name: ClassVar[str] = "adam"

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        return adam_step(op, w, decayed(w, g, now.decay), state, now.lr.cast(w.dtype), now.step, self.betas, self.eps)


@dataclass(frozen=True)
class AdamW(_Moments):
    """Adam with weight decay apart from the gradient."""

    name: ClassVar[str] = "adamw"
    weight_decay: float = 1e-2

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        lr = now.lr.cast(w.dtype)
        if now.decay:
            w = w * (1 - lr * now.decay)
        return adam_step(op, w, g, state, lr, now.step, self.betas, self.eps)


@dataclass(frozen=True)
class LAMB(_Moments):
    """AdamW with steps scaled layer by layer, by the norm of the parameter over that of its step."""

    name: ClassVar[str] = "lamb"
    by_element: ClassVar[bool] = False
    eps: float = 1e-6
    weight_decay: float = 1e-2

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        mean, square = moments(state, g, self.betas)
        correction, root = corrections(op, w, now.step, self.betas)
        move = mean / correction / (op.Sqrt(square) / root + self.eps)
        if now.decay:
            move = move + w * now.decay
        size, step = op.ReduceL2(w, keepdims=0), op.ReduceL2(move, keepdims=0)
        moves = op.And(size > 0, step > 0)
        trust = op.where(moves, size / op.where(moves, step, 1), 1)
        return w - move * (trust * now.lr.cast(w.dtype)), {"exp_avg": mean, "exp_avg_sq": square}


def decayed(w: Tensor, g: Tensor, decay: float) -> Tensor:
    """The gradient with the L2 penalty's."""
    return g + w * decay if decay else g


def moments(state: State, g: Tensor, betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    first, second = betas
    mean = state["exp_avg"] * first + g * (1 - first)
    square = state["exp_avg_sq"] * second + g * g * (1 - second)
    return mean, square


def corrections(op: Builder, w: Tensor, step: Tensor, betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """What running means lack in the first steps, for the first moment and the root of the second.

    In double precision: 1 - 0.999 is only right to five digits in float32.
    """
    count = step.cast(ir.DataType.DOUBLE)
    first, second = (1 - op.Pow(op.like(beta, count), count) for beta in betas)
    return first.cast(w.dtype), op.Sqrt(second).cast(w.dtype)


def adam_step(
    op: Builder, w: Tensor, g: Tensor, state: State, lr: Tensor, step: Tensor, betas: tuple[float, float], eps: float
) -> Update:
    mean, square = moments(state, g, betas)
    correction, root = corrections(op, w, step, betas)
    move = mean / (op.Sqrt(square) / root + eps)
    return w - move * (lr / correction), {"exp_avg": mean, "exp_avg_sq": square}


@dataclass(frozen=True)
class Clipped:
    """Another optimizer, with every element of a gradient kept between `-value` and `value`."""

    inner: Optimizer
    value: float
    name: ClassVar[str] = "clipped"

    @property
    def by_element(self) -> bool:
        return self.inner.by_element

    @property
    def lr(self) -> float:
        return self.inner.lr

    @property
    def weight_decay(self) -> float:
        return self.inner.weight_decay

    @property
    def states(self) -> tuple[str, ...]:
        return self.inner.states

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        return self.inner.update(op, w, op.Clip(g, op.like(-self.value, g), op.like(self.value, g)), state, now)


AVERAGE = "average"


@dataclass(frozen=True)
class Averaged(Clipped):
    """Another optimizer, with an exponential moving average of weights in the state `average`.

    `value` is the share of the average that stays in each step.
    """

    name: ClassVar[str] = "averaged"

    @property
    def states(self) -> tuple[str, ...]:
        return *self.inner.states, AVERAGE

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        own = {slot: tensor for slot, tensor in state.items() if slot != AVERAGE}
        after, changed = self.inner.update(op, w, g, own, now)
        return after, {**changed, AVERAGE: state[AVERAGE] * self.value + after * (1 - self.value)}


def state_shapes(optimizer: Any, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The states that a parameter of a shape has, each with its own shape."""
    inner = optimizer
    while isinstance(inner, Clipped):
        inner = inner.inner
    if not hasattr(inner, "state_shapes"):
        return dict.fromkeys(optimizer.states, shape)
    return {**inner.state_shapes(shape), **({AVERAGE: shape} if AVERAGE in optimizer.states else {})}


def depends_on_shape(optimizer: Any) -> bool:
    """Whether the step of one parameter says nothing about that of another."""
    while isinstance(optimizer, Clipped):
        optimizer = optimizer.inner
    return hasattr(optimizer, "state_shapes")


def initial(optimizer: Any, slot: str) -> float:
    """What a state starts from."""
    while isinstance(optimizer, Clipped):
        optimizer = optimizer.inner
    return float(getattr(optimizer, "initial", {}).get(slot, 0.0))
