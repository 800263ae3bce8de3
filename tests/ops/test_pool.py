"""Pools against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, node_model, source

from onward.scoreboard.suite import prepare

SIZES = {1: (11,), 2: (9, 8), 3: (6, 7, 5)}
WINDOWS = [
    {},
    {"strides": 2},
    {"strides": 2, "pads": (1, 1)},
    {"strides": 3, "pads": (0, 1)},
    {"strides": 3, "pads": (2, 1), "ceil_mode": 1},
    {"strides": 2, "ceil_mode": 1},
    {"strides": 2, "pads": (1, 1), "ceil_mode": 1},
    {"dilations": 2, "pads": (1, 2)},
    {"auto_pad": "VALID", "strides": 2},
    {"auto_pad": "SAME_UPPER", "strides": 2},
    {"auto_pad": "SAME_LOWER", "strides": 2},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "SAME_UPPER", "strides": 4, "kernel_shape": 1},
]


def pool(op, rank, window, x=None, outputs=1, **more):
    attributes = {"kernel_shape": [3] * rank, **more}
    for name, value in window.items():
        if name == "pads":
            attributes[name] = [n for n in value for _ in range(rank)]
        elif name in ("strides", "dilations", "kernel_shape"):
            attributes[name] = [value] * rank
        else:
            attributes[name] = value
    x = floats(2, 3, *SIZES[rank]) if x is None else x
    return node_model(op, [x], outputs, opset=22, **attributes)


@pytest.mark.parametrize("window", WINDOWS[:-1])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pool(rank, window):
    check(*pool("MaxPool", rank, window))
    if "strides" in window or "dilations" in window:
        check(*pool("MaxPool", rank, window, outputs=2))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool(rank, window, counted):
    if rank != 2 and counted:
        window = {**window, "ceil_mode": 0}
    check(*pool("AveragePool", rank, window, count_include_pad=counted))


@pytest.mark.parametrize("window", WINDOWS[::2])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(window, p):
    check(*pool("LpPool", 2, window, p=p))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pool_of_other_types(dtype, rank):
    x = (100 * floats(1, 2, *SIZES[rank])).clip(-128, 127)
    x = (x + 128 if dtype == np.uint8 else x).astype(dtype)
    for window in ({"strides": 2, "pads": (1, 1)}, {"pads": (0, 2)}):
        check(*pool("MaxPool", rank, window, x))
    check(*pool("MaxPool", rank, {"strides": 2, "pads": (1, 0)}, x, outputs=2))


def test_first_of_equal_elements_counts_and_columns_first():
    x = np.array([[1, 2, 2, 0], [2, 2, 1, 0], [0, 0, 0, 0]], np.float32).reshape(1, 1, 3, 4)
    for order in (0, 1):
        check(*pool("MaxPool", 2, {"kernel_shape": 2}, np.concatenate([x, x], 1), outputs=2, storage_order=order))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_pool_over_four_axes(op):
    """A kernel of one element along an axis: the same as three axes, and the fourth in the batch."""
    x = floats(1, 2, 4, 3, 5, 4)
    model, inputs = node_model(op, [x], kernel_shape=[2, 1, 3, 2], strides=[2, 1, 1, 2], pads=[1, 0, 0, 0, 0, 0, 1, 0])
    folded = np.moveaxis(x, 3, 1).reshape(3, 2, 4, 5, 4)
    plain, feed = node_model(op, [folded], kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[1, 0, 0, 0, 1, 0])
    (wanted,) = prepare("onnxruntime", plain)(feed)
    check(model, inputs, expected=[np.moveaxis(wanted.reshape(1, 3, *wanted.shape[1:]), 1, 3)])


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_global_pool(op, rank):
    check(*node_model(op, [floats(2, 3, *SIZES[rank])]))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool_undoes_max_pool(rank):
    model, inputs = pool("MaxPool", rank, {"strides": 2, "kernel_shape": 2}, outputs=2)
    y, indices = prepare("onnxruntime", model)(inputs)
    attributes = {"kernel_shape": [2] * rank, "strides": [2] * rank}
    even = [2, 3, *(2 * n for n in y.shape[2:])]
    check(*node_model("MaxUnpool", [y, indices % np.prod(even)], **attributes))


def test_max_roi_pool():
    rois = np.array([[0, 0, 0, 4, 4], [1, 2.4, 1.6, 6, 9], [0, 5, 5, 5, 5], [1, 8, 8, 30, 30]], np.float32)
    for scale in (1.0, 0.5):
        check(*node_model("MaxRoiPool", [floats(2, 3, 9, 8), rois], pooled_shape=[3, 2], spatial_scale=scale))


@pytest.mark.parametrize(
    ("op", "window", "call"),
    [
        ("MaxPool", {"strides": 2, "pads": (1, 1)}, "F.max_pool2d(in0, 3, stride=2, padding=1)"),
        ("MaxPool", {"strides": 3}, "F.max_pool2d(in0, 3)"),
        ("MaxPool", {"strides": 2, "pads": (0, 1)}, 'F.max_pool2d(F.pad(in0, (0, 1, 0, 1), value=-float("inf")), 3'),
        ("AveragePool", {"strides": 2, "ceil_mode": 1}, "F.avg_pool2d(in0, 3, stride=2, ceil_mode=True)"),
        ("AveragePool", {"pads": (1, 1)}, "F.avg_pool2d(in0, 3, stride=1, padding=1, count_include_pad=False)"),
    ],
)
def test_code_is_idiomatic(op, window, call):
    assert call in source(pool(op, 2, window)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("order", [0, 1])
def test_the_maximum_stands_never_in_the_padding(dtype, order):
    """Not even where all is as small as what is padded with."""
    low = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
    x = np.full((1, 2, 4, 5), low, dtype)
    x[0, 1, 3, 4] = 1
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "storage_order": order}
    model, feeds = node_model("MaxPool", [x], 2, **window)
    first = np.array([[r + 4 * c if order else 5 * r + c for c in (0, 1, 3)] for r in (0, 1)])
    index = np.stack([first, first + 20])[None]
    index[0, 1, 1, 2] = 39
    y = np.full((1, 2, 2, 3), low, dtype)
    y[0, 1, 1, 2] = 1
    check(model, feeds, expected=[y, index])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_pool_over_three_axes_in_other_precisions(op, dtype):
    x = floats(1, 2, 5, 5, 5)
    model, feeds = node_model(op, [x.astype(dtype)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    wide, _ = node_model(op, [x], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    wanted = prepare("onnxruntime", wide)([x.astype(dtype).astype(np.float32)])[0].astype(dtype)
    check(model, feeds, expected=[wanted], rtol=1e-6 if dtype == np.float64 else None)


@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool", "MaxPool", "AveragePool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pool_of_an_empty_batch(op, rank):
    window = {} if op.startswith("Global") else {"kernel_shape": [2] * rank, "strides": [2] * rank}
    model, feeds = node_model(op, [np.zeros((0, 2, *[4] * rank), np.float32)], **window)
    size = [1] * rank if op.startswith("Global") else [2] * rank
    check(model, feeds, expected=[np.zeros((0, 2, *size), np.float32)], backends=["torch", "tensorflow", "keras"])
