"""Activations against ONNX Runtime, and Dropout in both modes."""

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from harness import check, floats, literal, merged, node_model, reference, source, to_torch

from onward.scoreboard.suite import prepare

ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "Relu": [{}],
    "Sigmoid": [{}],
    "Tanh": [{}],
    "LeakyRelu": [{}, {"alpha": 0.3}],
    "Elu": [{}, {"alpha": 0.3}, {"alpha": -1.5}],
    "Selu": [{}, {"alpha": 2.0}, {"gamma": 3.0}],
    "Celu": [{}, {"alpha": 0.7}],
    "ThresholdedRelu": [{}, {"alpha": 0.0}, {"alpha": -0.5}],
    "HardSigmoid": [{}, {"alpha": 1 / 6}, {"alpha": 0.7, "beta": -0.1}],
    "HardSwish": [{}],
    "Mish": [{}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "Softplus": [{}],
    "Softsign": [{}],
    "Shrink": [{}, {"lambd": 1.0, "bias": 1.0}, {"lambd": 0.5, "bias": 1.5}, {"lambd": -0.5}],
    "Softmax": [{}, {"axis": 0}, {"axis": -2}],
    "LogSoftmax": [{}, {"axis": 1}],
    "Hardmax": [{}, {"axis": 0}],
}


def values(dtype: Any) -> np.ndarray:
    x = floats(3, 4, 5, seed=1) * 4
    x[0, 0] = [0.0, -0.0, 30.0, -30.0, 0.5]
    x[1, :, 2] = x[1, 0, 2]
    return x.astype(dtype)


def activations(dtype: Any, but: tuple[str, ...] = ()) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    cases = [(op, attributes) for op, each in ATTRIBUTES.items() for attributes in each if op not in but]
    return merged([node_model(op, [values(dtype)], **attributes) for op, attributes in cases])


def test_activations() -> None:
    check(*activations(np.float32))


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_nothing_to_choose_from(op: str, shape: tuple[int, ...]) -> None:
    for axis in (-1, 1):
        check(*node_model(op, [np.zeros(shape, np.float32)], axis=axis))


def test_activations_in_double_precision() -> None:
    """ONNX Runtime has few kernels for doubles, ONNX's reference has all (two of them in float32)."""
    model, feeds = activations(np.float64, but=("HardSwish", "Gelu"))
    check(model, feeds, expected=reference(model, feeds))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Relu", "Sigmoid", "Gelu", "HardSwish", "Selu"])
def test_half_precision_stays_half(op: str) -> None:
    x = values(np.float16)
    model, feeds = node_model(op, [x])
    wide, _ = node_model(op, [x.astype(np.float32)])
    check(model, feeds, expected=[prepare("onnxruntime", wide)([x.astype(np.float32)])[0].astype(np.float16)])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.int32, np.uint64], ids=lambda t: t.__name__)
def test_shrink_of_integers(dtype: Any) -> None:
    x = np.array([0, 1, 2, 3, 100], dtype)
    model, feeds = node_model("Shrink", [x], lambd=1.5, bias=1.0)
    check(model, feeds, expected=[np.where(x > 1, x - 1, 0).astype(dtype)])


SLOPES = [(4, 1, 1), (1, 4, 1, 1), (1,), (), (5,), (4, 5, 6), (1, 1, 1), (6,), (3, 1, 1, 1)]


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_prelu_slopes_of_any_shape(fixed: tuple[int, ...]) -> None:
    parts = []
    for slope in SLOPES:
        x = floats(3, 4, 5, 6 if slope != (5,) else 5)
        parts.append(node_model("PRelu", [x, np.asarray(floats(*slope), np.float32)], fixed=fixed))
    model, feeds = merged(parts)
    check(model, feeds)


def test_prelu_of_one_slope_per_channel_is_a_module() -> None:
    model, _ = node_model("PRelu", [floats(3, 4, 5, 6), floats(4, 1, 1)], fixed=[1])
    assert "nn.PReLU(4)" in source(model)
    assert tuple(next(to_torch(model).parameters()).shape) == (4,)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64], ids=lambda t: t.__name__)
def test_prelu_of_integers(dtype: Any) -> None:
    x = np.array([[1, 5, 7]], dtype) if np.dtype(dtype).kind == "u" else np.array([[1, -5, 7]], dtype)
    model, feeds = node_model("PRelu", [x, np.array([2, 3, 4], dtype)])
    check(model, feeds, expected=[np.where(x.astype(np.int64) < 0, x * np.array([2, 3, 4], dtype), x)])


def dropout(ratio: Any = None, training: Any = None, outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    inputs = [np.ones((50, 40), np.float32), ratio, training]
    while inputs[-1] is None:
        inputs.pop()
    fixed = [i for i, x in enumerate(inputs) if i and x is not None]
    model, _ = node_model("Dropout", inputs, outputs, fixed=fixed, **attributes)
    return literal(model)


@pytest.mark.parametrize("training", [None, np.array(False)])
def test_dropout_follows_the_mode_of_the_module(training: Any) -> None:
    net = to_torch(dropout(np.float32(0.25), training))
    x = torch.ones(50, 40)
    assert torch.equal(net(x), x)
    y = net.train()(x)
    kept = y != 0
    assert 0.65 < kept.float().mean() < 0.85
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / 0.75))


def test_dropout_that_the_file_switches_on() -> None:
    net = to_torch(dropout(np.float32(0.25), np.array(True)))
    assert 0.65 < (net(torch.ones(50, 40)) != 0).float().mean() < 0.85


@pytest.mark.parametrize("training", [None, np.array(True)])
def test_dropout_mask_tells_what_was_kept(training: Any) -> None:
    net = to_torch(dropout(None, training, outputs=2))
    x = torch.ones(50, 40)
    y, mask = net(x)
    assert bool(mask.all()) == (training is None)
    y, mask = net.train()(x)
    assert mask.dtype == torch.bool
    assert 0.4 < mask.float().mean() < 0.6
    assert torch.equal(y != 0, mask)


def test_dropout_with_inputs_of_the_running_model() -> None:
    model, _ = node_model("Dropout", [np.ones((50, 40), np.float32), np.float32(0.5), np.array(True)])
    net, x = to_torch(model), torch.ones(50, 40)
    assert torch.equal(net(x, torch.tensor(0.5), torch.tensor(False)), x)
    assert 0.15 < (net(x, torch.tensor(0.8), torch.tensor(True)) != 0).float().mean() < 0.25


@pytest.mark.parametrize("op", ["Elu", "Gelu", "Softplus", "HardSigmoid", "Shrink", "PRelu", "Celu", "Mish"])
def test_gradients_flow(op: str) -> None:
    inputs = [floats(2, 3), floats(3)] if op == "PRelu" else [floats(2, 3)]
    net = to_torch(node_model(op, inputs, fixed=range(1, len(inputs)))[0])
    x = torch.from_numpy(inputs[0]).requires_grad_()
    net(x).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 3e38), (np.float16, 6e4)])
def test_hard_swish_of_large_numbers_is_the_number(dtype: Any, large: float) -> None:
    x = np.tile(np.array([large, large / 3, -large, 4, -4, 1, -1, 0, np.nan], dtype), 4)
    wanted = np.where(x >= 3, x, np.where(x <= -3, 0, x * (x.astype(np.float64) / 6 + 0.5))).astype(dtype)
    check(*node_model("HardSwish", [x]), expected=[wanted])


def test_hard_swish_of_pytorch_is_its_own() -> None:
    model, _ = node_model("HardSwish", [floats(2, 3)])
    assert "x * F.hardsigmoid(x)" in source(model).replace("in0", "x")
    model.producer_name = "pytorch"
    assert "F.hardswish(" in source(model)


def test_hard_swish_of_a_large_number_has_a_gradient() -> None:
    x = torch.tensor([3e38, -3e38, 1.0], requires_grad=True)
    to_torch(node_model("HardSwish", [x.detach().numpy()])[0])(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.tensor([1.0, 0.0, 1 / 3 + 0.5]))


@pytest.mark.parametrize("attributes", ATTRIBUTES["Shrink"][:3], ids=str)
def test_shrink_of_nan_is_zero(attributes: dict[str, float]) -> None:
    """NaN is neither below -lambd nor above lambd: 'otherwise, y = 0'."""
    x = np.tile(np.array([np.nan, 3, -3, 0, np.inf, -np.inf], np.float32), 4)
    model, feeds = node_model("Shrink", [x], **attributes)
    check(model, feeds, expected=reference(model, feeds))


@pytest.mark.parametrize("axis", [0, -1])
def test_hardmax_has_a_one_whatever_the_numbers(axis: int) -> None:
    x = np.array([[1, np.nan, 3], [np.nan, np.nan, np.inf], [-np.inf] * 3], np.float32)
    model, feeds = node_model("Hardmax", [x], axis=axis)
    check(model, feeds, expected=reference(model, feeds))


def test_softmax_of_no_halves() -> None:
    for shape in ((0, 3), (3, 0)):
        x = np.zeros(shape, np.float16)
        check(*node_model("Softmax", [x]), expected=[x])
