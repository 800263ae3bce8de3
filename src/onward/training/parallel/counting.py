"""How much the loss of one worker's rows counts in the loss of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onward.errors import InvalidDataError, UnsupportedError
from onward.training.recipe.ctc import CTC
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CausalLM,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
    tokens_of,
)
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
Counting = Callable[[Mapping[str, Array]], float]
BY_ROWS = (CrossEntropy, NegativeLogLikelihood, BinaryCrossEntropy, MeanSquaredError, L1, Huber, KLDivergence, CTC)
"""Losses that are means over rows, unless labels are weighted or ignored."""
NEAR = 1e-3
"""How far, relatively, a loss may be from the mean of those of two parts."""


def rows_of(batch: Mapping[str, Any]) -> int:
    return max((len(array) for array in batch.values() if np.ndim(array)), default=1)


def counting(trainable: Trainable) -> tuple[Counting, bool]:
    """Gives what a worker's loss is to be weighted by: so that the weighted mean is the loss of all rows together.

    A loss that no weighted mean gives is refused. One that is not known is taken for a mean over rows, which
    `check_mean` has to try: whether it need not is the second thing given.
    """
    losses: list[Any] = [term.loss for term in trainable.loss or ()]
    if any(getattr(loss, "reduction", "mean") != "mean" for loss in losses):
        raise UnsupportedError("several workers need a loss that is a mean over samples: this one is a sum")
    ways = [way(loss) for loss in losses]
    if any(way != ways[0] for way in ways):
        raise UnsupportedError(
            "several workers need one mean: the losses that are added up here count samples differently"
            " (by class weights or a class to ignore)"
        )
    if not ways or ways[0] is None:
        return rows_of, bool(losses) and all(isinstance(loss, BY_ROWS) for loss in losses)
    first = losses[0]
    name = first.labels or tokens_of(trainable.original.ir.graph).name
    return lambda batch: _counted(first, np.asarray(batch[name])), True


def way(loss: Any) -> tuple[Any, ...] | None:
    """How a loss counts labels; None: each row once."""
    if isinstance(loss, CausalLM):
        return CausalLM, loss.labels, loss.ignore_index, loss.pad
    classes = isinstance(loss, CrossEntropy | NegativeLogLikelihood) and not getattr(loss, "soft", False)
    if classes and (loss.weight is not None or loss.ignore_index is not None):
        return loss.labels, loss.weight, loss.ignore_index
    return None


def _counted(loss: Any, labels: Array) -> float:
    """How many labels count, or the sum of their class weights."""
    if isinstance(loss, CausalLM):
        return float(((labels != loss.ignore_index) & (labels != loss.pad))[:, 1:].sum())
    counts = np.ones(labels.shape, bool) if loss.ignore_index is None else labels != loss.ignore_index
    if loss.weight is None:
        return float(counts.sum())
    return float(np.asarray(loss.weight, np.float64)[labels[counts]].sum())


def check_mean(loss: Callable[[Mapping[str, Any]], float], batch: Mapping[str, Any]) -> None:
    """Refuse a loss that is not the mean of those of two parts of a batch, where it can be evaluated on them."""
    count = min(rows_of(batch), 4)
    if count < 2:
        return
    parts = (slice(count), slice(1), slice(1, count))
    try:
        whole, one, others = (loss({name: array[rows] for name, array in batch.items()}) for rows in parts)
    except (InvalidDataError, UnsupportedError):
        return  # batches of one size only, or random numbers that are drawn whatever the mode
    mean = (one + (count - 1) * others) / count
    if abs(mean - whole) > NEAR * max(abs(whole), abs(one), abs(others)):
        raise UnsupportedError(
            f"several workers need a loss that is a mean over samples: this one is {whole:.6g} for {count} samples,"
            f" but {mean:.6g} is the mean over two parts of them"
        )
