"""Losses of classifiers by the helper `negative_log_likelihood`."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.spec.loss import Loss


def losses(log_softmax: Expr) -> dict[str, Rule]:
    """The rules of a framework, by what it calls the logarithm of a softmax."""

    def cross_entropy(e: Emitter, scores: Expr, labels: Expr, weights: Expr | None = None, *, p: Loss) -> list[Any]:
        log_probabilities = e.let(log_softmax(scores, axis=1))
        return [_loss(log_probabilities, labels, weights, p), log_probabilities if e.used(1) else None]

    def likelihood(e: Emitter, x: Expr, target: Expr, weight: Expr | None = None, *, p: Loss) -> Expr:
        return _loss(x, target, weight, p)

    return {"SoftmaxCrossEntropyLoss": cross_entropy, "NegativeLogLikelihoodLoss": likelihood}


def _loss(log_probabilities: Expr, labels: Expr, weight: Expr | None, p: Loss) -> Expr:
    keywords = given(weight=weight) | changed(p, "ignore_index", "reduction")
    return ops.negative_log_likelihood(log_probabilities, labels, **keywords)
