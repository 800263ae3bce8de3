"""What classical models do with their scores: the transform at the end, and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import ops, tf


def transformed(scores: Expr, transform: str) -> Expr:
    """Scores of two or more columns after `post_transform`."""
    match transform:
        case "SOFTMAX":
            return tf.nn.softmax(scores)
        case "LOGISTIC":
            return tf.sigmoid(scores)
        case "SOFTMAX_ZERO":
            return ops.softmax_zero(scores)
        case "PROBIT":
            return ops.probit(scores)
    return scores


def transformed_column(scores: Expr, transform: str) -> Expr:
    """A single column of scores after `post_transform`, which ONNX Runtime then ignores unless it is PROBIT."""
    return ops.probit(scores) if transform == "PROBIT" else scores


def labels(e: Emitter, index: Expr, names: Sequence[int] | Sequence[str]) -> Expr:
    """The label of each class index."""
    if names and isinstance(names[0], str):
        return tf.gather(e.constant(np.array(names, object), "labels"), index)
    if list(names) == list(range(len(names))):
        return index
    return tf.gather(e.constant(np.array(names, np.int64), "labels"), index)
