"""Convolutions against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness import BACKENDS, check, floats, node_model, source, to_torch
from onnx.reference import ReferenceEvaluator

from onward.model import load

SIZES = {1: (7,), 2: (7, 6), 3: (5, 6, 4), 4: (4, 3, 4, 3)}


def body(model) -> str:
    """The lines of `forward`."""
    text = source(model).partition("def forward")[2]
    return text.partition("def load")[0]


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("fixed", [(), (1, 2)])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": 2, "pads": (1, 1), "dilations": 2},
        {"strides": 2, "pads": (0, 2)},
        {"group": 2, "auto_pad": "VALID", "strides": 3},
        {"auto_pad": "SAME_UPPER", "strides": 2},
        {"auto_pad": "SAME_LOWER", "strides": 2, "kernel_shape": 2},
        {"auto_pad": "SAME_LOWER"},
    ],
)
def test_conv(rank, fixed, attributes):
    kernel = [2, 3, 1, 2][:rank]
    spread = {
        name: [value] * rank if name in ("strides", "dilations", "kernel_shape") else value
        for name, value in attributes.items()
    }
    if "pads" in spread:
        spread["pads"] = [p for p in attributes["pads"] for _ in range(rank)]
    if "kernel_shape" in spread:
        kernel = spread["kernel_shape"]
    groups = attributes.get("group", 1)
    x, w, b = floats(2, 2 * groups, *SIZES[rank]), floats(3 * groups, 2, *kernel), floats(3 * groups)
    check(*node_model("Conv", [x, w, b], fixed=fixed, **spread))


@pytest.mark.skipif("tensorflow" not in BACKENDS, reason="TensorFlow is not installed")
def test_volumes_with_dilations_need_no_kernel_that_few_processors_have():
    from onward.backends.tensorflow.convert import generate

    inputs = [floats(2, 4, 7, 6, 8), floats(4, 2, 2, 3, 2)]
    model, feeds = node_model("Conv", inputs, dilations=[2, 1, 2], strides=[1, 2, 1], pads=[1] * 6, group=2)
    check(model, feeds, backends=["tensorflow", "tensorflow:function"])
    assert "conv3d" not in generate(load(model)).model
    single, _ = node_model("Conv", [inputs[0], floats(4, 4, 2, 3, 2)], dilations=[2, 2, 2])
    assert "conv3d" not in generate(load(single)).model


def test_a_kernel_smaller_than_its_stride_is_not_padded():
    check(*node_model("Conv", [floats(1, 2, 7, 8), floats(3, 2, 1, 2)], auto_pad="SAME_UPPER", strides=[3, 4]))


TRANSPOSED = [
    {},
    {"strides": [2, 3], "pads": [1, 0, 1, 0], "output_padding": [1, 2]},
    {"strides": [3, 2], "pads": [0, 1, 2, 0]},
    {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 1]},
    {"strides": [2, 2], "dilations": [2, 1], "pads": [2, 1, 1, 2]},
    {"strides": [3, 2], "output_shape": [10, 8]},
    {"strides": [3, 2], "output_shape": [11, 9], "auto_pad": "SAME_UPPER"},
    {"strides": [2, 2], "output_shape": [9, 11], "output_padding": [1, 1]},
    {"strides": [2, 3], "auto_pad": "SAME_UPPER"},
    {"strides": [3, 4], "auto_pad": "SAME_LOWER"},
    {"strides": [1, 2], "auto_pad": "SAME_UPPER", "output_padding": [0, 1]},
    {"strides": [2, 2], "auto_pad": "VALID", "group": 2},
]


@pytest.mark.parametrize("attributes", TRANSPOSED)
@pytest.mark.parametrize("fixed", [(), (1, 2)])
def test_conv_transpose(attributes, fixed):
    groups = attributes.get("group", 1)
    inputs = [floats(2, 2 * groups, 4, 5), floats(2 * groups, 3, 3, 2), floats(3 * groups)]
    check(*node_model("ConvTranspose", inputs, fixed=fixed, **attributes))


@pytest.mark.parametrize("rank", [1, 3])
def test_conv_transpose_of_other_ranks(rank):
    inputs = [floats(2, 2, *SIZES[rank]), floats(2, 3, *[2, 3, 1][:rank]), floats(3)]
    check(*node_model("ConvTranspose", inputs, strides=[2] * rank, pads=[0] * rank + [1] * rank))


def test_conv_transpose_over_four_axes_is_the_gradient_of_conv():
    import torch

    from onward.backends.torch.runtime.conv import conv_nd, conv_transpose_nd

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, 5, 6, 4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, 2, 3, 1, 2, generator=generator, dtype=torch.float64)
    stride, dilation = [2, 1, 1, 3], [1, 2, 1, 1]
    y = conv_nd(x, w, None, stride, None, dilation, groups=2)
    (wanted,) = torch.autograd.grad(y.sum(), x)
    found = conv_transpose_nd(torch.ones_like(y), w, None, stride, None, dilation, 2, output_shape=x.shape[2:])
    whole = conv_transpose_nd(torch.ones_like(y), w, None, stride, None, dilation, 2)
    assert found.shape == wanted.shape
    torch.testing.assert_close(whole, wanted[tuple(slice(n) for n in whole.shape)])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_precisions(dtype):
    import torch
    import torch.nn.functional as F

    x, w, b = (floats(*s, dtype=dtype) for s in [(1, 4, 6, 6), (3, 4, 3, 3), (3,)])
    wanted = F.conv2d(*(torch.from_numpy(a).double() for a in (x, w, b)), padding=1).numpy().astype(dtype)
    model, inputs = node_model("Conv", [x, w, b], fixed=(1, 2), pads=[1, 1, 1, 1])
    check(model, inputs, expected=[wanted], rtol=5e-3 if dtype == np.float16 else 1e-12, atol=5e-3)


def test_code_is_idiomatic():
    x, w = floats(1, 3, 8, 8), floats(6, 3, 3, 3)
    model, _ = node_model("Conv", [x, w, floats(6)], fixed=(1, 2), strides=[2, 2], pads=[1, 1, 1, 1])
    assert "nn.Conv2d(3, 6, 3, stride=2, padding=1)" in source(model)
    model, _ = node_model("Conv", [x, w], fixed=(1,), pads=[0, 1, 1, 1])
    assert "nn.Conv2d(3, 6, 3, bias=False)" in source(model)
    assert "F.pad(in0, (1, 1, 0, 1))" in body(model)
    model, _ = node_model("Conv", [x, w])
    assert "F.conv2d(in0, in1)" in body(model)
    model, _ = node_model("ConvTranspose", [x, w[:3]], fixed=(1,), strides=[2, 1], output_padding=[1, 0])
    assert "nn.ConvTranspose2d(3, 3, 3, stride=(2, 1), output_padding=(1, 0), bias=False)" in source(model)


def test_weights_keep_the_names_that_pytorch_gives_them():
    model, _ = node_model("Conv", [floats(1, 2, 5, 5), floats(4, 2, 3, 3), floats(4)], fixed=(1, 2))
    for i, name in enumerate(("features.0.weight", "features.0.bias")):
        model.graph.initializer[i].name = name
        model.graph.node[0].input[i + 1] = name
    net = to_torch(model)
    assert list(net.state_dict()) == ["features.0.weight", "features.0.bias"]
    assert all(p.requires_grad for p in net.parameters())


@pytest.mark.parametrize("name", ["onnx::Conv_7", "conv.bias"])
def test_a_bias_of_zeros_is_a_bias(name):
    zeros = np.zeros(4, np.float32)
    model, inputs = node_model("Conv", [floats(1, 2, 5, 5), floats(4, 2, 3, 3), zeros], fixed=(1, 2))
    model.graph.initializer[1].name = model.graph.node[0].input[2] = name
    assert "bias=False" not in source(model)
    check(model, inputs)


def test_zeros_of_a_node_stand_for_no_bias():
    model, inputs = node_model("Conv", [floats(1, 2, 5, 5), floats(4, 2, 3, 3), np.zeros(4, np.float32)], fixed=(1, 2))
    zeros = model.graph.initializer.pop()
    model.graph.node.insert(0, onnx.helper.make_node("Constant", [], [zeros.name], value=zeros))
    assert "bias=False" in source(model)
    check(model, inputs)


@pytest.mark.parametrize(("image", "block"), [((5, 5), (1, 5)), ((6, 7), (2, 3)), ((4, 5, 6), (2, 1, 3)), ((9,), (3,))])
@pytest.mark.parametrize("attributes", [{}, {"strides": 2}, {"pads": 1}, {"dilations": 2, "strides": 2, "pads": 2}])
def test_col2im(image, block, attributes):
    rank = len(image)
    spread = {k: [v] * (rank * (1 + (k == "pads"))) for k, v in attributes.items()}
    steps = [
        (n + 2 * attributes.get("pads", 0) - attributes.get("dilations", 1) * (k - 1) - 1)
        // attributes.get("strides", 1)
        + 1
        for n, k in zip(image, block, strict=True)
    ]
    if min(steps) < 1:
        pytest.skip("the block does not fit")
    x = floats(2, 3 * int(np.prod(block)), int(np.prod(steps)))
    model, inputs = node_model("Col2Im", [x, np.array(image), np.array(block)], fixed=(1, 2), **spread)
    # not ONNX Runtime: it leaves channels out where there is padding
    check(model, inputs, expected=ReferenceEvaluator(model).run(None, {"in0": x}))


@pytest.mark.parametrize(("groups", "offset_groups"), [(1, 1), (2, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_deform_conv(groups, offset_groups, masked):
    steps = (3, 4)
    inputs = [
        floats(2, 4, 6, 5),
        floats(6, 4 // groups, 3, 2),
        2 * floats(2, offset_groups * 12, *steps),
        floats(6),
        floats(2, offset_groups * 6, *steps) if masked else None,
    ]
    attributes = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}
    model, feed = node_model(
        "DeformConv",
        inputs[: 5 if masked else 4],
        fixed=(1, 3),
        group=groups,
        offset_group=offset_groups,
        **attributes,
    )
    check(model, feed)


def test_other_convolutions_of_an_empty_batch():
    columns = np.zeros((0, 3 * 8, 27), np.float32)
    model, inputs = node_model("Col2Im", [columns, np.array([4, 4, 4]), np.array([2, 2, 2])], fixed=(1, 2))
    check(model, inputs, expected=[np.zeros((0, 3, 4, 4, 4), np.float32)])
    x, offset = np.zeros((0, 2, 5, 5), np.float32), np.zeros((0, 18, 3, 3), np.float32)
    model, inputs = node_model("DeformConv", [x, floats(4, 2, 3, 3), offset], fixed=(1,))
    check(model, inputs, expected=[np.zeros((0, 4, 3, 3), np.float32)])
    model, inputs = node_model("ConvTranspose", [x, floats(2, 4, 3, 3)], fixed=(1,), strides=[2, 2])
    check(model, inputs, expected=[np.zeros((0, 4, 11, 11), np.float32)])
