"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.loss import Loss


def _keywords(weight: Expr | None, p: Loss) -> dict[str, Any]:
    return given(weight=weight) | changed(p, "ignore_index", "reduction")


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    e: Emitter, scores: Expr, labels: Expr, weights: Expr | None = None, *, p: Loss
) -> list[Any]:
    log_probabilities = e.let(tf.nn.log_softmax(scores, axis=1))
    loss = ops.negative_log_likelihood(log_probabilities, labels, **_keywords(weights, p))
    return [loss, log_probabilities if e.used(1) else None]


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(e: Emitter, x: Expr, target: Expr, weight: Expr | None = None, *, p: Loss) -> Expr:
    return ops.negative_log_likelihood(x, target, **_keywords(weight, p))
