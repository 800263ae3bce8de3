"""Inlining of functions that a model brings along."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from old_files import on_runtime
from onnx import TensorProto, helper

from onward.canon.inline import inline
from onward.canon.upgrade import upgrade
from onward.errors import InvalidModelError
from onward.graph.origin import Origin, origin

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def opsets(version: int) -> list[onnx.OperatorSetIdProto]:
    return [helper.make_opsetid("", version), helper.make_opsetid("own", 1)]


def call(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, domain="own", **attributes)


def refer(node: onnx.NodeProto, name: str, to: str, kind: int) -> onnx.NodeProto:
    """`node` with attribute `name` taken from attribute `to` of the enclosing function."""
    node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=kind))
    return node


def function(
    name: str, body: list[onnx.NodeProto], version: int = 17, inputs: str = "a", **extra: Any
) -> onnx.FunctionProto:
    return helper.make_function("own", name, inputs.split(), ["r"], body, opsets(version), **extra)


def model(nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto], version: int = 17) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [output])
    return helper.make_model(graph, opset_imports=opsets(version), functions=functions, ir_version=10)


def inlined(old: onnx.ModelProto) -> ir.Model:
    new = ir.from_proto(old)
    inline(new)
    assert not new.functions
    assert all(node.domain == "" for node in new.graph.all_nodes())
    names = [node.name for node in new.graph.all_nodes()]
    assert len(names) == len(set(names))
    return new


def result(new: ir.Model, flag: bool = True) -> np.ndarray:
    (value,) = on_runtime(ir.to_proto(new), {"x": X, "c": np.array(flag)})
    return value


LEAKY = refer(helper.make_node("LeakyRelu", ["a"], ["r"]), "alpha", "slope", onnx.AttributeProto.FLOAT)


@pytest.mark.parametrize(
    ("extra", "attributes", "expected"),
    [
        ({"attributes": ["slope"]}, {"slope": 0.5}, 0.5),
        ({"attributes": ["slope"]}, {}, 0.01),
        ({"attribute_protos": [helper.make_attribute("slope", 0.25)]}, {}, 0.25),
        ({"attribute_protos": [helper.make_attribute("slope", 0.25)]}, {"slope": 0.5}, 0.5),
    ],
    ids=["given", "absent: the op's default", "the function's default", "given over the default"],
)
def test_attributes_are_resolved(extra: Any, attributes: Any, expected: float) -> None:
    negate = helper.make_node("Neg", ["x"], ["n"])
    new = inlined(model([negate, call("F", ["n"], ["y"], **attributes)], [function("F", [LEAKY], **extra)]))
    np.testing.assert_allclose(result(new), -X * np.float32(expected))


def test_attributes_pass_through_nested_calls() -> None:
    outer_call = refer(call("Inner", ["a"], ["r"]), "slope", "steep", onnx.AttributeProto.FLOAT)
    functions = [
        function("Inner", [LEAKY], attributes=["slope"]),
        function("Outer", [outer_call], attributes=["steep"]),
    ]
    nodes = [helper.make_node("Neg", ["x"], ["n"]), call("Outer", ["n"], ["y"], steep=0.75)]
    np.testing.assert_allclose(result(inlined(model(nodes, functions))), -X * np.float32(0.75))


def test_a_body_of_another_opset_is_upgraded_from_its_own() -> None:
    """Softmax of opset 11 flattens its input, that of the model's opset 13 does not."""
    body = [helper.make_node("Softmax", ["a"], ["r"], axis=0)]
    nodes = [call("F", ["x"], ["f"]), helper.make_node("Softmax", ["f"], ["y"], axis=0)]
    new = inlined(model(nodes, [function("F", body, version=11)], version=13))
    assert [node.version for node in new.graph] == [11, None]
    upgrade(new, 21)
    whole = np.exp(X) / np.exp(X).sum()
    np.testing.assert_allclose(result(new), np.exp(whole) / np.exp(whole).sum(0), rtol=1e-6)


def test_provenance_joins_the_call_and_the_node() -> None:
    functions = [
        function("Inner", [helper.make_node("Abs", ["a"], ["r"], name="size")]),
        function("Outer", [call("Inner", ["a"], ["r"], name="in")]),
    ]
    new = inlined(model([call("Outer", ["x"], ["y"], name="out")], functions))
    assert [origin(node) for node in new.graph] == [Origin("out/in/size", "Abs", "")]


def test_each_call_has_names_of_its_own() -> None:
    body = [helper.make_node("Neg", ["a"], ["t"]), helper.make_node("Add", ["t", "b"], ["r"])]
    nodes = [call("F", ["x", "x"], ["u"]), call("F", ["u", "x"], ["v"]), helper.make_node("Mul", ["u", "v"], ["y"])]
    np.testing.assert_allclose(result(inlined(model(nodes, [function("F", body, inputs="a b")]))), X * 0)


def test_an_input_that_is_left_out_stays_out() -> None:
    body = [helper.make_node("Clip", ["a", "low", "high"], ["r"])]
    nodes = [helper.make_node("Constant", [], ["h"], value_float=2.0), call("F", ["x", "", "h"], ["y"])]
    new = inlined(model(nodes, [function("F", body, inputs="a low high")]))
    np.testing.assert_array_equal(result(new), np.minimum(X, 2))


def test_a_function_may_hand_an_input_through() -> None:
    handed = helper.make_function("own", "F", ["a"], ["a"], [], opsets(17))
    np.testing.assert_array_equal(result(inlined(model([call("F", ["x"], ["y"])], [handed]))), X)


def test_overloads_are_told_apart() -> None:
    functions = [function("F", [helper.make_node(op, ["a"], ["r"])]) for op in ("Neg", "Exp")]
    functions[1].overload = "other"
    second = call("F", ["u"], ["y"])
    second.overload = "other"
    new = inlined(model([call("F", ["x"], ["u"]), second], functions))
    assert [node.op_type for node in new.graph] == ["Neg", "Exp"]


@pytest.mark.parametrize("flag", [True, False])
def test_branches_inside_a_function_see_its_values(flag: bool) -> None:
    """The branches capture an input of the function and a value of its body, and call another function."""
    info = onnx.ValueInfoProto
    then = helper.make_graph([call("Negate", ["twice"], ["p"])], "then", [], [info(name="p")])
    other = helper.make_graph([helper.make_node("Add", ["a", "twice"], ["q"])], "else", [], [info(name="q")])
    body = [
        helper.make_node("Add", ["a", "a"], ["twice"]),
        helper.make_node("If", ["flag"], ["r"], then_branch=then, else_branch=other),
    ]
    functions = [
        function("F", body, inputs="a flag"),
        function("Negate", [helper.make_node("Neg", ["a"], ["r"])]),
    ]
    nodes = [call("F", ["x", "c"], ["u"]), call("F", ["u", "c"], ["y"])]
    new = inlined(model(nodes, functions))
    np.testing.assert_array_equal(result(new, flag), X * (4 if flag else 9))


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_may_be_given_as_an_attribute(flag: bool) -> None:
    info = [onnx.ValueInfoProto(name="p")]
    given = helper.make_graph([call("Negate", ["x"], ["p"])], "given", [], info)
    own = helper.make_graph([helper.make_node("Identity", ["a"], ["q"])], "own", [], [onnx.ValueInfoProto(name="q")])
    choose = refer(
        helper.make_node("If", ["flag"], ["r"], else_branch=own), "then_branch", "body", onnx.AttributeProto.GRAPH
    )
    functions = [
        function("F", [choose], inputs="a flag", attributes=["body"]),
        function("Negate", [helper.make_node("Neg", ["a"], ["r"])]),
    ]
    new = inlined(model([call("F", ["x", "c"], ["y"], body=given)], functions))
    np.testing.assert_array_equal(result(new, flag), -X if flag else X)


def test_functions_that_call_themselves_are_refused() -> None:
    functions = [function("A", [call("B", ["a"], ["r"])]), function("B", [call("A", ["a"], ["r"])])]
    with pytest.raises(InvalidModelError, match=r"call themselves: 'own"):
        inline(ir.from_proto(model([call("A", ["x"], ["y"])], functions)))


def test_functions_that_grow_without_bound_are_refused() -> None:
    """Sixty functions, each of which calls the next one twice."""
    twice = [[call(f"F{i + 1}", ["a"], ["t"]), call(f"F{i + 1}", ["t"], ["r"])] for i in range(60)]
    functions = [function(f"F{i}", body) for i, body in enumerate(twice)]
    functions.append(function("F60", [helper.make_node("Neg", ["a"], ["r"])]))
    with pytest.raises(InvalidModelError, match=r"would become 1,152,921,504,606,846,976 nodes .* of 'own.F0'"):
        inline(ir.from_proto(model([call("F0", ["x"], ["y"])], functions)))


def test_a_graph_that_is_given_to_a_function_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten branches of a function are the graph that it is given, in which it is called with a graph."""
    monkeypatch.setenv("ONWARD_MAX_NODES", "1000")
    own = helper.make_graph([helper.make_node("Identity", ["a"], ["q"])], "own", [], [onnx.ValueInfoProto(name="q")])
    body = [
        refer(
            helper.make_node("If", ["flag"], [f"r{i}" if i else "r"], else_branch=own),
            "then_branch",
            "body",
            onnx.AttributeProto.GRAPH,
        )
        for i in range(10)
    ]
    functions = [function("F", body, inputs="a flag", attributes=["body"])]
    given = helper.make_graph([helper.make_node("Neg", ["x"], ["p"])], "given", [], [onnx.ValueInfoProto(name="p")])
    for _ in range(8):
        nodes = [call("F", ["x", "c"], ["p"], body=given)]
        given = helper.make_graph(nodes, "given", [], [onnx.ValueInfoProto(name="p")])
    with pytest.raises(InvalidModelError, match=r"become more than 1,000 nodes; .*ONWARD_MAX_NODES"):
        inline(ir.from_proto(model([call("F", ["x", "c"], ["y"], body=given)], functions)))


def test_functions_that_call_one_another_too_deep_are_refused() -> None:
    functions = [function(f"F{i}", [call(f"F{i + 1}", ["a"], ["r"])]) for i in range(300)]
    functions.append(function("F300", [helper.make_node("Neg", ["a"], ["r"])]))
    with pytest.raises(InvalidModelError, match="more than 200 deep"):
        inline(ir.from_proto(model([call("F0", ["x"], ["y"])], functions)))
