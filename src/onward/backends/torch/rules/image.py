"""Encoded images."""

from onward.backends.shared.image import RULES
from onward.backends.torch.target import TARGET

TARGET.rules.take(RULES)
