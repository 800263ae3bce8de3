"""Fourier transforms and windows."""

from onward.backends.jax.numbers import scalar
from onward.backends.jax.target import TARGET
from onward.backends.shared.signal import rules

TARGET.rules.take(rules(lambda e, x, of: scalar(e, x)))
