"""Gradients of normalisations."""

from typing import Any

import numpy as np
import onnx
import pytest
from gradient_checks import (
    TARGET,
    check_model,
    check_op,
    check_second_order,
    close,
    differences,
    run_onnxruntime,
    run_torch,
    single,
    single_precision,
    with_target,
)

from onward.training.autodiff.derivatives import gradient

Shape = tuple[int, ...]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape) * 2 + 0.5


def positive(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).uniform(0.5, 2, shape)


def batch(*shape: int) -> dict[str, np.ndarray]:
    channels = shape[1]
    names = ("scale", "bias", "mean", "var")
    return {"x": normal(*shape), **{name: positive(channels) + i / 9 for i, name in enumerate(names)}}


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 2), (2, 2, 2, 3)])
def test_batch_norm(shape: Shape) -> None:
    check_op("BatchNormalization", batch(*shape), wrt=["x", "scale", "bias"], epsilon=1e-3)


def test_batch_norm_by_its_statistics() -> None:
    """PyTorch has no such derivatives."""
    inputs, names = batch(2, 2, 3), ["mean", "var"]
    model = with_target(single("BatchNormalization", inputs, epsilon=1e-3), inputs)
    derived = gradient(model, TARGET, names).to_proto()
    found, expected = run_torch(derived, inputs), differences(model, inputs, names, TARGET)
    for name in names:
        close(found[f"{name}.grad"], expected[name], 1e-6, name)
    check_second_order(derived, inputs, names)


@pytest.mark.parametrize("shape", [(4, 2), (2, 2, 2, 3)])
@pytest.mark.parametrize("momentum", [0.8, 0.0])
@pytest.mark.parametrize("outputs", [1, 3])
def test_batch_norm_in_training(shape: Shape, momentum: float, outputs: int) -> None:
    wrt = None if outputs == 3 and momentum else ["x", "scale", "bias"]
    options = {"outputs": outputs, "epsilon": 1e-3, "momentum": momentum, "training_mode": 1}
    check_op("BatchNormalization", batch(*shape), wrt=wrt, **options)


@pytest.mark.parametrize("shape", [(2, 2, 4), (2, 2, 2, 3)])
def test_instance_norm(shape: Shape) -> None:
    check_op("InstanceNormalization", {"x": normal(*shape), "scale": positive(2), "bias": normal(2)}, epsilon=1e-3)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    inputs = {"x": normal(2, 4, 2, 2), "scale": positive(4), "bias": normal(4)}
    check_op("GroupNormalization", inputs, num_groups=groups, epsilon=1e-3)


LAYERS: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((3, 4), (4,), {}),
    ((2, 2, 3), (2, 3), {"axis": 1, "epsilon": 0.1}),
    ((2, 2, 3), (3,), {"axis": -2}),
    ((2, 3), (1,), {"axis": -1}),
    ((2, 3), (2, 3), {"axis": 0}),
]


@pytest.mark.parametrize(("x", "scale", "attributes"), LAYERS)
@pytest.mark.parametrize("biased", [True, False])
def test_layer_norm(x: Shape, scale: Shape, attributes: dict[str, Any], biased: bool) -> None:
    inputs = {"x": normal(*x), "scale": positive(*scale)}
    if biased:
        inputs["bias"] = normal(*scale)
    check_op("LayerNormalization", inputs, stash_type=11, **attributes)


def test_statistics_of_layer_norm() -> None:
    inputs = {"x": normal(2, 3, 2), "scale": positive(3, 2), "bias": normal(3, 2)}
    check_op("LayerNormalization", inputs, outputs=3, stash_type=11, axis=1)


def test_statistics_less_precise_than_the_input_are_not_used() -> None:
    check_op("LayerNormalization", {"x": normal(2, 4), "scale": positive(4)}, second=False)


@pytest.mark.parametrize(("x", "scale", "attributes"), LAYERS)
def test_rms_norm(x: Shape, scale: Shape, attributes: dict[str, Any]) -> None:
    check_op("RMSNormalization", {"x": normal(*x), "scale": positive(*scale)}, opset=23, **attributes)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_local_response_norm(size: int) -> None:
    """ONNX Runtime has none of an even size."""
    inputs = {"x": normal(2, 5, 2, 1)}
    model = single("LRN", inputs, size=size, alpha=0.5, beta=0.6, bias=1.5)
    check_model(model, inputs, runtime=size % 2 == 1)


@pytest.mark.parametrize("attributes", [{}, {"p": 1}, {"axis": 0, "p": 2}, {"axis": 1, "p": 1}])
def test_lp_normalize(attributes: dict[str, Any]) -> None:
    check_op("LpNormalization", {"x": normal(2, 3, 2)}, **attributes)


@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [-1, 0]])
def test_mean_variance_norm(axes: list[int]) -> None:
    check_op("MeanVarianceNormalization", {"x": normal(2, 2, 2, 2)}, axes=axes)


def in_single_precision(op: str, inputs: dict[str, np.ndarray], **attributes: Any) -> None:
    """A model of single precision has the gradients of one of double precision."""
    exact = with_target(single(op, inputs, **attributes), inputs)
    names = list(inputs)
    expected = run_torch(gradient(exact, TARGET, names).to_proto(), inputs)
    rough: onnx.ModelProto = gradient(single_precision(exact), TARGET, names).to_proto()
    found = run_onnxruntime(rough, inputs)
    for name in names:
        close(found[f"{name}.grad"], expected[f"{name}.grad"], 1e-5, name)


def test_layer_norm_uses_its_own_statistics() -> None:
    inputs = {"x": normal(5, 8) + 3, "scale": positive(8), "bias": normal(8)}
    in_single_precision("LayerNormalization", inputs)
    in_single_precision("LayerNormalization", inputs, axis=0)
