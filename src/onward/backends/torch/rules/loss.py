"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import F, rule


def _target(e: Emitter, labels: Expr) -> Expr:
    return labels if e.dtype(labels) == ir.DataType.INT64 else labels.long()


def _keywords(weight: Expr | None, ignore_index: int | None, reduction: str) -> dict[str, Any]:
    """Those arguments of PyTorch's losses that are not the default: a label of -100 is ignored unless asked."""
    return given(
        weight=weight,
        ignore_index=None if ignore_index == -100 else ignore_index,
        reduction=None if reduction == "mean" else reduction,
    )


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    e: Emitter,
    scores: Expr,
    labels: Expr,
    weights: Expr | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> list[Any]:
    keywords = _keywords(weights, ignore_index, reduction)
    if not e.used(1):
        return [F.cross_entropy(scores, _target(e, labels), **keywords), None]
    log_probabilities = e.let(F.log_softmax(scores, dim=1))
    return [F.nll_loss(log_probabilities, _target(e, labels), **keywords), log_probabilities]


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    e: Emitter,
    x: Expr,
    target: Expr,
    weight: Expr | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Expr:
    return F.nll_loss(x, _target(e, target), **_keywords(weight, ignore_index, reduction))
