"""Optimizers by their pseudo code, and gradients inside a model."""

import numpy as np
import onnx
import pytest
from harness import check, compare, floats, node_model, to_torch
from onnx import helper

DOMAIN = "ai.onnx.preview.training"


def step(op: str, kinds: int, count: int, **attributes):
    rate, steps = np.float32(0.1), np.int64(count)
    tensors = [floats(2, 3, seed=i) if i % 2 else floats(4, seed=i) for k in range(kinds) for i in (2 * k, 2 * k + 1)]
    tensors[2 * (kinds - 1) :] = [np.abs(t) for t in tensors[2 * (kinds - 1) :]]
    names = [f"new{i}" for i in range(2 * (kinds - 1))]
    model, feed = node_model(op, [rate, steps, *tensors], names, domain=DOMAIN, **attributes)
    return model, feed, [tensors[i::2] for i in range(2)]


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("norm", [0.0, 0.01])
def test_adam(count, norm):
    a, b, e = 0.8, 0.95, 1e-4
    model, feed, tensors = step(
        "Adam", 4, count, alpha=a, beta=b, epsilon=e, norm_coefficient=norm, norm_coefficient_post=norm
    )
    results = []
    for x, g, v, h in tensors:
        g = norm * x + g
        v, h = a * v + (1 - a) * g, b * h + (1 - b) * g * g
        rate = 0.1 * np.sqrt(1 - b**count) / (1 - a**count) if count else 0.1
        results.append(((1 - norm) * (x - rate * v / (np.sqrt(h) + e)), v, h))
    check(model, feed, expected=_by_kind(results))


@pytest.mark.parametrize("count", [0, 3])
def test_adagrad(count):
    model, feed, tensors = step("Adagrad", 3, count, decay_factor=0.1, epsilon=1e-3, norm_coefficient=0.02)
    results = []
    for x, g, h in tensors:
        g = 0.02 * x + g
        h = h + g * g
        results.append((x - 0.1 / (1 + count * 0.1) * g / (np.sqrt(h) + 1e-3), h))
    check(model, feed, expected=_by_kind(results))


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(count, mode):
    a, b = 0.9, 0.7
    model, feed, tensors = step("Momentum", 3, count, alpha=a, beta=b, norm_coefficient=0.02, mode=mode)
    results = []
    for x, g, v in tensors:
        g = 0.02 * x + g
        v = a * v + (b if count else 1) * g
        results.append((x - 0.1 * (g + a * v if mode == "nesterov" else v), v))
    check(model, feed, expected=_by_kind(results))


def _by_kind(results: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    return [result[kind].astype(np.float32) for kind in range(len(results[0])) for result in results]


def gradient_model(nodes: list[onnx.NodeProto], inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
    def info(names: list[str]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in names]

    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs))
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def gradient(inputs: list[str], outputs: list[str], **attributes) -> onnx.NodeProto:
    return helper.make_node("Gradient", inputs, outputs, domain=DOMAIN, **attributes)


A, B, C = (floats(3, seed=i) for i in range(3))


def test_gradient_of_a_tensor_that_is_no_output():
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["m"]),
        helper.make_node("Sin", ["m"], ["y"]),
        gradient(["a", "b"], ["da"], xs=["a"], zs=["b"], y="y"),
    ]
    model = gradient_model(nodes, ["a", "b"], ["da"])
    check(model, [A, B], expected=[np.cos(A * B) * B])


def test_gradient_at_other_values_and_of_intermediate_tensors():
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["h"]),
        helper.make_node("Mul", ["h", "b"], ["y"]),
        gradient(["c", "b"], ["dh", "db"], xs=["h", "b"], y="y"),
    ]
    model = gradient_model(nodes, ["a", "b", "c"], ["dh", "db"])
    check(model, [A, B, C], expected=[B, C])


def test_second_derivative():
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["s"]),
        helper.make_node("Mul", ["s", "a"], ["y"]),
        gradient(["a"], ["d1"], xs=["a"], y="y"),
        gradient(["a"], ["d2"], xs=["a"], y="d1"),
    ]
    model = gradient_model(nodes, ["a"], ["d1", "d2"])
    check(model, [A], expected=[3 * A * A, 6 * A])


def test_gradient_of_something_independent_is_zero():
    nodes = [helper.make_node("Relu", ["a"], ["y"]), gradient(["b", "a"], ["db"], xs=["b"], zs=["a"], y="y")]
    check(gradient_model(nodes, ["a", "b"], ["db"]), [A, B], expected=[np.zeros(3, np.float32)])


def test_results_carry_no_history_without_training():
    import torch

    nodes = [helper.make_node("Mul", ["a", "a"], ["y"]), gradient(["a"], ["da"], xs=["a"], y="y")]
    net = to_torch(gradient_model(nodes, ["a"], ["da"]))
    with torch.no_grad():
        assert not net(torch.from_numpy(A)).requires_grad
    x = torch.from_numpy(A).requires_grad_()
    net(x).sum().backward()
    compare([x.grad.numpy()], [np.full(3, 2, np.float32)])
