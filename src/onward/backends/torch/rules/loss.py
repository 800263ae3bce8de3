"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import F, rule
from onward.spec.loss import Loss


def _target(e: Emitter, labels: Expr) -> Expr:
    return labels if e.dtype(labels) == ir.DataType.INT64 else labels.long()


def _keywords(weight: Expr | None, p: Loss) -> dict[str, Any]:
    """Those arguments of PyTorch's losses that are not the default: a label of -100 is ignored unless asked."""
    keywords = given(weight=weight) | changed(p, "ignore_index", "reduction")
    return {name: value for name, value in keywords.items() if name != "ignore_index" or value != -100}


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    e: Emitter, scores: Expr, labels: Expr, weights: Expr | None = None, *, p: Loss
) -> list[Any]:
    keywords = _keywords(weights, p)
    if not e.used(1):
        return [F.cross_entropy(scores, _target(e, labels), **keywords), None]
    log_probabilities = e.let(F.log_softmax(scores, dim=1))
    return [F.nll_loss(log_probabilities, _target(e, labels), **keywords), log_probabilities]


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(e: Emitter, x: Expr, target: Expr, weight: Expr | None = None, *, p: Loss) -> Expr:
    return F.nll_loss(x, _target(e, target), **_keywords(weight, p))
