"""Models with what tools for graphs forget: values captured by bodies, functions, training information."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from training_models import model as two_layers

from onward.model import Model, load
from onward.training.info.write import to_model
from onward.training.recipe.losses import CrossEntropy
from onward.training.recipe.optimizers import SGD
from onward.training.trainable import prepare

FLOAT = TensorProto.FLOAT


def value(name: str, sizes: list[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, sizes)


def with_body(opset: int = 17) -> Model:
    """y = x·w + (relu(x)·w if the sum of x is positive, else x); the branches capture `r`, `x` and `w`."""
    then = helper.make_graph(
        [helper.make_node("Mul", ["r", "w"], ["inner"])],
        "then",
        [],
        [value("inner", None)],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["same"])],
        "else",
        [],
        [value("same", None)],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"], name="compare"),
        helper.make_node("If", ["positive"], ["chosen"], name="branch", then_branch=then, else_branch=other),
        helper.make_node("Mul", ["x", "w"], ["product"], name="product"),
        helper.make_node("Add", ["product", "chosen"], ["y"], name="add"),
    ]
    weights = {"w": np.array([1.0, -2.0, 3.0], np.float32), "zero": np.array(0.0, np.float32)}
    graph = helper.make_graph(
        nodes,
        "body",
        [value("x", ["n", 3])],
        [value("y", ["n", 3])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))


def with_function(op: str = "Relu", factor: float = 2.0) -> Model:
    """y = 2 · twice(x), where twice calls once, which is another op in another model."""
    once = helper.make_function("local", "once", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], OPSETS[:1])
    calls = [
        helper.make_node("once", ["a"], ["h"], domain="local"),
        helper.make_node("once", ["h"], ["b"], domain="local"),
    ]
    twice = helper.make_function("local", "twice", ["a"], ["b"], calls, OPSETS)
    nodes = [
        helper.make_node("twice", ["x"], ["h"], domain="local", name="call"),
        helper.make_node("Mul", ["h", "factor"], ["y"], name="scale"),
    ]
    graph = helper.make_graph(
        nodes,
        "calls",
        [value("x", ["n", 3])],
        [value("y", ["n", 3])],
        [numpy_helper.from_array(np.array(factor, np.float32), "factor")],
    )
    return load(helper.make_model(graph, functions=[once, twice], opset_imports=OPSETS, ir_version=8))


OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]


def trained() -> Model:
    """Two layers with a whole training step in the file."""
    return to_model(prepare(two_layers(), CrossEntropy(), SGD(lr=0.1, momentum=0.9)))


def chain(*ops: str, opset: int = 17, start: int = 0) -> Model:
    """Ops one behind the other, their names mere numbers from `start` on, as exporters give them."""
    nodes, last = [], "x"
    for place, op in enumerate(ops, start):
        nodes.append(helper.make_node(op, [last], [f"v{place}"], name=f"{op}_{place}"))
        last = f"v{place}"
    x = value("x", ["n", 3])
    graph = helper.make_graph(nodes, "chain", [x], [value(last, ["n", 3])])
    proto: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return load(proto)
