"""Sampling, regions and boxes against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, node_model, source
from onnx.reference import ReferenceEvaluator


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(padding, mode, align):
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align, "opset": 20}
    model, inputs = node_model("GridSample", [floats(2, 3, 5, 6), 1.3 * floats(2, 4, 3, 2)], **attributes)
    assert "F.grid_sample(in0, in1" in source(model)
    check(model, inputs, atol=1e-4)
    if mode != "cubic":
        check(*node_model("GridSample", [floats(2, 3, 5, 6, 4), floats(2, 4, 3, 2, 3)], **attributes), atol=1e-4)


def test_what_is_between_two_elements_is_rounded_before_it_is_reflected():
    """PyTorch and TensorFlow reflect it first."""
    grid = np.array([-1.5, -1.25, -1, 0, 0.5, 1, 1.5, 1.75], np.float32).reshape(1, 1, 4, 2)
    for align in (0, 1):
        attributes = {"mode": "nearest", "padding_mode": "reflection", "align_corners": align, "opset": 20}
        check(*node_model("GridSample", [floats(1, 2, 4, 5), grid], **attributes), backends=["jax"])


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
@pytest.mark.parametrize(("mode", "rank"), [("linear", 1), ("nearest", 1), ("cubic", 1), ("cubic", 3)])
def test_grid_sample_over_other_numbers_of_axes(padding, mode, rank):
    sizes, steps = (5, 4, 3)[:rank], (2, 1, 2)[:rank]
    x, grid = floats(1, 2, *sizes), 1.2 * floats(1, *steps, rank)
    for align in (0, 1):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": align, "opset": 20}
        model, inputs = node_model("GridSample", [x, grid], **attributes)
        wanted = ReferenceEvaluator(model).run(None, {"in0": x, "in1": grid})
        check(model, inputs, expected=[wanted[0].astype(np.float32)], atol=1e-4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_the_helper_does_what_grid_sample_does(padding, mode):
    import torch
    import torch.nn.functional as F

    from onward.backends.torch.runtime.sample import grid_sample_nd

    x, grid = (torch.from_numpy(a) for a in (floats(2, 3, 5, 6), 1.5 * floats(2, 4, 3, 2)))
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    for align in (False, True):
        wanted = F.grid_sample(x, grid, name, padding, align)
        torch.testing.assert_close(grid_sample_nd(x, grid, mode, padding, align), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 4, 5, 6)])
def test_affine_grid(size, align, fixed):
    n = len(size) - 2
    check(*node_model("AffineGrid", [floats(2, n, n + 1), np.array(size)], fixed=fixed, align_corners=align))


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("shift", ["half_pixel", "output_half_pixel"])
def test_roi_align(mode, ratio, shift):
    rois = np.array([[0, 0, 5, 5], [-2, -3, 4, 20], [3.3, 1.2, 3.4, 9.1], [30, 30, 40, 40], [7, 7, 7, 7]], np.float32)
    attributes = {"output_height": 3, "output_width": 2, "spatial_scale": 0.7, "opset": 16}
    model = node_model(
        "RoiAlign",
        [floats(2, 3, 8, 9), rois, np.array([0, 1, 1, 0, 1])],
        mode=mode,
        sampling_ratio=ratio,
        coordinate_transformation_mode=shift,
        **attributes,
    )
    check(*model)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("most", "iou", "score"), [(3, 0.5, 0.3), (1000, 0.2, 0.0), (20, 0.0, 0.8), (0, 0.5, 0.1)])
def test_non_max_suppression(center, rounded, most, iou, score):
    generator = np.random.default_rng(0)
    boxes = generator.uniform(0, 1, (2, 300, 4)).astype(np.float32)
    scores = generator.uniform(0, 1, (2, 3, 300)).astype(np.float32)
    if rounded:  # so that there are equal scores, equal boxes and boxes without area
        boxes, scores = np.round(boxes * 4) / 4, np.round(scores * 5) / 5
    limits = [np.array([most]), np.array([iou], np.float32), np.array([score], np.float32)]
    for fixed in ((), (2, 3, 4)):
        inputs = [boxes, scores, *limits]
        check(*node_model("NonMaxSuppression", inputs, fixed=fixed, center_point_box=center))
    check(*node_model("NonMaxSuppression", [boxes, scores, limits[0]], fixed=(2,), center_point_box=center))


@pytest.mark.parametrize("sizes", [(1, 1, 0), (2, 0, 5), (0, 3, 5)])
def test_non_max_suppression_of_nothing(sizes):
    batch, _, count = sizes
    inputs = [np.zeros((batch, count, 4), np.float32), np.zeros(sizes, np.float32), np.array([3])]
    check(*node_model("NonMaxSuppression", inputs, fixed=(2,)), expected=[np.zeros((0, 3), np.int64)])


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_infinitely_far_outside_are_zeros(mode):
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4)
    grid = np.array([np.inf, -np.inf, 1e30, -1e30, 0.25], np.float32).reshape(1, 5, 1)
    model, inputs = node_model("GridSample", [x, grid], mode=mode)
    check(model, inputs, expected=[np.array([[[0, 0, 0, 0, 3]]], np.float32)])
