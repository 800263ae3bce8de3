"""Losses of classifiers."""

from __future__ import annotations

from onward.backends.shared.loss import losses
from onward.backends.tensorflow.target import TARGET, tf

TARGET.rules.take(losses(tf.nn.log_softmax))
