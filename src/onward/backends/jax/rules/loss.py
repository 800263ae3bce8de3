"""Losses of classifiers."""

from __future__ import annotations

from onward.backends.jax.target import TARGET, jax
from onward.backends.shared.loss import losses

TARGET.rules.take(losses(jax.nn.log_softmax))
