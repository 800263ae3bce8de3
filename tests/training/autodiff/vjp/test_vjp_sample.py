"""Gradients of reading images between their elements."""

import numpy as np
import pytest
from gradient_checks import check_model, check_op, single


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def between(*shape: int, low: float = -0.9, high: float = 0.9) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 1).uniform(low, high, shape)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(padding: str, align: int) -> None:
    """Beyond the borders, too."""
    inputs = {"x": normal(2, 1, 3, 4), "grid": between(2, 2, 2, 2, low=-1.4, high=1.4)}
    check_op("GridSample", inputs, opset=22, padding_mode=padding, align_corners=align)


@pytest.mark.parametrize(("padding", "align"), [("zeros", 0), ("border", 1), ("reflection", 0)])
def test_cubic_grid_sample(padding: str, align: int) -> None:
    inputs = {"x": normal(1, 1, 3, 4), "grid": between(1, 2, 2, 2, low=-1.4, high=1.4)}
    options = {"mode": "cubic", "padding_mode": padding, "align_corners": align}
    check_op("GridSample", inputs, opset=22, second=padding == "zeros", **options)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_volumes(mode: str) -> None:
    inputs = {"x": normal(1, 1, 2, 3, 2), "grid": between(1, 1, 2, 2, 3)}
    check_op("GridSample", inputs, opset=22, wrt=["x"] if mode == "nearest" else None, mode=mode)


def test_nearest_elements() -> None:
    check_op("GridSample", {"x": normal(1, 2, 3, 3), "grid": between(1, 2, 2, 2)}, wrt=["x"], opset=22, mode="nearest")


@pytest.mark.parametrize(("size", "align"), [([2, 1, 2, 3], 0), ([1, 1, 3, 2], 1), ([1, 2, 2, 2, 2], 1)])
def test_affine_grid(size: list[int], align: int) -> None:
    axes = len(size) - 2
    inputs = {"theta": normal(size[0], axes, axes + 1), "size": np.asarray(size)}
    check_op("AffineGrid", inputs, align_corners=align)


ROIS = np.asarray([[0.3, 0.4, 3.3, 2.6], [1.1, 0.2, 2.9, 3.1], [-0.9, 0.7, 2.2, 5.3]])


@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(coordinates: str, ratio: int, mode: str) -> None:
    half = coordinates == "half_pixel"
    inputs = {"x": normal(2, 1, 3, 4), "rois": ROIS, "images": np.asarray([0, 1, 1])}
    options = {"output_height": 2, "output_width": 2, "spatial_scale": 0.9, "sampling_ratio": ratio, "mode": mode}
    model = single("RoiAlign", inputs, coordinate_transformation_mode=coordinates, **options)
    check_model(model, inputs, second=ratio == 2 and half)
