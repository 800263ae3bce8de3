"""Rules of the frontend: a builtin op of TensorFlow Lite as ONNX ops.

A rule is called with the tensors that the op takes, in floats where they are quantised; `op.operation` has its options.
"""

from __future__ import annotations

from onward.frontends.tensorflow.registry import Rule, filing
from onward.registry import Registry

RULES: Registry[Rule] = Registry("TensorFlow Lite op")
rule = filing(RULES)
