"""Normalisations against ONNX Runtime."""

import numpy as np
import pytest
import torch
from harness import check, floats, node_model, source, to_torch
from onnx.reference import ReferenceEvaluator

SHAPES = [(3, 4), (2, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 3)]


def channels(count=4, dtype=np.float32):
    scale, bias, mean = (floats(count, seed=i).astype(dtype) for i in range(3))
    return [scale, bias, mean, np.abs(floats(count, seed=3)).astype(dtype) + dtype(0.1)]


def named(model, *names):
    """The model with its initializers renamed."""
    for initializer, name in zip(model.graph.initializer, names, strict=True):
        for node in model.graph.node:
            for i, used in enumerate(node.input):
                if used == initializer.name:
                    node.input[i] = name
        initializer.name = name
    return model


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fixed", [(), (1, 2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_batch_norm(shape, fixed, dtype):
    inputs = [floats(*shape, dtype=dtype), *channels(dtype=dtype)]
    check(*node_model("BatchNormalization", inputs, fixed=fixed, epsilon=1e-3, opset=15))


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_that_trains(shape):
    inputs = [floats(*shape), *channels()]
    check(*node_model("BatchNormalization", inputs, 3, training_mode=1, momentum=0.8, opset=15))


def test_batch_norm_of_mixed_types():
    model, inputs = node_model("BatchNormalization", [floats(2, 4, 3, dtype=np.float16), *channels()], opset=15)
    feed = dict(zip(["in0", "in1", "in2", "in3", "in4"], inputs, strict=True))
    check(model, inputs, expected=[ReferenceEvaluator(model).run(None, feed)[0].astype(np.float16)])


def test_batch_norm_is_pytorchs_own():
    model, inputs = node_model(
        "BatchNormalization", [floats(2, 4, 3, 3), *channels()], fixed=(1, 2, 3, 4), momentum=0.8, opset=15
    )
    kinds = ("weight", "bias", "running_mean", "running_var")
    named(model, *(f"bn1.{kind}" for kind in kinds))
    assert "nn.BatchNorm2d(4, momentum=0.2)" in source(model)
    net = to_torch(model)
    twin = torch.nn.Sequential()
    twin.add_module("bn1", torch.nn.BatchNorm2d(4, momentum=0.2))
    assert set(net.state_dict()) == set(twin.state_dict())
    twin.load_state_dict(net.state_dict())
    assert [name for name, _ in net.named_parameters()] == ["bn1.weight", "bn1.bias"]
    x = torch.from_numpy(inputs[0])
    net.train()
    twin.train()
    torch.testing.assert_close(net(x), twin(x))
    torch.testing.assert_close(net.state_dict()["bn1.running_var"], twin.state_dict()["bn1.running_var"])


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("fixed", [(), (1, 2)])
def test_instance_norm(shape, fixed):
    check(*node_model("InstanceNormalization", [floats(*shape), *channels()[:2]], fixed=fixed, epsilon=1e-3))


def test_instance_norm_of_single_elements():
    x = floats(2, 4, 1, 1)
    check(*node_model("InstanceNormalization", [x, *channels()[:2]], epsilon=0.1), unknown=False)


@pytest.mark.parametrize("axis", [-1, -2, 1, 0])
@pytest.mark.parametrize("fixed", [(), (1, 2), (1,)])
def test_layer_norm(axis, fixed):
    x = floats(3, 4, 5)
    shape = x.shape[axis:]
    inputs = [x, floats(*shape), floats(*shape, seed=1)]
    check(*node_model("LayerNormalization", inputs, fixed=fixed, axis=axis))
    check(*node_model("LayerNormalization", inputs[:2], 3, fixed=fixed[:1], axis=axis, epsilon=1e-3))
    check(*node_model("RMSNormalization", inputs[:2], fixed=fixed[:1], axis=axis, opset=23))


@pytest.mark.parametrize("shape", [(1, 5), (4, 1)])
def test_layer_norm_with_a_weight_to_broadcast(shape):
    inputs = [floats(3, 4, 5), floats(*shape), floats(*shape, seed=1)]
    check(*node_model("LayerNormalization", inputs, fixed=(1, 2), axis=1))
    check(*node_model("RMSNormalization", inputs[:2], fixed=(1,), axis=1, opset=23))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_norm_of_half_precision(op):
    inputs = [5 + 3 * floats(3, 64), floats(64), floats(64, seed=1)][: 3 if op[0] == "L" else 2]
    check(*node_model(op, [i.astype(np.float16) for i in inputs], opset=23), atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_group_norm(shape, groups):
    inputs = [floats(*shape), *channels()[:2]]
    for fixed in ((), (1, 2)):
        check(*node_model("GroupNormalization", inputs, fixed=fixed, num_groups=groups, epsilon=1e-3, opset=21))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(2, 6, 3, 4), (3, 6), (2, 6, 5)])
def test_lrn(size, shape):
    x = floats(*shape)
    model, inputs = node_model("LRN", [x], size=size, alpha=0.3, beta=0.6, bias=2.0)
    below, above = (size - 1) // 2, size // 2
    energy = [(x[:, max(0, c - below) : c + above + 1] ** 2).sum(1) for c in range(6)]
    check(model, inputs, expected=[x / (2 + 0.3 / size * np.stack(energy, 1)) ** 0.6])
    if size % 2 and len(shape) == 4:
        check(model, inputs)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(p, axis):
    x = floats(3, 4, 5)
    x[:, 1] = 0
    x[0, :, :] = 0
    check(*node_model("LpNormalization", [x], p=p, axis=axis, opset=22))


@pytest.mark.parametrize("axes", [[0, 2, 3], [1, 2], [-1]])
def test_mean_variance_normalization(axes):
    check(*node_model("MeanVarianceNormalization", [floats(2, 3, 4, 5)], axes=axes))


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "call"),
    [
        ("LayerNormalization", (8,), {}, "nn.LayerNorm(8)"),
        ("LayerNormalization", (3, 8), {"axis": 1, "epsilon": 1e-6}, "nn.LayerNorm((3, 8), eps=1e-06)"),
        ("RMSNormalization", (8,), {"epsilon": 1e-6}, "nn.RMSNorm(8, eps=1e-06)"),
        ("GroupNormalization", (4,), {"num_groups": 2}, "nn.GroupNorm(2, 4)"),
        ("InstanceNormalization", (4,), {}, "nn.InstanceNorm1d(4, affine=True)"),
    ],
)
def test_code_is_idiomatic(op, shape, attributes, call):
    x = floats(2, 4, 8) if shape != (3, 8) else floats(2, 3, 8)
    weights = [floats(*shape), floats(*shape, seed=1)][: 1 if op[0] == "R" else 2]
    fixed = tuple(range(1, len(weights) + 1))
    model, inputs = node_model(op, [x, *weights], fixed=fixed, opset=23, **attributes)
    named(model, *(f"norm.{kind}" for kind in ("weight", "bias")[: len(weights)]))
    assert call in source(model)
    assert set(to_torch(model).state_dict()) == {"norm.weight", "norm.bias"} - (
        {"norm.bias"} if op[0] == "R" else set()
    )
    check(model, inputs)


def test_weights_that_nobody_named_and_do_nothing_are_left_out():
    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    model, inputs = node_model("LayerNormalization", [floats(2, 8), ones, zeros], fixed=(1, 2))
    named(model, "onnx::LayerNorm_1", "onnx::LayerNorm_2")
    assert "F.layer_norm(in0, (8,))" in source(model)
    assert not to_torch(model).state_dict()
    check(model, inputs)


@pytest.mark.parametrize("fixed", [(), (1, 2)])
@pytest.mark.parametrize("shape", [(0, 3, 5), (0, 3, 4, 5)])
def test_instance_norm_of_an_empty_batch(shape, fixed):
    x = np.zeros(shape, np.float32)
    model, feeds = node_model("InstanceNormalization", [x, floats(3), floats(3)], fixed=fixed)
    check(model, feeds, expected=[x], backends=["torch", "tensorflow", "keras"])


def test_an_instance_norm_of_pytorch_is_its_own_module():
    model, _ = node_model("InstanceNormalization", [floats(2, 3, 4, 4), floats(3), floats(3)], fixed=(1, 2))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    assert "unless_empty(self.norm, " in source(model)
    model.producer_name = "pytorch"
    assert "unless_empty" not in source(model)
