"""Recurrent layers, as a loop over time."""

from __future__ import annotations

from onward.backends.shared.rnn import rules_without_modules
from onward.backends.tensorflow.layer_weights import owned
from onward.backends.tensorflow.target import TARGET, tf

_PLAIN_ACTIVATIONS = {
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softsign": tf.nn.softsign,
    "softplus": tf.nn.softplus,
}

TARGET.rules.take(rules_without_modules(_PLAIN_ACTIVATIONS, tf.pad, owned))
