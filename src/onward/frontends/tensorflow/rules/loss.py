"""Losses."""

from __future__ import annotations

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("L2Loss")
def l2_loss(op: Writer, x: Tensor) -> Tensor:
    return op.reduced("ReduceSumSquare", x, None, keepdims=False) * 0.5


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(op: Writer, logits: Tensor, labels: Tensor) -> list[Tensor]:
    """Of each row; and its gradient, which is the op's second result."""
    log = op.LogSoftmax(logits, axis=-1)
    loss = -op.reduced("ReduceSum", labels * log, [1], keepdims=False)
    return [loss, op.Exp(log) - labels]


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(op: Writer, logits: Tensor, labels: Tensor) -> list[Tensor]:
    log = op.LogSoftmax(logits, axis=-1)
    places = op.unsqueeze(op.int64(labels), [1])
    loss = -op.squeeze(op.GatherElements(log, places, axis=1), [1])
    classes = op.Range(op.index(0), op.Gather(op.Shape(logits), op.index(1)), op.index(1))
    chosen = op.Equal(places, op.unsqueeze(classes, [0])).cast(logits.dtype)
    return [loss, op.Exp(log) - chosen]
