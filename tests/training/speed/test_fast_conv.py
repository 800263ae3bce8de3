"""Convolutions in other forms, for a session: the same numbers as the plain graph gives."""

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from small_networks import onnx_of
from torch import nn

from onward.graph.build import Builder
from onward.model import Model
from onward.training.recipe.optimizers import SGD
from onward.training.runtime.trainer import Trainer
from onward.training.speed import fast_conv
from onward.training.trainable import prepare

Shape = tuple[int, ...]


def session(model: ir.Model) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)


def convolution(
    op_type: str, x: Shape, w: Shape, bias: bool, batch: int | str, relu: bool, attributes: dict[str, Any]
) -> ir.Model:
    """Weights are inputs, as in training."""
    shapes: dict[str, list[int | str]] = {"x": [batch, *x[1:]], "w": [*w]}
    if bias:
        shapes["b"] = [w[0] if op_type == "Conv" else w[1]]
    values = [
        ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(dims))
        for name, dims in shapes.items()
    ]
    model = ir.Model(ir.Graph(values, [], nodes=[], name="c", opset_imports={"": 21}), ir_version=10)
    op = Builder(model)
    y = getattr(op, op_type)(*(op.tensor(value) for value in values), **attributes)
    y = op.Relu(y) if relu else y
    y.value.name = "y"
    model.graph.outputs.append(y.value)
    return model


def ops(model: ir.Model) -> set[str]:
    return {node.op_type for node in model.graph}


def check(
    op_type: str,
    x: Shape,
    w: Shape,
    bias: bool = False,
    batch: int | str = "n",
    relu: bool = False,
    **attributes: Any,
) -> set[str]:
    """Compare both forms; gives the ops of the new one."""
    model = convolution(op_type, x, w, bias, batch, relu, attributes)
    fast = fast_conv.fast_convolutions(model)
    rng = np.random.default_rng(0)
    sizes = {"x": x, "w": w, "b": (w[0] if op_type == "Conv" else w[1],)}
    plain = session(model)
    feeds = {v.name: rng.normal(size=sizes[v.name]).astype(np.float32) for v in plain.get_inputs()}
    expected, found = (s.run(None, feeds)[0] for s in (plain, session(fast)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    return ops(fast)


FEW: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "one axis": ((2, 3, 5), (64, 3, 3), {}),
    "three axes": ((1, 2, 3, 3, 4), (128, 2, 2, 2, 2), {"strides": [1, 2, 2]}),
    "pads": ((2, 5, 2, 2), (256, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "uneven pads": ((1, 2, 4, 5), (512, 2, 2, 3), {"pads": [0, 1, 2, 0]}),
    "strides and pads": ((3, 4, 6, 5), (512, 4, 3, 3), {"strides": [2, 3], "pads": [1, 1, 1, 1]}),
    "dilations": ((1, 3, 7, 6), (512, 3, 2, 2), {"dilations": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    "pointwise": ((2, 8, 3, 3), (256, 8, 1, 1), {"strides": [2, 2]}),
    "same upper": ((1, 2, 5, 4), (512, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "same lower": ((1, 2, 4, 5), (512, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "rests": ((1, 2, 6, 6), (512, 2, 3, 3), {"strides": [2, 2]}),
}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("bias", [False, True])
def test_few_places_become_one_product(name: str, bias: bool) -> None:
    x, w, attributes = FEW[name]
    found = check("Conv", x, w, bias, batch=x[0], relu=bias, **attributes)
    assert "Gemm" in found and "Conv" not in found


def test_batch_of_any_size() -> None:
    for batch in (1, 3, 40):
        assert "Gemm" in check("Conv", (batch, 16, 2, 2), (512, 16, 3, 3), pads=[1, 1, 1, 1])


MANY: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "no pads": ((2, 32, 12, 11), (48, 32, 3, 3), {}),
    "pads": ((2, 16, 9, 9), (32, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "uneven pads": ((1, 16, 8, 9), (16, 16, 3, 2), {"pads": [0, 1, 2, 0]}),
    "dilations": ((1, 16, 12, 14), (16, 16, 2, 3), {"dilations": [2, 3], "pads": [1, 2, 1, 2]}),
    "pointwise": ((2, 32, 8, 8), (64, 32, 1, 1), {}),
    "same upper": ((1, 16, 9, 8), (16, 16, 3, 2), {"auto_pad": "SAME_UPPER"}),
}
blocked = pytest.mark.skipif(not fast_conv.block_size(), reason="this ONNX Runtime has no blocked kernels")


@blocked
@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("bias", [False, True])
def test_many_places_become_blocked(name: str, bias: bool) -> None:
    x, w, attributes = MANY[name]
    found = check("Conv", x, w, bias, relu=bias, **attributes)
    assert "ReorderInput" in found and "Relu" not in found


@blocked
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [2, 0, 1, 2]])
def test_way_back_becomes_blocked(pads: list[int]) -> None:
    assert "ReorderInput" in check("ConvTranspose", (2, 64, 9, 10), (64, 64, 3, 3), pads=pads)


LEFT: dict[str, tuple[str, Shape, Shape, dict[str, Any]]] = {
    "groups": ("Conv", (2, 32, 9, 9), (32, 16, 3, 3), {"group": 2}),
    "channels that fill no block": ("Conv", (2, 12, 9, 9), (32, 12, 3, 3), {}),
    "strides": ("Conv", (2, 16, 20, 20), (16, 16, 3, 3), {"strides": [2, 2]}),
    "strides back": ("ConvTranspose", (2, 64, 9, 9), (64, 64, 3, 3), {"strides": [2, 2]}),
    "dilations back": ("ConvTranspose", (2, 64, 9, 9), (64, 64, 3, 3), {"dilations": [2, 2]}),
    "more pads than kernel": ("ConvTranspose", (2, 64, 16, 16), (64, 64, 3, 3), {"pads": [3, 3, 3, 3]}),
    "output padding": ("ConvTranspose", (2, 64, 9, 9), (64, 64, 3, 3), {"output_padding": [0, 0]}),
    "a bias back": ("ConvTranspose", (2, 64, 9, 9), (64, 64, 3, 3), {"bias": True}),
}


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left(name: str) -> None:
    op_type, x, w, attributes = LEFT[name]
    assert op_type in check(op_type, x, w, **attributes) - {"ReorderInput"}


def test_unknown_places_are_left() -> None:
    model = convolution("Conv", (2, 16, 9, 9), (16, 16, 3, 3), False, "n", False, {})
    model.graph.inputs[0].shape = ir.Shape(["n", 16, "h", "w"])
    model.graph.node(0).outputs[0].shape = ir.Shape(["n", 16, None, None])
    assert fast_conv.fast_convolutions(model) is model


@blocked
def test_a_value_that_others_read_stays() -> None:
    """The convolution's own result is read beside its Relu, and is an output."""
    model = convolution("Conv", (2, 16, 11, 11), (16, 16, 3, 3), False, "n", True, {})
    model.graph.outputs.append(model.graph.node(0).outputs[0])
    fast = fast_conv.fast_convolutions(model)
    assert {"ReorderInput", "Relu"} <= ops(fast)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 16, 11, 11)), "w": rng.normal(size=(16, 16, 3, 3))}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    for ours, plain in zip(session(fast).run(None, feeds), session(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


def test_gradients_come_in_the_shape_they_are_computed_in() -> None:
    """Not so a value that is read elsewhere, nor an output of another name."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4, 6]))
    model = ir.Model(ir.Graph([x], [], nodes=[], name="r", opset_imports={"": 21}), ir_version=10)
    op = Builder(model)
    for name in ("w.grad", "v.grad", "y"):
        product = op.tensor(x) * float(len(name))
        y = op.Identity(op.Reshape(product, op.ints([2, 2, 6])))
        y.value.name = name
        model.graph.outputs.append(y.value)
    twice = op.Exp(op.tensor(model.graph.outputs[1]))
    twice.value.name = "twice"
    model.graph.outputs.append(twice.value)
    fast = fast_conv.fast_convolutions(model)
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(4, 6)}
    found, plain = (session(m).run(["w.grad", "v.grad", "y"], feeds) for m in (fast, model))
    assert [array.shape for array in found] == [(4, 6), (2, 2, 6), (2, 2, 6)]
    for ours, theirs in zip(found, plain, strict=True):
        np.testing.assert_array_equal(ours.ravel(), theirs.ravel())


def test_a_network_of_all_forms() -> None:
    """Large and small maps, strides, overlapping pools; batches of several sizes through one trainer."""
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(3, 2, 1), nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 512, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(512, 384, 1, stride=2), nn.Flatten(), nn.Linear(384, 4)),
    )
    made = prepare(onnx_of(net, torch.randn(2, 3, 16, 16)), optimizer=SGD(lr=0.1))
    plain, fast = (Trainer(made, kernels=kernels, threads=1) for kernels in (False, True))
    rng = np.random.default_rng(0)
    for size in (5, 2, 9):
        batch = {"x": rng.normal(size=(size, 3, 16, 16)).astype(np.float32), "labels": rng.integers(0, 4, size)}
        assert fast.gradients(batch) == pytest.approx(plain.gradients(batch), rel=1e-5)
        for name, expected in plain._gradients.views.items():
            found = fast._gradients.views[name]
            np.testing.assert_allclose(
                found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max() + 1e-8, err_msg=name
            )
