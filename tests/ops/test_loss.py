"""Losses against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, node_model, source

SHAPES = [(4, 5), (4, 5, 3), (2, 5, 3, 2)]


def labels(shape, dtype=np.int64, ignored=None):
    found = np.random.default_rng(0).integers(0, shape[1], (shape[0], *shape[2:])).astype(dtype)
    if ignored is not None:
        found.reshape(-1)[::3] = ignored
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 2, -1, -100])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_loss(op, shape, reduction, weighted, ignored):
    inputs = [floats(*shape), labels(shape, ignored=ignored), np.abs(floats(5)) if weighted else None]
    attributes = {} if ignored is None else {"ignore_index": ignored}
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and weighted else 1
    model, feed = node_model(op, inputs, outputs, reduction=reduction, **attributes)
    check(model, feed, unknown=shape == SHAPES[1])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_types(dtype):
    scores = floats(4, 5, dtype=dtype)
    model, feed = node_model("SoftmaxCrossEntropyLoss", [scores, labels((4, 5), np.int32)], 2)
    shifted = scores.astype(np.float64) - scores.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    mean = -np.take_along_axis(logs, labels((4, 5))[:, None], 1).mean()
    check(model, feed, expected=[mean.astype(dtype), logs.astype(dtype)], rtol=2e-3 if dtype == np.float16 else 1e-6)


def test_one_call():
    model, _ = node_model("SoftmaxCrossEntropyLoss", [floats(4, 5), labels((4, 5))], ignore_index=2)
    assert "F.cross_entropy(in0, in1, ignore_index=2)" in source(model)
