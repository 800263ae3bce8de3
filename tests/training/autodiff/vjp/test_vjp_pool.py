"""Gradients of pools."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import (
    TARGET,
    by_autograd,
    check_model,
    check_op,
    close,
    run_onnxruntime,
    run_torch,
    single,
    single_precision,
    with_target,
)

from onward.training.autodiff.derivatives import gradient

Shape = tuple[int, ...]


def distinct(*shape: int) -> np.ndarray:
    """Numbers far enough apart for differences."""
    count = int(np.prod(shape))
    return (np.random.default_rng(count).permutation(count).reshape(shape) - count / 3) / 4


WINDOWS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "one axis": ((2, 1, 5), {"kernel_shape": [2]}),
    "three axes": ((1, 1, 2, 3, 4), {"kernel_shape": [2, 2, 2], "strides": [1, 1, 2]}),
    "tiles": ((1, 2, 4, 4), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "tiles and a rest": ((2, 1, 5, 4), {"kernel_shape": [2, 3], "strides": [2, 3]}),
    "overlap": ((1, 1, 5, 5), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "overlap, uneven pads": ((1, 1, 4, 3), {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1]}),
    "gaps": ((1, 1, 5, 6), {"kernel_shape": [1, 2], "strides": [2, 3]}),
    "ceil": ((1, 1, 5, 4), {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    "ceil and pads": ((1, 1, 6, 5), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1] * 4}),
    "dilations": ((1, 1, 5, 4), {"kernel_shape": [2, 2], "dilations": [2, 1], "strides": [1, 2]}),
    "same upper": ((1, 1, 5, 4), {"kernel_shape": [3, 2], "strides": [2, 1], "auto_pad": "SAME_UPPER"}),
    "same lower": ((1, 1, 4, 5), {"kernel_shape": [2, 2], "strides": [1, 2], "auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 3, 3), {"kernel_shape": [2, 2], "auto_pad": "VALID"}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_max_pool(name: str) -> None:
    shape, attributes = WINDOWS[name]
    check_op("MaxPool", {"x": distinct(*shape)}, opset=22, **attributes)


def test_max_pool_counts_columns_first() -> None:
    check_op("MaxPool", {"x": distinct(1, 2, 3, 4)}, outputs=2, kernel_shape=[2, 2], storage_order=1)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("padding_counts", [0, 1])
def test_average_pool(name: str, padding_counts: int) -> None:
    shape, attributes = WINDOWS[name]
    check_op("AveragePool", {"x": distinct(*shape)}, opset=22, count_include_pad=padding_counts, **attributes)


@pytest.mark.parametrize("name", ["one axis", "tiles", "overlap", "dilations", "same upper"])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(name: str, p: int) -> None:
    shape, attributes = WINDOWS[name]
    check_op("LpPool", {"x": distinct(*shape)}, opset=22, p=p, **attributes)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 2, 3), (1, 2, 2, 3)])
def test_global_pools(op: str, shape: Shape) -> None:
    check_op(op, {"x": distinct(*shape)}, opset=21)


@pytest.mark.parametrize("p", [1, 3])
def test_global_lp_pool(p: int) -> None:
    check_op("GlobalLpPool", {"x": distinct(2, 1, 2, 2)}, p=p)


def test_max_unpool() -> None:
    places = np.asarray([[[[5, 7], [13, 15]]]])
    inputs = {"x": distinct(1, 1, 2, 2), "places": places}
    check_op("MaxUnpool", inputs, kernel_shape=[2, 2], strides=[2, 2])
    larger = {**inputs, "shape": np.asarray([1, 1, 5, 6])}
    model = single("MaxUnpool", larger, kernel_shape=[2, 2], strides=[2, 2])
    check_model(model, larger, runtime=False)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("MaxPool", {"kernel_shape": [2, 3]}),
        ("GlobalMaxPool", {}),
    ],
)
def test_the_first_of_equal_elements_gets_the_gradient(op: str, attributes: dict[str, Any]) -> None:
    """As in PyTorch; both runtimes agree. A layer of Relu makes many such elements."""
    inputs = {"x": np.maximum(distinct(2, 2, 6, 6).round(), 0)}
    model = with_target(single(op, inputs, **attributes), inputs)
    derived = gradient(model, TARGET, ["x"]).to_proto()
    expected = by_autograd(model, inputs, ["x"])["x"]
    close(run_torch(derived, inputs)["x.grad"], expected, 1e-9, "on PyTorch")
    close(run_onnxruntime(single_precision(derived), inputs)["x.grad"], expected, 1e-6, "on ONNX Runtime")


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_max_roi_pool(scale: float) -> None:
    rois = np.asarray([[0, 0, 0, 3, 4], [1, 1, 2, 3, 3], [1, -2, 1, 0, 9]], np.float64)
    inputs = {"x": distinct(2, 2, 5, 4), "rois": rois}
    check_op("MaxRoiPool", inputs, wrt=["x"], pooled_shape=[2, 2], spatial_scale=scale)
