"""Gradients of generated JAX code: finite where formulas written plainly give NaN, and those that differences give."""

from typing import Any

import numpy as np
import pytest
from harness import finish, merged, node_model
from onnx import helper, numpy_helper

from onward.backends.backend import backend
from onward.model import load

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

NOTHING = np.zeros((2, 4), np.float32)
IMAGE = np.zeros((1, 2, 3, 3), np.float32)
EDGES = np.array([[0, 0, 0, 0], [1, -1, 0, 2], [-3, 3, 6, -0.5]], np.float32)
LARGE = np.array([[1e4, -1e4, 80, -80]], np.float32)
ONES, ZEROS = np.ones(2, np.float32), np.zeros(2, np.float32)
AXIS = np.array([1])

UNARY = ("Abs", "Erf", "Relu", "LeakyRelu", "PRelu", "Elu", "Celu", "Selu", "Gelu", "HardSigmoid", "Shrink", "Swish")
SATURATED = ("Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "HardSwish", "Softmax", "LogSoftmax")
REDUCED = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare", "ReduceMean")
Case = tuple[str, list[Any], dict[str, Any]]
CASES: list[Case] = [
    *((op, [EDGES, ZEROS[:1]] if op == "PRelu" else [EDGES], {}) for op in UNARY),
    *((op, [x], {}) for op in SATURATED for x in (EDGES, LARGE)),
    *((op, [x], {}) for op in ("Elu", "Celu", "Selu", "Gelu") for x in (LARGE,)),
    *((op, [EDGES, AXIS], {}) for op in REDUCED),
    *(("LpNormalization", [EDGES], {"p": p}) for p in (1, 2)),
    ("MeanVarianceNormalization", [IMAGE], {}),
    ("LRN", [IMAGE], {"size": 3}),
    ("LayerNormalization", [NOTHING, np.ones(4, np.float32)], {}),
    ("RMSNormalization", [NOTHING, np.ones(4, np.float32)], {}),
    ("InstanceNormalization", [IMAGE, ONES, ZEROS], {}),
    ("GroupNormalization", [IMAGE, ONES, ZEROS], {"num_groups": 2}),
    ("BatchNormalization", [IMAGE, ONES, ZEROS, ZEROS, ONES], {}),
    ("Mod", [EDGES, np.full(1, 2, np.float32)], {"fmod": 1}),
    ("CumSum", [EDGES, AXIS[0]], {}),
    ("CumProd", [EDGES, AXIS[0]], {}),
    ("Det", [np.zeros((4, 4), np.float32)], {}),
    ("SoftmaxCrossEntropyLoss", [LARGE, np.array([2])], {}),
]


def test_gradients_are_finite() -> None:
    """At zero, where roots are infinitely steep, at the edges of functions in pieces, and for large numbers."""
    parts = [
        node_model(op, inputs, fixed=[i for i, x in enumerate(inputs) if x is AXIS or not np.ndim(x)], opset=26, **more)
        for op, inputs, more in CASES
    ]
    model, feeds = merged(parts)
    one = backend("jax")
    net = one.load(one.generate(load(model)))
    is_float = [x.dtype == np.float32 for x in feeds]

    @jax.jit
    def gradients(xs: list[Any]) -> Any:
        def total(floats: list[Any]) -> Any:
            left = iter(floats)
            found = net(*(next(left) if given else x for x, given in zip(feeds, is_float, strict=True)))
            return sum(jnp.sum(y) for y in found)

        return jax.grad(total)(xs)

    found = gradients([jnp.asarray(x) for x, given in zip(feeds, is_float, strict=True) if given])
    assert len(found) == sum(is_float)
    for i, gradient in enumerate(found):
        assert np.isfinite(gradient).all(), f"the gradient of float input {i}"


def test_gradients_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    sizes = {"w": (5, 4), "b": (5,), "scale": (5,), "shift": (5,), "v": (5, 3)}
    weights = {name: rng.standard_normal(size) for name, size in sizes.items()}
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        helper.make_node("LayerNormalization", ["h", "scale", "shift"], ["n"]),
        helper.make_node("Tanh", ["n"], ["g"]),
        helper.make_node("MatMul", ["g", "v"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", 11, [2, 4])],
        [helper.make_tensor_value_info("y", 11, [2, 3])],
        [numpy_helper.from_array(x, name) for name, x in weights.items()],
    )
    one = backend("jax")
    net = one.load(one.generate(load(finish(graph))))
    with jax.enable_x64(True):
        x = jnp.asarray(rng.standard_normal((2, 4)))
        check = pytest.importorskip("jax.test_util").check_grads
        check(lambda p, x: net.apply(p, x)[:, 0], (net.params, x), order=1, modes=["rev"])
