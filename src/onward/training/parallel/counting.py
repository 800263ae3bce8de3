"""How much the loss of one worker's rows counts in the loss of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onward.errors import InvalidDataError, UnsupportedError
from onward.training.recipe.losses import CrossEntropy, NegativeLogLikelihood
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
Counting = Callable[[Mapping[str, Array]], float]
NEAR = 1e-3
"""How far, relatively, a loss may be from the mean of those of two parts."""


def rows_of(batch: Mapping[str, Any]) -> int:
    return max((len(array) for array in batch.values() if np.ndim(array)), default=1)


def counting(trainable: Trainable) -> Counting:
    """Gives what a worker's loss is to be weighted by: so that the weighted mean is the loss of all rows together.

    A loss that no weighted mean gives is refused. One that is known as a graph only is taken for a mean over rows;
    see `check_mean`.
    """
    losses: list[Any] = [term.loss for term in trainable.loss or ()]
    if any(getattr(loss, "reduction", "mean") != "mean" for loss in losses):
        raise UnsupportedError("several workers need a loss that is a mean over samples: this one is a sum")
    weighted = [
        loss
        for loss in losses
        if isinstance(loss, CrossEntropy | NegativeLogLikelihood)
        and not getattr(loss, "soft", False)
        and (loss.weight is not None or loss.ignore_index is not None)
    ]
    if not weighted:
        return rows_of
    first = weighted[0]
    if len(weighted) != len(losses) or any(_key(loss) != _key(first) for loss in weighted):
        raise UnsupportedError(
            "several workers need one mean: the losses that are added up here count samples differently"
            " (by class weights or a class to ignore)"
        )
    return lambda batch: _counted(first, np.asarray(batch[first.labels]))


def _key(loss: Any) -> tuple[Any, ...]:
    return loss.labels, loss.weight, loss.ignore_index


def _counted(loss: Any, labels: Array) -> float:
    """The sum of the class weights of labels that are not ignored."""
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
