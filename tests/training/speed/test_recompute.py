"""What is cheap is computed again instead of being held: less is alive, every number stays, weights wait for it."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnxruntime
from test_lifetimes import FLOATS, most_alive

from onward.training.speed.lifetimes import UPDATE, order_nodes
from onward.training.speed.recompute import FAR, recompute

LAYERS = FAR


def there_and_back(activation: str, view: bool = False) -> onnx.ModelProto:
    """Layers of a cosine and an activation; on the way back each of both is read once more."""
    nodes = []
    for i in range(LAYERS):
        nodes += [
            oh.make_node("Cos", [f"y{i}"], [f"x{i + 1}"]),
            oh.make_node(activation, [f"x{i + 1}"], [f"a{i + 1}"]),
            oh.make_node("Reshape", [f"a{i + 1}", "shape"], [f"v{i + 1}"]),
            oh.make_node("Sin", [f"v{i + 1}" if view else f"a{i + 1}"], [f"y{i + 1}"]),
        ]
    nodes.append(oh.make_node("Neg", [f"y{LAYERS}"], [f"g{LAYERS}"]))
    for i in range(LAYERS, 0, -1):
        nodes += [
            oh.make_node("Mul", [f"g{i}", f"v{i}" if view else f"a{i}"], [f"h{i}"]),
            oh.make_node("Sub", [f"h{i}", f"x{i}"], [f"g{i - 1}"]),
        ]
    graph = oh.make_graph(
        nodes,
        "layers",
        [oh.make_tensor_value_info("y0", FLOATS, [8])],
        [oh.make_tensor_value_info("g0", FLOATS, [8])],
        [onnx.numpy_helper.from_array(np.array([8]), "shape")],
    )
    return oh.make_model(graph, ir_version=10, opset_imports=[oh.make_opsetid("", 21)])


def result(model: onnx.ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"y0": np.linspace(-1, 1, 8, dtype=np.float32)})[0]


def test_activations_are_not_held() -> None:
    for view in (False, True):
        model = there_and_back("Gelu", view)
        order_nodes(model.graph)
        before, expected = most_alive(model.graph), result(model)
        recompute(model.graph)
        onnx.checker.check_model(model)
        again = [node for node in model.graph.node if node.op_type == "Gelu" and node.output[0].endswith(".again")]
        assert len(again) > LAYERS // 2
        assert most_alive(model.graph) <= before - len(again) + 2
        assert (result(model) == expected).all()


def test_what_is_not_cheap_or_not_held_stays() -> None:
    dear = there_and_back("Erf")
    order_nodes(dear.graph)
    lone = there_and_back("Gelu")
    for node in lone.graph.node:  # cosines are not read on the way back, so that nothing can be computed from them
        if node.op_type == "Sub":
            node.input[1] = "y0"
    order_nodes(lone.graph)
    for model in (dear, lone):
        before = model.SerializeToString()
        recompute(model.graph)
        assert model.SerializeToString() == before


def test_a_weight_waits_for_what_is_computed_again() -> None:
    """The scale of a norm is changed only when the norm has been computed for the second time."""
    far = [oh.make_node("Sin", [f"s{i}"], [f"s{i + 1}"]) for i in range(2 * FAR)]
    nodes = [
        oh.make_node("Exp", ["x"], ["e"]),
        oh.make_node("LayerNormalization", ["e", "scale"], ["norm", "mean", "rest"]),
        oh.make_node("Neg", ["norm"], ["s0"]),
        *far,
        oh.make_node("Sub", [f"s{2 * FAR}", "mean"], ["back"]),
        oh.make_node("Mul", ["back", "e"], ["slope"]),
        oh.make_node(f"{UPDATE}0", ["scale", "slope"], ["scale.next"], domain="onward.kernels"),
        oh.make_node("Mul", ["back", "norm"], ["y"]),
    ]
    graph = oh.make_graph(
        nodes,
        "norm",
        [oh.make_tensor_value_info(name, FLOATS, [4]) for name in ("x", "scale")],
        [oh.make_tensor_value_info(name, FLOATS, [4]) for name in ("scale.next", "y")],
    )
    order_nodes(graph)
    recompute(graph)
    places = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    assert places["norm.again"] > places["back"]
    assert places["scale.next"] > places["norm.again"]
    assert next(node for node in graph.node if "norm.again" in node.output).output[1:] == ["", ""]
