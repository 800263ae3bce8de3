"""Losses of classifiers whose classes are the second axis."""

import tensorflow as tf


def negative_log_likelihood(
    log_probabilities: tf.Tensor,
    labels: tf.Tensor,
    weight: tf.Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tf.Tensor:
    """Minus the log-probability of each label (samples, …), weighted by its class: each, their sum or weighted mean.

    Labels that are `ignore_index` count for nothing, in the mean as well.
    """
    classes = tf.shape(log_probabilities)[1]
    kept = tf.ones_like(labels, tf.bool) if ignore_index is None else labels != ignore_index
    known = tf.where(kept, labels, tf.zeros_like(labels))
    chosen = tf.one_hot(known, classes, True, False, axis=1, dtype=tf.bool)
    loss = -tf.reduce_sum(tf.where(chosen, log_probabilities, tf.zeros_like(log_probabilities)), 1)
    factors = tf.ones_like(loss) if weight is None else tf.gather(weight, known)
    factors = tf.where(kept, factors, tf.zeros_like(factors))
    loss = tf.where(kept, loss * factors, tf.zeros_like(loss))
    if reduction == "none":
        return loss
    total = tf.reduce_sum(loss)
    return total if reduction == "sum" else total / tf.reduce_sum(factors)
