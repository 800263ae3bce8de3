"""What a graph holds at once is known before it runs."""

import onnx.helper as oh
from onnx import TensorProto

from onward.training.speed.peak import known_bytes, planned_peak

FLOATS, HALVES = TensorProto.FLOAT, TensorProto.BFLOAT16


def test_values_until_they_are_read_last() -> None:
    nodes = [
        oh.make_node("Exp", ["x"], ["a"]),  # 40
        oh.make_node("Reshape", ["a", "shape"], ["b"]),  # a view
        oh.make_node("Cast", ["b"], ["c"], to=HALVES),  # 40 + 20
        oh.make_node("Neg", ["c"], ["unread"]),  # 40 + 20 + 20
        oh.make_node("Sin", ["b"], ["d"]),  # 40 + 40: the half is gone
        oh.make_node("Cos", ["d"], ["e"]),  # 40 + 40
        oh.make_node("Sum", ["e"], ["y"]),  # an output is not counted
    ]
    infos = {name: oh.make_tensor_value_info(name, FLOATS, [2, 5]) for name in ("x", "y", "a", "d", "e")}
    infos |= {name: oh.make_tensor_value_info(name, HALVES, [5, 2]) for name in ("c", "unread")}
    graph = oh.make_graph(nodes, "g", [infos.pop("x")], [infos.pop("y")], value_info=list(infos.values()))
    assert known_bytes(graph) == {"x": 40, "a": 40, "c": 20, "unread": 20, "d": 40, "e": 40}
    assert planned_peak(graph, known_bytes(graph)) == 80
    assert planned_peak(graph, known_bytes(graph) | {"unread": 30}) == 90


def test_what_is_not_known() -> None:
    """It is as large as a view of it, or as what it is computed from; a batch of unknown size is of 32."""
    nodes = [
        oh.make_node("Exp", ["x"], ["a"]),
        oh.make_node("Blocks", ["a"], ["b"], domain="com.example"),
        oh.make_node("Grown", ["b"], ["c"], domain="com.example"),
        oh.make_node("Flatten", ["c"], ["d"]),
        oh.make_node("Neg", ["d"], ["y"]),
    ]
    ends = [oh.make_tensor_value_info(name, FLOATS, ["n", 2]) for name in "xy"]
    infos = [oh.make_tensor_value_info("a", FLOATS, ["n", 2]), oh.make_tensor_value_info("d", FLOATS, ["n", 10])]
    graph = oh.make_graph(nodes, "g", ends[:1], ends[1:], value_info=infos)
    assert planned_peak(graph, known_bytes(graph)) == 32 * 4 * (2 + 10)
