"""Loss functions, written as standard ONNX nodes behind a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.training.recipe.by_name import by_name
from onward.training.recipe.ctc import CTC

Reduction = Literal["mean", "sum"]
Dims = Sequence[int | str | None]
Target = Callable[[str, ir.DataType, Dims | None], Tensor]
"""Asks for an input of the training step by name, dtype and shape."""
TOKENS = "input_ids"
"""What language models call the tokens of a text."""


class Loss(Protocol):
    """What a training step minimises."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        """A scalar; inputs besides the prediction are asked for by `target`."""


def weighted(values: Tensor, target: Target, name: str | None) -> Tensor:
    """Losses of samples, which stand along the first axis, times an input that weights each; None: as they are."""
    if name is None:
        return values
    if values.rank is None or values.dims is None:
        raise OnwardError("weights of samples need a prediction of known rank")
    weights = target(name, values.dtype, values.dims[:1])
    return values * values.op.Reshape(weights, values.op.ints([-1, *[1] * (values.rank - 1)]))


def reduced(values: Tensor, reduction: Reduction) -> Tensor:
    op = values.op
    if reduction not in get_args(Reduction):
        raise OnwardError(f"a loss is one number: reduction is {reduction!r}, not 'mean' or 'sum'")
    return op.ReduceMean(values, keepdims=0) if reduction == "mean" else op.ReduceSum(values, keepdims=0)


@dataclass(frozen=True)
class CrossEntropy:
    """Of logits (classes along axis 1) and class indices, or probabilities with `soft`; the mean over samples."""

    label_smoothing: float = 0.0
    ignore_index: int | None = None
    """Samples of this class do not count."""
    weight: Sequence[float] | None = None
    """Of each class; the mean is a weighted one then."""
    soft: bool = False
    """Targets are probabilities of every class."""
    reduction: Reduction = "mean"
    labels: str = "labels"
    sample_weight: str | None = None
    """The name of an input that weights each sample; the mean is over the number of samples all the same."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        logp = op.LogSoftmax(prediction, axis=1)
        if self.soft:
            losses = self._soft(op, logp, target(self.labels, prediction.dtype, prediction.dims))
            return reduced(weighted(losses, target, self.sample_weight), self.reduction)
        dims = prediction.dims
        labels = target(self.labels, ir.DataType.INT64, None if dims is None else [*dims[:1], *dims[2:]])
        losses, share = class_losses(op, logp, labels, self.weight, self.ignore_index, self.label_smoothing)
        return averaged(weighted(losses, target, self.sample_weight), share, self.reduction)

    def _soft(self, op: Builder, logp: Tensor, wanted: Tensor) -> Tensor:
        if self.ignore_index is not None:
            raise OnwardError("cross entropy with probabilities as targets has no class to ignore")
        if self.label_smoothing:
            share = op.Shape(logp, start=1, end=2).cast(logp.dtype)
            wanted = wanted * (1 - self.label_smoothing) + self.label_smoothing / op.Squeeze(share)
        if self.weight is not None:
            wanted = wanted * along_classes(op, logp, self.weight)
        return -op.sum(wanted * logp, [1], keepdims=False)


@dataclass(frozen=True)
class NegativeLogLikelihood:
    """As cross entropy, of logarithms of probabilities (classes along axis 1) and class indices."""

    ignore_index: int | None = None
    weight: Sequence[float] | None = None
    reduction: Reduction = "mean"
    labels: str = "labels"

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        dims = prediction.dims
        labels = target(self.labels, ir.DataType.INT64, None if dims is None else [*dims[:1], *dims[2:]])
        return class_loss(op, prediction, labels, self.weight, self.ignore_index, 0.0, self.reduction)


def class_loss(
    op: Builder,
    logp: Tensor,
    labels: Tensor,
    weight: Sequence[float] | None,
    ignore_index: int | None,
    smoothing: float,
    reduction: Reduction,
) -> Tensor:
    """The negative logarithm of the labelled class's probability, as a mean over what counts, or a sum."""
    return averaged(*class_losses(op, logp, labels, weight, ignore_index, smoothing), reduction)


def averaged(losses: Tensor, share: Tensor | None, reduction: Reduction) -> Tensor:
    """The mean of losses that count by their share, or their sum."""
    op = losses.op
    if reduction == "mean" and share is not None:
        return op.ReduceSum(losses, keepdims=0) / op.ReduceSum(share, keepdims=0)
    return reduced(losses, reduction)


def class_losses(
    op: Builder,
    logp: Tensor,
    labels: Tensor,
    weight: Sequence[float] | None,
    ignore_index: int | None,
    smoothing: float,
) -> tuple[Tensor, Tensor | None]:
    """Of each sample, and by how much it counts, if not all count alike."""
    index = labels if ignore_index is None else op.where(op.Equal(labels, ignore_index), 0, labels)
    picked = op.Squeeze(op.GatherElements(logp, op.Unsqueeze(index, op.ints([1])), axis=1), op.ints([1]))
    share = None
    if weight is not None:
        share = op.Gather(op.constant(np.asarray(weight, logp.dtype.numpy())), index)
    if ignore_index is not None:
        counts = op.Not(op.Equal(labels, ignore_index)).cast(logp.dtype)
        share = counts if share is None else share * counts
    losses = -picked if share is None else -picked * share
    if smoothing:
        even = logp if weight is None else logp * along_classes(op, logp, weight)
        rest = -op.ReduceMean(even, op.ints([1]), keepdims=0)
        if ignore_index is not None:
            rest = rest * op.Not(op.Equal(labels, ignore_index)).cast(logp.dtype)
        losses = losses * (1 - smoothing) + rest * smoothing
    return losses, share


def along_classes(op: Builder, logp: Tensor, weight: Sequence[float]) -> Tensor:
    """Weights of classes in a shape that broadcasts along axis 1."""
    array = np.asarray(weight, logp.dtype.numpy())
    if logp.rank is None:
        raise OnwardError("class weights need a prediction of known rank")
    return op.constant(array.reshape([-1 if axis == 1 else 1 for axis in range(max(logp.rank, 2))]))


@dataclass(frozen=True)
class CausalLM:
    """Cross entropy of logits (batch, length, tokens) and the tokens one place further; the mean over what counts."""

    ignore_index: int = -100
    """Labels of this number do not count."""
    pad: int | None = None
    """Nor do those of this token."""
    reduction: Reduction = "mean"
    labels: str | None = None
    """The name of the labels (batch, length); None: the tokens that the model takes."""

    def bound(self, graph: ir.Graph) -> CausalLM:
        """With the name of the tokens, where they are the labels."""
        return self if self.labels is not None else replace(self, labels=tokens_of(graph).name)

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        labels = self._labels(op, prediction, target)
        dtype = ir.DataType.FLOAT if prediction.dtype.bitwidth < 32 else prediction.dtype
        if self.pad is not None:
            labels = op.where(op.Equal(labels, self.pad), self.ignore_index, labels)
        following = op.Slice(labels, op.ints([1]), op.ints([np.iinfo(np.int64).max]), op.ints([1]))
        batch = op.Shape(labels, start=0, end=1)
        none = op.Expand(op.like(self.ignore_index, labels), op.Concat(batch, op.ints([1]), axis=0))
        shifted = op.Reshape(op.Concat(following, none, axis=1), op.ints([-1]))
        flat = op.Reshape(prediction, op.Concat(op.ints([-1]), op.Shape(prediction, start=-1), axis=0))
        logp = op.LogSoftmax(flat.cast(dtype), axis=1)
        return class_loss(op, logp, shifted, None, self.ignore_index, 0.0, self.reduction)

    def _labels(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        if prediction.rank not in (None, 3):
            raise OnwardError(
                f"causal_lm is of logits (batch, length, tokens), but the output has {prediction.rank} axes: choose "
                "another by its name"
            )
        name = self.bound(op.graph).labels or TOKENS
        dims = prediction.dims
        own = next((value for value in op.graph.inputs if value.name == name), None)
        if own is not None and own.dtype is not None and own.dtype.is_integer():
            return op.tensor(own).cast(ir.DataType.INT64)
        return target(name, ir.DataType.INT64, None if dims is None else dims[:-1])


def tokens_of(graph: ir.Graph) -> ir.Value:
    """The input that the tokens of a text are."""
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    usual = [value for value in inputs if value.name == TOKENS]
    whole = [v for v in inputs if v.dtype is not None and v.dtype.is_integer() and v.shape and v.shape.rank() == 2]
    found = usual or whole
    if len(found) != 1:
        names = ", ".join(repr(value.name) for value in inputs) or "none"
        raise OnwardError(
            f"which input has the tokens is not clear: the model takes {names}. Say labels=NAME: one of them, or"
            " another, which is added"
        )
    return found[0]


@dataclass(frozen=True)
class BinaryCrossEntropy:
    """Of logits and numbers from 0 to 1, element by element."""

    pos_weight: float = 1.0
    """Of the positive side."""
    reduction: Reduction = "mean"
    labels: str = "labels"
    sample_weight: str | None = None
    """The name of an input that weights each sample; the mean is over the number of samples all the same."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        y = target(self.labels, prediction.dtype, prediction.dims)
        negative, positive = op.Softplus(prediction), op.Softplus(-prediction)
        if self.pos_weight != 1:
            positive = positive * self.pos_weight
        losses = y * positive + (1 - y) * negative
        return reduced(weighted(losses, target, self.sample_weight), self.reduction)


@dataclass(frozen=True)
class MeanSquaredError:
    """The mean of squared differences."""

    reduction: Reduction = "mean"
    labels: str = "labels"
    sample_weight: str | None = None
    """The name of an input that weights each sample; the mean is over the number of samples all the same."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        apart = prediction - target(self.labels, prediction.dtype, prediction.dims)
        return reduced(weighted(apart * apart, target, self.sample_weight), self.reduction)


@dataclass(frozen=True)
class L1:
    """The mean of absolute differences."""

    reduction: Reduction = "mean"
    labels: str = "labels"
    sample_weight: str | None = None
    """The name of an input that weights each sample; the mean is over the number of samples all the same."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        apart = op.Abs(prediction - target(self.labels, prediction.dtype, prediction.dims))
        return reduced(weighted(apart, target, self.sample_weight), self.reduction)


@dataclass(frozen=True)
class Huber:
    """Squared up to `delta`, linear beyond."""

    delta: float = 1.0
    reduction: Reduction = "mean"
    labels: str = "labels"
    sample_weight: str | None = None
    """The name of an input that weights each sample; the mean is over the number of samples all the same."""

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        apart = op.Abs(prediction - target(self.labels, prediction.dtype, prediction.dims))
        near = apart * apart * 0.5
        far = (apart - 0.5 * self.delta) * self.delta
        losses = op.where(apart <= self.delta, near, far)
        return reduced(weighted(losses, target, self.sample_weight), self.reduction)


@dataclass(frozen=True)
class KLDivergence:
    """Of logarithms of probabilities from probabilities: summed over all but the batch, the mean over the batch."""

    labels: str = "labels"

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        p = target(self.labels, prediction.dtype, prediction.dims)
        information = op.where(p > 0, p * op.Log(op.where(p > 0, p, 1)), 0)
        total = op.ReduceSum(information - p * prediction, keepdims=0)
        return total / op.Squeeze(op.Shape(prediction, end=1)).cast(prediction.dtype)


@dataclass(frozen=True)
class Term:
    """One of several losses whose weighted sum is minimised."""

    loss: str | Loss
    weight: float = 1.0
    output: str | None = None
    """What it is a loss of; None: what all are."""


@dataclass(frozen=True)
class Penalty:
    """A regularisation term: the sum of absolute values (`power` 1), or half of that of squares (2), of parameters."""

    factor: float
    power: Literal[1, 2] = 2
    patterns: str | Sequence[str] = "*"

    def build(self, op: Builder, parameters: Sequence[Tensor]) -> Tensor:
        sums = [
            op.ReduceL1(w, keepdims=0) if self.power == 1 else op.ReduceSumSquare(w, keepdims=0) for w in parameters
        ]
        return op.total(sums) * (self.factor if self.power == 1 else self.factor / 2)


LOSSES: Mapping[str, type[Any]] = {
    "cross_entropy": CrossEntropy,
    "nll": NegativeLogLikelihood,
    "causal_lm": CausalLM,
    "bce_with_logits": BinaryCrossEntropy,
    "mse": MeanSquaredError,
    "l1": L1,
    "huber": Huber,
    "kl": KLDivergence,
    "ctc": CTC,
}


def loss_named(name: str, **options: Any) -> Loss:
    """A loss by its name, with options by name."""
    made: Loss = by_name("loss", LOSSES, name, options)
    return made
