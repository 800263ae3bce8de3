"""Gradients of converted models, against differences of their own values."""

import numpy as np
import onnx
import pytest
import torch
from harness import finish
from onnx import helper, numpy_helper

from onward import to_torch

RNG = np.random.default_rng(5)


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def node(op: str, inputs: str, output: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


# Each is a list of nodes from x (and weights) to y: in double precision, so that differences are exact enough.
CASES: dict[str, tuple[tuple[int, ...], dict[str, np.ndarray], list[onnx.NodeProto]]] = {
    op: ((2, 3), {}, [node(op, "x")])
    for op in ("Tanh", "Sigmoid", "Exp", "Softplus", "Softsign", "Sin", "Atan", "Softmax", "LogSoftmax", "Erf", "Mish")
}
CASES |= {
    "Gemm": (
        (2, 3),
        {"fc.weight": weights(4, 3), "fc.bias": weights(4)},
        [node("Gemm", "x fc.weight fc.bias", transB=1)],
    ),
    "scaled Gemm": ((2, 3), {"w": weights(3, 4), "b": weights(2, 4)}, [node("Gemm", "x w b", alpha=0.5, beta=2.0)]),
    "MatMul and Add": ((2, 3), {"w": weights(3, 4), "b": weights(4)}, [node("MatMul", "x w", "p"), node("Add", "p b")]),
    "a shared matrix": (
        (2, 3),
        {"w": weights(3, 3)},
        [node("MatMul", "x w", "p"), node("Tanh", "p", "t"), node("MatMul", "t w")],
    ),
    "a matrix and its transpose": (
        (2, 3),
        {"w": weights(3, 3)},
        [node("Transpose", "w", "wt"), node("MatMul", "x wt", "p"), node("MatMul", "p w")],
    ),
    "Conv": (
        (1, 2, 5),
        {"c.weight": weights(3, 2, 3), "c.bias": weights(3)},
        [node("Conv", "x c.weight c.bias", pads=[1, 0], strides=[2])],
    ),
    "ConvTranspose": ((1, 2, 4), {"w": weights(2, 3, 3)}, [node("ConvTranspose", "x w", strides=[2], pads=[1, 1])]),
    "AveragePool": ((1, 1, 5, 5), {}, [node("AveragePool", "x", kernel_shape=[2, 3], pads=[1, 0, 0, 1])]),
    "LayerNormalization": (
        (2, 4),
        {"n.weight": weights(4), "n.bias": weights(4)},
        [node("LayerNormalization", "x n.weight n.bias")],
    ),
    "a scale as a parameter": ((2, 3), {"scale": weights(3)}, [node("Mul", "x scale", "p"), node("Sum", "p x scale")]),
    "reductions": (
        (2, 3),
        {},
        [node("ReduceLogSumExp", "x", "a"), node("ReduceL2", "x", "b"), node("Mul", "a b", "c"), node("Add", "c x")],
    ),
    "moving": (
        (2, 3),
        {"i": np.array([1, -1, 0])},
        [
            node("Gather", "x i", "g", axis=1),
            node("Transpose", "g", "t"),
            node("Concat", "t t", "k", axis=1),
            node("Exp", "k"),
        ],
    ),
    "Einsum": ((2, 3), {"w": weights(3, 4)}, [node("Einsum", "x w", equation="ij,jk->ki")]),
    "Resize": (
        (1, 1, 4),
        {"s": np.array([1, 1, 1.7], np.float32)},
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
    ),
    "Where": ((2, 3), {"m": np.array([True, False, True])}, [node("Exp", "x", "a"), node("Where", "m a x")]),
    "Pow": ((2, 3), {"p": np.array(3.0)}, [node("Pow", "x p")]),
    "CumSum": ((2, 3), {"a": np.array(1)}, [node("CumSum", "x a", reverse=1, exclusive=1)]),
    "ScatterND": (
        (2, 3),
        {"i": np.array([[0, 1], [1, -1]]), "u": weights(2)},
        [node("ScatterND", "x i u", "s", reduction="add"), node("Tanh", "s")],
    ),
}


def model_of(name: str) -> onnx.ModelProto:
    shape, constants, nodes = CASES[name]
    graph = helper.make_graph(
        nodes,
        "smooth",
        [helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(data, n) for n, data in constants.items()],
    )
    return finish(graph, 20)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    """Of the input and of every parameter; each float weight of the file is one, or part of one."""
    net = to_torch(model_of(name), check=False)
    shape, constants, _ = CASES[name]
    x = torch.from_numpy(np.random.default_rng(1).standard_normal(shape)).requires_grad_()
    parameters = dict(net.named_parameters())
    assert sum(p.numel() for p in parameters.values()) >= sum(
        w.size for n, w in constants.items() if w.dtype == np.float64 and n != "p"
    )

    def run(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.func.functional_call(net, dict(zip(parameters, values, strict=True)), (x,))
        return found

    assert torch.autograd.gradcheck(run, (x, *parameters.values()))


def test_gradients_flow_through_loops_and_branches() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (double[2,3] x, bool c, int64 n) => (double[2,3] y) {
        a = If (c) <then_branch: graph = t () => (double[2,3] p) { p = MatMul(x, w) },
                    else_branch: graph = e () => (double[2,3] q) { q = Mul(x, s) }>
        y = Loop (n, "", a) <body: graph = b (int64 i, bool go, double[2,3] h) => (bool on, double[2,3] k) {
            on = Identity(go) m = MatMul(h, w) k = Tanh(m) }>
    }"""
    model = onnx.parser.parse_model(text)
    given = {"w": weights(3, 3), "s": weights(3)}
    model.graph.initializer.extend(numpy_helper.from_array(data, n) for n, data in given.items())
    net = to_torch(model, check=False)
    x = torch.from_numpy(weights(2, 3)).requires_grad_()
    names = [n for n, _ in net.named_parameters()]
    assert len(names) == 2
    for condition in (True, False):
        rest = torch.tensor(condition), torch.tensor(2)

        def run(x: torch.Tensor, *values: torch.Tensor, rest: tuple[torch.Tensor, ...] = rest) -> torch.Tensor:
            found: torch.Tensor = torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x, *rest))
            return found

        assert torch.autograd.gradcheck(run, (x, *net.parameters()))
