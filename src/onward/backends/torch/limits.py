"""Where PyTorch's support of an op ends, in words: for the coverage page and `onward inspect`."""

import onnx_ir as ir

from onward.backends.backend import Limit

PARTIAL = {
    "ReduceMean": Limit("not of uint64", frozenset({ir.DataType.UINT64})),
    "ai.onnx.ml::TreeEnsembleClassifier": Limit("not two classes of which some leaves score one only"),
    "RegexFullMatch": Limit("patterns that Python's regular expressions can express"),
}
"""Ops with a rule that refuses some of what ONNX allows."""
