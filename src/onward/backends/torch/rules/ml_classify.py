"""What classifiers need beside standard ops."""

from onward.backends.shared.ml_classify import RULES
from onward.backends.torch.target import TARGET

TARGET.rules.take(RULES)
