"""Resize against ONNX Runtime in every mode, and where it is one call of PyTorch's."""

import itertools

import numpy as np
import pytest
from harness import check, finish, floats, node_model, source
from onnx import helper

from onward.errors import RunFailure
from onward.scoreboard.suite import prepare

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
OPSET = 19


def model(x, *, sizes=None, scales=None, roi=None, fixed=(1, 2, 3), **attributes):
    as_float = {"roi": roi, "scales": scales}
    given = [None if v is None else np.array(v, np.float32) for v in as_float.values()]
    inputs = [x, *given, None if sizes is None else np.array(sizes, np.int64)]
    kept = [i for i in fixed if inputs[i] is not None]
    return node_model("Resize", inputs, fixed=kept, opset=OPSET, **attributes)


def body(proto) -> str:
    return source(proto).partition("def forward")[2].partition("def load")[0]


@pytest.mark.parametrize(("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS)))
def test_nearest(coordinates, rounding):
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    x = floats(2, 3, 7, 10)
    for sizes in ([2, 3, 8, 5], [2, 3, 1, 13], [2, 3, 14, 30]):
        check(*model(x, sizes=sizes, **attributes))
    check(*model(x, scales=[1, 1, 2, 0.5], **attributes))
    check(*model(x, scales=[1, 1, 3, 1.5], fixed=(), **attributes), unknown=coordinates != "align_corners")


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.float16])
def test_nearest_of_other_types(dtype):
    x = (40 * np.abs(floats(1, 2, 5, 4))).astype(dtype)
    check(*model(x, sizes=[1, 2, 7, 11]))
    check(*model(x, scales=[1, 1, 2, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor"))


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_smooth(mode, coordinates):
    attributes = {"coordinate_transformation_mode": coordinates, "mode": mode}
    x = floats(2, 3, 6, 9)
    for sizes in ([2, 3, 12, 4], [2, 3, 1, 10], [2, 3, 7, 9]):
        check(*model(x, sizes=sizes, **attributes), atol=2e-5)
    check(*model(x, scales=[1, 1, 2, 3], **attributes), atol=2e-5)
    check(*model(x, sizes=[9, 5], axes=[2, 3], **attributes), atol=2e-5)
    if coordinates != "align_corners":  # there, ONNX Runtime rounds the length before it scales
        check(*model(x, scales=[1, 1, 0.6, 1.3], **attributes), atol=2e-5)


@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 2, 4, 3, 5), (6, 5)])
def test_linear_of_other_ranks(shape):
    sizes = [n if len(shape) > 2 and i < 2 else n + 2 + i for i, n in enumerate(shape)]
    check(*model(floats(*shape), sizes=sizes, mode="linear"))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_linear_of_whole_numbers_is_cut_off(dtype):
    x = (np.arange(120).reshape(1, 2, 6, 10) * 7 % 121).astype(dtype)
    check(*model(x, sizes=[1, 2, 11, 7], mode="linear"))
    check(*model(x, scales=[1, 1, 2, 2], mode="linear", coordinate_transformation_mode="asymmetric"))


@pytest.mark.parametrize("attributes", [{"cubic_coeff_a": -0.5}, {"exclude_outside": 1}])
def test_cubic_filters(attributes):
    x = floats(1, 2, 6, 7)
    check(*model(x, sizes=[1, 2, 9, 4], mode="cubic", **attributes), atol=2e-5)
    check(*model(x, scales=[1, 1, 0.8, 2], mode="cubic", **attributes), atol=2e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
def test_antialias(mode, exclude):
    attributes = {"mode": mode, "antialias": 1, "exclude_outside": exclude, "cubic_coeff_a": -0.5}
    x = floats(1, 2, 12, 15)
    for sizes in ([1, 2, 5, 4], [1, 2, 7, 20]):
        check(*model(x, sizes=sizes, **attributes), atol=2e-5)
    check(*model(x, scales=[1, 1, 0.4, 0.7], **attributes), atol=2e-5)
    if mode == "linear":
        check(*model((100 + 30 * x).astype(np.uint8), sizes=[1, 2, 5, 4], **attributes))
        check(*model((30 * x).astype(np.int32), sizes=[1, 2, 5, 4], **attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop(mode):
    attributes = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "mode": mode,
        "axes": [2, 3],
        "extrapolation_value": 7.5,
    }
    x = floats(1, 2, 6, 7)
    check(*model(x, sizes=[3, 5], roi=[0.2, 0.1, 0.8, 0.7], **attributes), atol=2e-5)
    check(*model(x, sizes=[9, 1], roi=[-0.3, 0.1, 1.2, 0.7], fixed=(), **attributes), atol=2e-5)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[9, 9], [3, 10], [5, 2]])
def test_keeping_the_aspect_ratio(policy, sizes):
    x = floats(1, 2, 6, 8)
    for mode in ("nearest", "linear"):
        check(*model(x, sizes=sizes, axes=[2, 3], keep_aspect_ratio_policy=policy, mode=mode))


def test_axes_from_behind():
    """Of a size that is known when the model runs, too."""
    for fixed in ((3,), ()):
        check(*model(floats(2, 3, 4, 5), sizes=[7, 4], axes=[-2, -1], mode="linear", fixed=fixed))


def test_batch_and_channels_may_be_resized():
    check(*model(floats(2, 3, 4, 5), sizes=[4, 2, 8, 5]))
    check(*model(floats(3, 4), scales=[2, 1.5], fixed=()))


@pytest.mark.parametrize(
    ("attributes", "call"),
    [
        (
            {"scales": [1, 1, 2, 2], "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            "F.interpolate(in0, scale_factor=2)",
        ),
        ({"scales": [1, 1, 2, 2]}, "F.interpolate(in0, scale_factor=2)"),
        ({"sizes": [1, 2, 5, 9], "mode": "linear"}, 'F.interpolate(in0, size=(5, 9), mode="bilinear")'),
        (
            {"scales": [1, 1, 2, 2], "mode": "linear", "coordinate_transformation_mode": "align_corners"},
            'F.interpolate(in0, scale_factor=2, mode="bilinear", align_corners=True)',
        ),
        (
            {"sizes": [1, 2, 3, 4], "mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
            'F.interpolate(in0, size=(3, 4), mode="bicubic")',
        ),
    ],
)
def test_code_is_idiomatic(attributes, call):
    proto, inputs = model(floats(1, 2, 6, 7), **attributes)
    assert call in body(proto)
    check(proto, inputs, atol=2e-5)


def test_sizes_taken_from_another_tensor_are_numbers():
    nodes = [
        helper.make_node("Shape", ["x"], ["first"], start=0, end=2),
        helper.make_node("Shape", ["like"], ["last"], start=2),
        helper.make_node("Concat", ["first", "last"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    kinds = [helper.make_tensor_value_info(n, 1, [f"{n}{i}" for i in range(4)]) for n in ("x", "like")]
    proto = finish(helper.make_graph(nodes, "g", kinds, [helper.make_tensor_value_info("y", 1, None)]), OPSET)
    assert 'F.interpolate(x, size=(like.shape[2], like.shape[3]), mode="bilinear")' in body(proto)
    check(proto, [floats(1, 2, 4, 5), floats(1, 1, 7, 3)], unknown=False)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
def test_nothing_left(mode, antialias):
    """ONNX Runtime refuses a size of 0, not a scale that leads to it; ONNX's reference takes both."""
    attributes = {"mode": mode} | ({"antialias": 1} if antialias and mode != "nearest" else {})
    x, empty = floats(1, 2, 4, 5), np.zeros((1, 2, 0, 10), np.float32)
    for fixed in ((1, 2, 3), ()):
        shrunk, given = model(x, scales=[1, 1, 0.1, 2], fixed=fixed, **attributes)
        calls = fixed and mode != "nearest" and not antialias  # of unknown lengths, F.interpolate, which refuses this
        check(shrunk, given, expected=[empty], unknown=not calls)
        check(*model(x, sizes=[1, 2, 0, 10], fixed=fixed, **attributes), expected=[empty])
        check(*model(x[:, :, :0], sizes=[1, 2, 0, 10], fixed=fixed, **attributes), expected=[empty])
    check(*model(x[:, :, :0], scales=[1, 1, 3, 2], fixed=(), **attributes), expected=[empty])
    if not antialias:
        check(*model(x, scales=[1, 1, 0.1, 2], fixed=(), **attributes))
        check(*model(x[:, :, :0], scales=[1, 1, 3, 2], fixed=(), **attributes))


def test_nothing_to_resize_from():
    with pytest.raises(RunFailure, match="cannot be resized"):
        proto, given = model(floats(1, 2, 0, 5), sizes=[1, 2, 4, 10])
        prepare("torch", proto)(given)


def test_a_scale_that_keeps_the_length_still_moves_the_elements():
    x = np.arange(3, dtype=np.float32).reshape(1, 1, 3, 1)
    places = (np.arange(3, dtype=np.float32) + 0.5) / np.float32(1.25) - 0.5
    wanted = np.clip(places, 0, 2).reshape(x.shape)
    check(*model(x, scales=[1, 1, 1.25, 1], mode="linear"), expected=[wanted])
