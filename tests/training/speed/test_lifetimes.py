"""The order of nodes holds little at a time, and changes no result."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from onward.training.speed.lifetimes import order_nodes, reads

FLOATS = TensorProto.FLOAT


def chain(layers: int) -> onnx.ModelProto:
    """A chain there and back, as of a forward run and its gradients; products with both are the outputs, last."""
    nodes = [helper.make_node("Tanh", [f"y{i}"], [f"y{i + 1}"]) for i in range(layers)]
    nodes += [helper.make_node("Neg", [f"y{layers}"], [f"g{layers}"])]
    nodes += [helper.make_node("Mul", [f"g{i}", f"y{i}"], [f"g{i - 1}"]) for i in range(layers, 0, -1)]
    nodes += [helper.make_node("Mul", [f"g{i}", f"y{i}"], [f"w{i}"]) for i in range(layers)]
    outputs = [helper.make_tensor_value_info(f"w{i}", FLOATS, [4]) for i in range(layers)]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("y0", FLOATS, [4])], outputs)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def most_alive(graph: onnx.GraphProto) -> int:
    """How many values, outputs aside, are held at once."""
    last = {name: place for place, node in enumerate(graph.node) for name in reads(node)}
    outputs = {value.name for value in graph.output}
    alive: set[str] = set()
    most = 0
    for place, node in enumerate(graph.node):
        alive |= set(node.output) - outputs
        most = max(most, len(alive))
        alive = {name for name in alive if last[name] > place}
    return most


def test_gradients_are_given_out_as_soon_as_they_can_be() -> None:
    model = chain(8)
    before = most_alive(model.graph)
    order_nodes(model.graph)
    assert before == 15
    assert most_alive(model.graph) <= 10
    onnx.checker.check_model(model)


def test_what_bodies_capture_comes_before_them() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["outside", "outside"], ["inner"])],
        "body",
        [],
        [helper.make_tensor_value_info("inner", FLOATS, [2])],
    )
    branch = helper.make_node("If", ["condition"], ["y"], then_branch=body, else_branch=body)
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["outside"]), branch],
        "graph",
        [
            helper.make_tensor_value_info("x", FLOATS, [2]),
            helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", FLOATS, [2])],
    )
    order_nodes(graph)
    assert [node.op_type for node in graph.node] == ["Exp", "If"]


def test_the_same_numbers_come_out() -> None:
    import onnxruntime

    model = chain(5)
    feeds = {"y0": np.linspace(-1, 1, 4, dtype=np.float32)}

    def outputs() -> list[np.ndarray]:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)

    before = outputs()
    order_nodes(model.graph)
    assert all((a == b).all() for a, b in zip(before, outputs(), strict=True))
