"""Optimizers whose step and states depend on the shape of a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.training.recipe.optimizers import Moment, State, Update, adam_step

Shape = tuple[int, ...]


def _sizes(w: Tensor) -> Shape:
    if w.sizes is None:
        raise OnwardError("the step of this optimizer depends on the shape of a weight, which is not known")
    return tuple(w.sizes)


@dataclass(frozen=True)
class Adafactor:
    """Second moments of matrices as a column times a row: little memory. The step is relative to the weight's size."""

    name: ClassVar[str] = "adafactor"
    by_element: ClassVar[bool] = False
    states: ClassVar[tuple[str, ...]] = ("row_var", "col_var", "variance")
    lr: float = 1e-2
    """The largest relative step."""
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    """The least root of a second moment, the dtype's own unless given, and the least size of a weight."""
    d: float = 1.0
    """What the root of the mean square of an update is clipped at."""
    weight_decay: float = 0.0

    def state_shapes(self, shape: Shape) -> Mapping[str, Shape]:
        if len(shape) < 2:
            return {"variance": shape}
        return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        least, small = self.eps
        if least is None:
            least = float(np.finfo(w.dtype.numpy()).eps)
        t = now.step.cast(ir.DataType.DOUBLE)
        lr = now.lr.cast(w.dtype)
        share = op.Pow(t, op.like(self.beta2_decay, t)).cast(w.dtype)
        rate = op.Min(lr, (1 / op.Sqrt(t)).cast(w.dtype)) * op.Max(_root_mean_square(w), op.like(small, w))
        if now.decay:
            w = w * (1 - lr * now.decay)
        if len(_sizes(w)) < 2:
            variance = _towards(state["variance"], g * g, share)
            after = {"variance": variance}
        else:
            row = _towards(state["row_var"], op.ReduceMean(g * g, op.ints([-1]), keepdims=1), share)
            column = _towards(state["col_var"], op.ReduceMean(g * g, op.ints([-2]), keepdims=1), share)
            mean = op.Max(op.ReduceMean(row, op.ints([-2]), keepdims=1), op.like(least, w))
            variance, after = op.MatMul(row, column) / mean, {"row_var": row, "col_var": column}
        move = g / op.Sqrt(op.Max(variance, op.like(least * least, w)))
        clip = op.Max(_root_mean_square(move) / self.d, op.like(1, w))
        return w - move * (rate / clip), after


def _towards(before: Tensor, new: Tensor, share: Tensor) -> Tensor:
    return before + (new - before) * share


def _root_mean_square(x: Tensor) -> Tensor:
    return x.op.ReduceL2(x, keepdims=0) / math.sqrt(math.prod(_sizes(x)))


@dataclass(frozen=True)
class Muon:
    """Momentum of matrices, made orthogonal by Newton and Schulz; what is no matrix goes by AdamW.

    The formula of `torch.optim.Muon`, computed in the dtype of the weights: PyTorch rounds to bfloat16 on the way.
    """

    name: ClassVar[str] = "muon"
    by_element: ClassVar[bool] = False
    states: ClassVar[tuple[str, ...]] = ("momentum_buffer", "exp_avg", "exp_avg_sq")
    lr: float = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: Literal["original", "match_rms_adamw"] = "original"
    """What the learning rate of a matrix is multiplied by, of its sides."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of AdamW, for what is no matrix."""
    adam_eps: float = 1e-8

    def state_shapes(self, shape: Shape) -> Mapping[str, Shape]:
        return {"momentum_buffer": shape} if len(shape) == 2 else {"exp_avg": shape, "exp_avg_sq": shape}

    def update(self, op: Builder, w: Tensor, g: Tensor, state: State, now: Moment) -> Update:
        lr = now.lr.cast(w.dtype)
        decayed = w * (1 - lr * now.decay) if now.decay else w
        sizes = _sizes(w)
        if len(sizes) != 2:
            return adam_step(op, decayed, g, state, lr, now.step, self.betas, self.adam_eps)
        buffer = state["momentum_buffer"]
        buffer = buffer + (g - buffer) * (1 - self.momentum)
        move = g + (buffer - g) * self.momentum if self.nesterov else buffer
        height, width = sizes
        factor = math.sqrt(max(1, height / width))
        if self.adjust_lr_fn == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(height, width))
        return decayed - self._orthogonal(op, move, height > width) * (lr * factor), {"momentum_buffer": buffer}

    def _orthogonal(self, op: Builder, x: Tensor, is_tall: bool) -> Tensor:
        """Near the orthogonal matrix that is nearest: all singular values go towards 1."""
        a, b, c = self.ns_coefficients
        if is_tall:
            x = op.transpose(x, [1, 0])
        x = x / op.Max(op.ReduceL2(x, keepdims=0), op.like(self.eps, x))
        for _ in range(self.ns_steps):
            gram = op.MatMul(x, op.transpose(x, [1, 0]))
            x = x * a + op.MatMul(gram * b + op.MatMul(gram, gram) * c, x)
        return op.transpose(x, [1, 0]) if is_tall else x
