"""What losses of classifiers mean."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
@dataclass(frozen=True)
class Loss(Spec):
    ignore_index: int | None = None
    reduction: str = "mean"
