"""Default attributes."""

import time

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from onward.canon.defaults import fill_defaults


def model(nodes: list[onnx.NodeProto], version: int = 21) -> ir.Model:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name=nodes[-1].output[0])])
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)]
    return ir.from_proto(helper.make_model(graph, opset_imports=opsets))


def values(node: ir.Node) -> dict[str, object]:
    return {name: attribute.value for name, attribute in node.attributes.items()}


def test_what_is_missing_is_filled_in_and_what_is_there_stays() -> None:
    new = model([helper.make_node("Gemm", ["x", "x"], ["y"], transB=1)])
    fill_defaults(new)
    assert values(new.graph.node(0)) == {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}


def test_attributes_without_default_stay_away() -> None:
    new = model([helper.make_node("Conv", ["x", "x"], ["y"])])
    fill_defaults(new)
    assert values(new.graph.node(0)) == {"auto_pad": "NOTSET", "group": 1}


def test_the_version_of_the_node_counts() -> None:
    new = model([helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])])
    new.graph.node(0).version = 11
    fill_defaults(new)
    assert [values(node) for node in new.graph] == [{"axis": 1}, {"axis": -1}]


def test_other_domains_are_left_alone() -> None:
    new = model([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")])
    fill_defaults(new)
    assert values(new.graph.node(0)) == {}


def test_nodes_in_branches_are_filled_in() -> None:
    leaky = helper.make_node("LeakyRelu", ["x"], ["b"])
    branch = helper.make_graph([leaky], "b", [], [onnx.ValueInfoProto(name="b")])
    new = model([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)])
    fill_defaults(new)
    inner = [node for node in new.graph.all_nodes() if node.op_type == "LeakyRelu"]
    assert [round(node.attributes["alpha"].as_float(), 6) for node in inner] == [0.01, 0.01]


def test_twenty_thousand_nodes_take_less_than_a_second() -> None:
    names = [f"v{i}" for i in range(20_000)]
    new = model([helper.make_node("LeakyRelu", [a], [b]) for a, b in zip(["x", *names], names, strict=False)])
    start = time.process_time()
    fill_defaults(new)
    assert time.process_time() - start < 1
