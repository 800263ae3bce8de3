"""Encoded images."""

from onward.backends.jax.target import TARGET
from onward.backends.shared.image import RULES

TARGET.rules.take(RULES)
