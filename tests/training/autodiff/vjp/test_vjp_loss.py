"""Gradients of losses on classes."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import (
    TARGET,
    check_model,
    check_op,
    close,
    differences,
    run_onnxruntime,
    run_torch,
    single,
    single_precision,
    with_target,
)

from onward.training.autodiff.derivatives import gradient


def uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def classes(*shape: int, ignored: int | None = None) -> np.ndarray:
    found = np.random.default_rng(len(shape)).integers(0, 3, shape)
    if ignored is not None:
        found.reshape(-1)[1] = ignored
    return found


LOSSES = ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]


@pytest.mark.parametrize("op", LOSSES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("more", [(), (2,)])
def test_reductions(op: str, reduction: str, more: tuple[int, ...]) -> None:
    check_op(op, {"x": uniform(4, 3, *more), "t": classes(4, *more)}, reduction=reduction)


@pytest.mark.parametrize("op", LOSSES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, -1, 1])
def test_weights_and_ignored(op: str, reduction: str, ignored: int | None) -> None:
    options: dict[str, Any] = {} if ignored is None else {"ignore_index": ignored}
    given = {"x": uniform(4, 3, 2), "t": classes(4, 2, ignored=ignored), "w": np.asarray([0.5, 2.0, 1.5])}
    check_op(op, given, wrt=["x"], second=False, reduction=reduction, **options)
    model = with_target(single(op, given, reduction=reduction, **options), given)
    found = gradient(model, TARGET, ["w"]).to_proto()
    numeric = differences(model, given, ["w"], TARGET)["w"]  # PyTorch takes the weights for settings
    close(run_torch(found, given)["w.grad"], numeric, 1e-6, "the weights of the classes")
    close(run_onnxruntime(single_precision(found), given)["w.grad"], numeric, 1e-4, "the same on ONNX Runtime")
    del given["w"]
    check_op(op, given, second=False, reduction=reduction, **options)


def test_logarithms_as_well() -> None:
    check_op("SoftmaxCrossEntropyLoss", {"x": uniform(4, 3), "t": classes(4)}, outputs=2)
    model = single("SoftmaxCrossEntropyLoss", {"x": uniform(4, 3), "t": classes(4)}, outputs=2)
    del model.graph.output[0]
    check_model(model, {"x": uniform(4, 3), "t": classes(4)})
