"""What classifiers need beside standard ops."""

from onward.backends.matlab.target import TARGET
from onward.backends.shared.ml_classify import RULES

TARGET.rules.take(RULES)
