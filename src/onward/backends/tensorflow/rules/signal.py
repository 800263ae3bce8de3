"""Fourier transforms and windows."""

from onward.backends.shared.signal import rules
from onward.backends.tensorflow.dtypes import scalar
from onward.backends.tensorflow.target import TARGET

TARGET.rules.take(rules(scalar))
