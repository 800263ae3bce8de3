"""Connectionist temporal classification: the probability of a sequence of labels, summed over all ways to time it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidDataError, OnwardError
from onward.graph.build import Builder, Tensor
from onward.graph.scan import scan

if TYPE_CHECKING:
    from onward.training.recipe.losses import Target

Array = np.ndarray[Any, np.dtype[Any]]
NEVER = -1e30
"""The logarithm of no probability at all; infinity would make derivatives that are no numbers."""


@dataclass(frozen=True)
class CTC:
    """Of logarithms of probabilities [time, batch, classes] and labels [batch, most labels], as PyTorch has it.

    The mean is over samples, each divided by its number of labels.
    """

    hint: ClassVar[str] = (
        "With CTC, an infinite loss is a sample with more labels (a blank between equal ones counts) than its input "
        "has times: zero_infinity=True leaves it out"
    )
    blank: int = 0
    """The class that stands for no label."""
    zero_infinity: bool = False
    """A sample whose labels do not fit into its time counts as 0 instead of infinity."""
    reduction: Literal["mean", "sum"] = "mean"
    logits: bool = False
    """The prediction is not normalised yet."""
    batch_first: bool = False
    """The prediction is [batch, time, classes]."""
    concatenated: bool = False
    """Labels of all samples come one behind the other, in one dimension."""
    labels: str = "labels"
    input_lengths: str | None = "input_lengths"
    """How many times of each sample count; None: all."""
    target_lengths: str = "target_lengths"

    def build(self, op: Builder, prediction: Tensor, target: Target) -> Tensor:
        if prediction.rank not in (None, 3):
            order = "batch, time" if self.batch_first else "time, batch"
            raise OnwardError(f"CTC takes a prediction of [{order}, classes], not one of rank {prediction.rank}")
        logp = prediction.ranked(3).cast(
            ir.DataType.DOUBLE if prediction.dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
        )
        if self.batch_first:
            logp = op.Transpose(logp, perm=[1, 0, 2])
        if self.logits:
            logp = op.LogSoftmax(logp, axis=2)
        batch = (logp.dims or [None] * 3)[1]
        lengths = target(self.target_lengths, ir.DataType.INT64, [batch])
        places = self._places(op, logp, lengths, target(self.labels, ir.DataType.INT64, self._dims(batch)))
        rows = [self._emissions(op, logp, places)]
        if self.input_lengths is not None:
            rows.append(_alive(op, logp, target(self.input_lengths, ir.DataType.INT64, [batch])))
        back, toll = self._ways(op, places, logp.dtype)

        def step(states: Sequence[Tensor], now: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            ways = op.Gather(states[0], back, axis=1) + toll
            after = op.ReduceLogSumExp(ways, op.ints([1]), keepdims=0) + now[0]
            return [op.Where(now[1], after, states[0]) if len(now) > 1 else after], []

        first = op.Equal(_range(op, op.Squeeze(_size(op, places, 1))), op.index(0))
        start = op.Expand(op.where(first, op.like(0, logp), NEVER), op.Shape(places))
        (end,) = scan(op, step, [start], rows)
        return self._reduced(op, -_last(op, end, lengths), lengths)

    def _dims(self, batch: int | str | None) -> list[int | str | None]:
        return [None] if self.concatenated else [batch, None]

    def _places(self, op: Builder, logp: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """[batch, 2 · labels + 1]: a blank, and each label with a blank behind it; no label beyond a sample's length.

        A label below 0 becomes one that there is not, so that a runtime does not count it from the end.
        """
        most = op.ReduceMax(lengths, keepdims=0) if self.concatenated else op.Squeeze(_size(op, labels, 1))
        along = _range(op, most)
        inside = op.Less(along, op.Unsqueeze(_within(op, lengths, most), op.ints([1])))
        if self.concatenated:
            before = op.Unsqueeze(op.CumSum(lengths, op.index(0), exclusive=1), op.ints([1]))
            labels = op.Gather(labels, op.where(inside, before + along, 0))
        labels = op.where(labels < 0, op.Squeeze(_size(op, logp, 2)), labels)
        labels = op.Unsqueeze(op.where(inside, labels, self.blank), op.ints([2]))
        blank = op.index(self.blank)
        pairs = op.Reshape(op.Pad(labels, op.ints([0, 0, 1, 0, 0, 0]), blank), op.ints([0, -1]))
        return op.Pad(pairs, op.ints([0, 0, 0, 1]), blank)

    def _emissions(self, op: Builder, logp: Tensor, places: Tensor) -> Tensor:
        """[time, batch, places]: how likely each is at each time."""
        shape = op.Concat(_size(op, logp, 0), op.Shape(places), axis=0)
        found = op.GatherElements(logp, op.Expand(places, shape), axis=2)
        return op.Max(found, op.like(NEVER, found))

    def _ways(self, op: Builder, places: Tensor, dtype: ir.DataType) -> tuple[Tensor, Tensor]:
        """Where a place is reached from, [3, places], and what that costs, [batch, 3, places]: 0, or all.

        From itself, from the place before, and over a blank from the label before if that is another one.
        """
        steps = op.constant(np.arange(3).reshape(3, 1))
        origin = op.Sub(_range(op, op.Squeeze(_size(op, places, 1))), steps)
        back = op.Max(origin, op.index(0))
        here = op.Unsqueeze(places, op.ints([1]))
        other = op.And(op.Not(op.Equal(here, op.Gather(places, back, axis=1))), op.Not(op.Equal(here, self.blank)))
        allowed = op.And(origin >= 0, op.Or(op.Less(steps, op.index(2)), other))
        zero = op.constant(np.zeros((), dtype.numpy()))
        return back, op.where(allowed, zero, NEVER)

    def _reduced(self, op: Builder, losses: Tensor, lengths: Tensor) -> Tensor:
        instead = 0.0 if self.zero_infinity else np.inf
        losses = op.where(losses < -NEVER / 10, losses, instead)
        if self.reduction == "sum":
            return op.ReduceSum(losses, keepdims=0)
        return op.ReduceMean(losses / op.Max(lengths, op.index(1)).cast(losses.dtype), keepdims=0)

    def check(self, batch: Mapping[str, Array], classes: int | None) -> None:
        """Refuse lengths and labels that cannot be, or that a runtime would take for others."""
        labels, lengths = batch[self.labels], batch[self.target_lengths]
        names = [self.target_lengths, *([self.input_lengths] if self.input_lengths else [])]
        for name in names:
            if (batch[name] < 0).any():
                raise InvalidDataError(f"{name!r} has the length {batch[name].min()}")
        if self.concatenated:
            if lengths.sum() != labels.size:
                raise InvalidDataError(
                    f"{self.labels!r} holds {labels.size} labels, but {names[0]!r} adds up to {lengths.sum()}"
                )
            counted = labels
        else:
            if lengths.max() > labels.shape[1]:
                raise InvalidDataError(
                    f"{self.target_lengths!r} has {lengths.max()}, but {self.labels!r} only {labels.shape[1]} for each"
                )
            counted = labels[np.arange(labels.shape[1]) < lengths.reshape(-1, 1)]
        bad = (counted < 0) | (counted == self.blank)
        if classes is not None:
            bad |= counted >= classes
        if bad.any():
            known = (
                "classes are counted from 0" if classes is None else f"there are {classes} classes, 0 to {classes - 1}"
            )
            raise InvalidDataError(f"{self.labels!r} has {counted[bad][0]}, but {known}; {self.blank} is the blank")


def _alive(op: Builder, logp: Tensor, lengths: Tensor) -> Tensor:
    """[time, batch, 1]: whether a time of a sample counts."""
    times = op.Squeeze(_size(op, logp, 0))
    along = op.Reshape(_range(op, times), op.ints([-1, 1, 1]))
    return op.Less(along, op.Unsqueeze(_within(op, lengths, times), op.ints([1])))


def _last(op: Builder, end: Tensor, lengths: Tensor) -> Tensor:
    """[batch]: how likely it is to have come to the last label, or the blank behind it."""
    place = op.Unsqueeze(op.Mul(lengths, op.index(2)), op.ints([1]))
    either = op.Concat(place, op.Max(place - 1, op.index(0)), axis=1)
    is_one = op.And(op.Equal(place, op.index(0)), op.constant(np.array([[False, True]])))
    found = op.GatherElements(end, either, axis=1)
    return op.ReduceLogSumExp(op.where(is_one, op.like(NEVER, end), found), op.ints([1]), keepdims=0)


def _within(op: Builder, lengths: Tensor, most: Tensor) -> Tensor:
    """Lengths as they are; a runtime stops at one that is too large."""
    return op.Gather(_range(op, most + 1), lengths)


def _range(op: Builder, size: Tensor) -> Tensor:
    return op.Range(op.index(0), size, op.index(1))


def _size(op: Builder, tensor: Tensor, axis: int) -> Tensor:
    return op.Shape(tensor, start=axis, end=axis + 1)
