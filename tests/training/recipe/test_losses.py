"""Losses, values and gradients, against torch.nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

from onward.errors import OnwardError
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Huber,
    KLDivergence,
    Loss,
    MeanSquaredError,
    NegativeLogLikelihood,
    loss_named,
)
from onward.training.step_graphs import LOSS
from onward.training.trainable import prepare

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
WEIGHT = [0.5, 2.0, 1.0, 0.25, 3.0]
LABELS = np.array([1, 4, 0, 2, 4, 3])
SOME = np.array([1, -100, 0, 2, -100, 3])
PIXELS = RNG.integers(0, 5, (2, 3, 4))
SOFT = RNG.dirichlet(np.ones(5), 6).astype(np.float32)
SPARSE = np.where(SOFT < 0.1, 0, SOFT)
TARGETS = RNG.standard_normal((6, 5)).astype(np.float32)
BITS = RNG.random((6, 5)).astype(np.float32)
PREDICTION = RNG.standard_normal((6, 5)).astype(np.float32) * 2
IMAGE = RNG.standard_normal((2, 5, 3, 4)).astype(np.float32)


def weight(values: list[float] | None) -> torch.Tensor | None:
    return None if values is None else torch.tensor(values)


def cross_entropy(loss: CrossEntropy) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda x, y: F.cross_entropy(
        x,
        y,
        weight(loss.weight),  # type: ignore[arg-type]
        ignore_index=-100 if loss.ignore_index is None else loss.ignore_index,
        label_smoothing=loss.label_smoothing,
        reduction=loss.reduction,
    )


CROSS_ENTROPY = [
    (CrossEntropy(label_smoothing=s, ignore_index=i, weight=w, reduction=r), PREDICTION, y)
    for s in (0.0, 0.2)
    for w in (None, WEIGHT)
    for i, y in ((None, LABELS), (-100, SOME), (4, LABELS))
    for r in ("mean", "sum")
]
CROSS_ENTROPY += [(CrossEntropy(label_smoothing=s, weight=w), IMAGE, PIXELS) for s in (0, 0.1) for w in (None, WEIGHT)]
CROSS_ENTROPY += [
    (CrossEntropy(soft=True, label_smoothing=s, weight=w, reduction=r), PREDICTION, SOFT)
    for s in (0.0, 0.3)
    for w in (None, WEIGHT)
    for r in ("mean", "sum")
]
CROSS_ENTROPY += [(CrossEntropy(soft=True), IMAGE, np.moveaxis(RNG.dirichlet(np.ones(5), (2, 3, 4)), -1, 1))]


def run(loss: Loss | str, prediction: Array, **targets: Array) -> tuple[Array, Array]:
    """The loss of a model that gives out its only weight, and the gradient of that."""
    nodes = [helper.make_node("Identity", ["w"], ["y"])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, prediction.shape)
    graph = helper.make_graph(nodes, "identity", [], [output], [numpy_helper.from_array(prediction, "w")])
    made = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), loss, "sgd", ["w"])
    from onward.model import Model

    session = onnxruntime.InferenceSession(Model(made.gradients).to_proto().SerializeToString())
    dtypes = {v.name: np.float32 if "float" in v.type else np.int64 for v in session.get_inputs()}
    feeds = {name: np.asarray(array, dtypes[name]) for name, array in {"w": prediction, **targets}.items()}
    value, slope = session.run([LOSS, "w.grad"], feeds)
    return value, slope


def check(loss: Loss | str, reference: Callable[..., torch.Tensor], prediction: Array, target: Array) -> None:
    x = torch.tensor(prediction.astype(np.float64), requires_grad=True)
    y = torch.tensor(target) if target.dtype == np.int64 else torch.tensor(target.astype(np.float64))
    torch.set_default_dtype(torch.float64)
    try:
        expected = reference(x, y)
    finally:
        torch.set_default_dtype(torch.float32)
    expected.backward()
    value, slope = run(loss, prediction, labels=target)
    assert value.shape == ()
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=2e-6, atol=1e-6)
    assert x.grad is not None
    np.testing.assert_allclose(slope, x.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("loss", "prediction", "target"), CROSS_ENTROPY, ids=lambda value: str(value)[:100])
def test_cross_entropy(loss: CrossEntropy, prediction: Array, target: Array) -> None:
    check(loss, cross_entropy(loss), prediction, target)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("ignored", "target"), [(None, LABELS), (-100, SOME)])
@pytest.mark.parametrize("weights", [None, WEIGHT])
def test_nll(reduction: Any, ignored: int | None, target: Array, weights: list[float] | None) -> None:
    logp = np.log(SOFT)
    check(
        NegativeLogLikelihood(ignored, weights, reduction),
        lambda x, y: F.nll_loss(x, y, weight(weights), reduction=reduction),
        logp,
        target,
    )


ELEMENTWISE: list[tuple[Loss | str, Callable[..., torch.Tensor], Array]] = [
    ("bce_with_logits", F.binary_cross_entropy_with_logits, BITS),
    (BinaryCrossEntropy(reduction="sum"), lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="sum"), BITS),
    (
        BinaryCrossEntropy(pos_weight=2.5),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor(2.5)),
        BITS,
    ),
    ("mse", F.mse_loss, TARGETS),
    (MeanSquaredError("sum"), lambda x, y: F.mse_loss(x, y, reduction="sum"), TARGETS),
    ("l1", F.l1_loss, TARGETS),
    (L1("sum"), lambda x, y: F.l1_loss(x, y, reduction="sum"), TARGETS),
    ("l1", F.l1_loss, PREDICTION),
    ("huber", F.huber_loss, TARGETS),
    (Huber(0.3, "sum"), lambda x, y: F.huber_loss(x, y, delta=0.3, reduction="sum"), TARGETS),
    ("kl", lambda x, y: F.kl_div(x, y, reduction="batchmean"), SOFT),
    (KLDivergence(), lambda x, y: F.kl_div(x, y, reduction="batchmean"), SPARSE),
]


@pytest.mark.parametrize(("loss", "reference", "target"), ELEMENTWISE, ids=[str(loss) for loss, _, _ in ELEMENTWISE])
def test_elementwise_losses(loss: Loss | str, reference: Callable[..., torch.Tensor], target: Array) -> None:
    check(loss, reference, PREDICTION, target)


SHARES = RNG.uniform(0, 2, 6).astype(np.float32)
WEIGHTED: list[tuple[Loss, Callable[..., torch.Tensor], Array]] = [
    (CrossEntropy(sample_weight="share"), F.cross_entropy, LABELS),
    (CrossEntropy(sample_weight="share", soft=True), F.cross_entropy, SOFT),
    (BinaryCrossEntropy(sample_weight="share"), F.binary_cross_entropy_with_logits, BITS),
    (MeanSquaredError(sample_weight="share"), F.mse_loss, TARGETS),
    (L1(sample_weight="share"), F.l1_loss, TARGETS),
    (Huber(sample_weight="share"), F.huber_loss, TARGETS),
]


@pytest.mark.parametrize(("loss", "reference", "target"), WEIGHTED, ids=[str(loss) for loss, _, _ in WEIGHTED])
def test_samples_weigh(loss: Loss, reference: Callable[..., torch.Tensor], target: Array) -> None:
    """The mean is over the number of samples, whatever their weights are."""
    x = torch.tensor(PREDICTION, requires_grad=True)
    values = reference(x, torch.tensor(target), reduction="none")
    expected = (values * torch.tensor(SHARES).reshape(-1, *[1] * (values.ndim - 1))).mean()
    expected.backward()
    value, slope = run(loss, PREDICTION, labels=target, share=SHARES)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-5)
    assert x.grad is not None
    np.testing.assert_allclose(slope, x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_large_logits_stay_finite() -> None:
    x = np.array([[200.0, -200.0], [-300.0, 300.0]], np.float32)
    check("cross_entropy", F.cross_entropy, x, np.array([1, 1]))
    check("bce_with_logits", F.binary_cross_entropy_with_logits, x, np.array([[0.0, 1.0], [1.0, 1.0]], np.float32))


def test_errors_name_what_there_is() -> None:
    with pytest.raises(OnwardError, match="no loss 'hinge'; there are cross_entropy"):
        loss_named("hinge")
    with pytest.raises(
        OnwardError, match="the loss mse has no option 'delta'; it has labels, reduction, sample_weight"
    ):
        loss_named("mse", delta=1)
    with pytest.raises(OnwardError, match="the loss huber: delta is 'x', which is no number"):
        loss_named("huber", delta="x")
    with pytest.raises(OnwardError, match="reduction is 'none', not 'mean' or 'sum'"):
        loss_named("mse", reduction="none")
    with pytest.raises(OnwardError, match="reduction is 'none', not 'mean' or 'sum'"):
        run(MeanSquaredError("none"), PREDICTION, labels=TARGETS)  # type: ignore[arg-type]
