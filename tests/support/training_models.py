"""Small models to train, with their batches, and one that is an optimizer."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(9)
WEIGHTS: dict[str, Array] = {
    "a.weight": RNG.standard_normal((6, 4)).astype(np.float32) * 0.5,
    "a.bias": RNG.standard_normal(6).astype(np.float32),
    "b.weight": RNG.standard_normal((6, 3)).astype(np.float32) * 0.5,
    "b.bias": RNG.standard_normal(3).astype(np.float32),
}
BATCHES = [{"x": RNG.standard_normal((5, 4)).astype(np.float32), "labels": RNG.integers(0, 3, 5)} for _ in range(4)]


def model(opset: int = 17) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "a.weight", "a.bias"], ["h"], transB=1),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "b.weight"], ["p"]),
        helper.make_node("Add", ["p", "b.bias"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    tensors = [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items()]
    graph = helper.make_graph(nodes, "two layers", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def optimizer_model() -> onnx.ModelProto:
    """Momentum 0.9, as SGD's."""
    names = ["w", "g", "lr", "m"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [] if n == "lr" else None) for n in names]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("w2", "m2")]
    nodes = [
        helper.make_node("Mul", ["m", "k"], ["km"]),
        helper.make_node("Add", ["km", "g"], ["m2"]),
        helper.make_node("Mul", ["m2", "lr"], ["d"]),
        helper.make_node("Sub", ["w", "d"], ["w2"]),
    ]
    k = numpy_helper.from_array(np.array(0.9, np.float32), "k")
    graph = helper.make_graph(nodes, "momentum", inputs, outputs, [k])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


WORDS, WIDTH, CLASSES = 30, 6, 3


def bag_of_words() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {"words": (WORDS, WIDTH), "head": (WIDTH, CLASSES)}
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["found"]),
        helper.make_node("ReduceMean", ["found", "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "head"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bag",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["n", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), name) for name, s in weights.items()]
        + [numpy_helper.from_array(np.array([1]), "axes")],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def word_batches(count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [
        {"x": rng.integers(-WORDS, WORDS, (4, 2 + i % 3)), "labels": rng.integers(0, CLASSES, 4)} for i in range(count)
    ]
