"""Tree ensembles: TensorFlow's words for them."""

from __future__ import annotations

from onward.backends.emit.expr import Expr
from onward.backends.shared.ml_trees import Words, rules
from onward.backends.tensorflow.target import TARGET, ops, tf

_TOTALS = {"SUM": tf.reduce_sum, "AVERAGE": tf.reduce_mean, "MIN": tf.reduce_min, "MAX": tf.reduce_max}


def _columns(first: Expr | None, second: Expr) -> Expr:
    return tf.stack([tf.zeros_like(second) if first is None else first, second], axis=1)


WORDS = Words(
    as_rows=ops.as_rows,
    single=lambda x: tf.cast(x, tf.float32),
    as_index=lambda truth: tf.cast(truth, tf.int64),
    where=tf.where,
    total=lambda leaves, weights, aggregate: _TOTALS[aggregate](tf.gather(weights, leaves), axis=1),
    by_turns=lambda values, rounds, targets: tf.reduce_sum(tf.reshape(values, (-1, rounds, targets)), axis=1),
    is_finite=tf.math.is_finite,
    best=lambda scores: tf.argmax(scores, axis=1),
    columns=_columns,
    column=lambda scores, k: scores[:, k],
    is_scored=lambda leaves, given: tf.reduce_any(tf.gather(given, leaves), axis=1),
    softmax=tf.nn.softmax,
    sigmoid=tf.sigmoid,
)
TARGET.rules.take(rules(WORDS))
