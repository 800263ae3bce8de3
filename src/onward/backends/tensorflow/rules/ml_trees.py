"""Tree ensembles: TensorFlow's words for them."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.ml_trees import Words, classifier, ensemble, regressor
from onward.backends.tensorflow.target import ops, rule, tf

_TOTALS = {"SUM": tf.reduce_sum, "AVERAGE": tf.reduce_mean, "MIN": tf.reduce_min, "MAX": tf.reduce_max}


class _TensorFlowWords(Words):
    def as_rows(self, x: Expr) -> Expr:
        return ops.as_rows(x)

    def single(self, x: Expr) -> Expr:
        return tf.cast(x, tf.float32)

    def as_index(self, truth: Expr) -> Expr:
        return tf.cast(truth, tf.int64)

    def where(self, truth: Expr, yes: Any, no: Any) -> Expr:
        return tf.where(truth, yes, no)

    def pick(self, rows: Expr, index: Expr) -> Expr:
        return tf.gather(rows, index)

    def pick_strings(self, strings: Expr, index: Expr) -> Expr:
        return tf.gather(strings, index)

    def total(self, leaves: Expr, weights: Expr, aggregate: str) -> Expr:
        return _TOTALS[aggregate](tf.gather(weights, leaves), axis=1)

    def by_turns(self, values: Expr, rounds: int, targets: int) -> Expr:
        return tf.reduce_sum(tf.reshape(values, (-1, rounds, targets)), axis=1)

    def any_of(self, given: Expr) -> Expr:
        return tf.reduce_any(given, axis=1)

    def is_finite(self, x: Expr) -> Expr:
        return tf.math.is_finite(x)

    def best(self, scores: Expr) -> Expr:
        return tf.argmax(scores, axis=1)

    def columns(self, first: Expr | None, second: Expr) -> Expr:
        return tf.stack([tf.zeros_like(second) if first is None else first, second], axis=1)

    def softmax(self, scores: Expr) -> Expr:
        return tf.nn.softmax(scores)

    def sigmoid(self, scores: Expr) -> Expr:
        return tf.sigmoid(scores)


WORDS = _TensorFlowWords()


@rule("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(e: Emitter, x: Expr, **attributes: Any) -> Expr:
    return regressor(e, WORDS, x, **attributes)


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(e: Emitter, x: Expr, **attributes: Any) -> Expr:
    return ensemble(e, WORDS, x, **attributes)


@rule("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(e: Emitter, x: Expr, **attributes: Any) -> tuple[Expr, Expr]:
    return classifier(e, WORDS, x, **attributes)
