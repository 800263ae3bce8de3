"""The pass as a whole: scopes, names, provenance, weights, time."""

import gc
import time

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from old_files import on_runtime, upgraded
from onnx import TensorProto, helper

from onward.canon.upgrade import upgrade
from onward.canon.upgrade.registry import ENTRIES
from onward.errors import ConversionError, InvalidModelError, UnsupportedError
from onward.graph.origin import Origin, origin

NEWEST = onnx.defs.onnx_opset_version()


def model(
    nodes: list[onnx.NodeProto], opset: int | list[onnx.OperatorSetIdProto], outputs: str = "y", **extra: object
) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 1]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    infos = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    opsets = [helper.make_opsetid("", opset)] if isinstance(opset, int) else opset
    graph = helper.make_graph(nodes, "g", inputs, infos)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **extra)


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "branch", [], [onnx.ValueInfoProto(name=nodes[-1].output[0])])


def feeds(flag: bool) -> dict[str, np.ndarray]:
    return {"x": np.arange(6, dtype=np.float32).reshape(2, 3, 1), "c": np.array(flag)}


@pytest.mark.parametrize("flag", [True, False])
def test_nodes_in_branches_are_upgraded(flag: bool) -> None:
    inner = branch(
        helper.make_node(
            "If",
            ["c"],
            ["deep"],
            then_branch=branch(helper.make_node("Squeeze", ["x"], ["a"], axes=[2])),
            else_branch=branch(helper.make_node("ReduceMax", ["x"], ["b"], axes=[1], keepdims=0)),
        )
    )
    other = branch(helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Neg", ["s"], ["d"]))
    old = model([helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)], 12)
    (expected,) = on_runtime(old, feeds(flag))
    (actual,) = on_runtime(upgraded(old, 21), feeds(flag))
    np.testing.assert_array_equal(actual, expected)


def test_new_names_are_free_in_every_scope() -> None:
    """The name that the rewrite of `y` would like is taken, inside the branch only."""
    inner = branch(helper.make_node("Neg", ["x"], ["y_constant"]), helper.make_node("Abs", ["y_constant"], ["i"]))
    outer = branch(helper.make_node("Identity", ["x"], ["o"]))
    old = model(
        [
            helper.make_node("Squeeze", ["x"], ["y"], axes=[2]),
            helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=outer),
        ],
        10,
        "y z",
    )
    new = ir.from_proto(old)
    upgrade(new)
    outputs = [o.name for node in new.graph.all_nodes() for o in node.outputs]
    assert len(outputs) == len(set(outputs))
    names = [node.name for node in new.graph.all_nodes() if node.name]
    assert len(names) == len(set(names))


def test_a_function_is_upgraded_from_its_own_opset() -> None:
    body = [helper.make_node("Squeeze", ["a"], ["b"], axes=[2])]
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 11)])
    calls = [helper.make_node("F", ["x"], ["f"], domain="own"), helper.make_node("Squeeze", ["f", "k"], ["y"])]
    constant = helper.make_node("Constant", [], ["k"], value_ints=[1])
    old = model([constant, *calls], [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)], functions=[function])
    new = ir.from_proto(old)
    upgrade(new)
    (inner,) = new.functions.values()
    assert [node.op_type for node in inner] == ["Constant", "Squeeze"]
    assert inner.opset_imports[""] == NEWEST
    assert new.opset_imports == {"": NEWEST, "own": 1}
    assert {node.version for node in inner} == {NEWEST}


def test_every_new_node_stands_for_its_old_one() -> None:
    old = model(
        [
            helper.make_node("Softmax", ["x"], ["s"], name="scores", axis=0),
            helper.make_node("Upsample", ["s"], ["y"], scales=[1.0, 2.0, 1.5]),
        ],
        7,
    )
    new = ir.from_proto(old)
    upgrade(new)
    found = {node.op_type: origin(node) for node in new.graph}
    assert found["Flatten"] == found["Softmax"] == Origin("scores", "Softmax", "")
    assert found["Resize"] == Origin("y", "Upsample", "")
    assert [node.name for node in new.graph if node.op_type == "Softmax"] == ["scores"]


def test_weights_are_not_read() -> None:
    def read() -> ir.Tensor:
        raise AssertionError("a weight was read")

    new = ir.from_proto(model([helper.make_node("PRelu", ["x", "w"], ["y"])], 6))
    weight = next(iter(new.graph)).inputs[1]
    assert weight is not None
    weight.const_value = ir.LazyTensor(read, ir.DataType.FLOAT, ir.Shape([300_000]), name="w")
    weight.shape = ir.Shape([300_000])
    new.graph.initializers.add(weight)
    upgrade(new)
    assert [node.op_type for node in new.graph] == ["Constant", "Unsqueeze", "PRelu"]


def test_a_second_upgrade_changes_nothing() -> None:
    new = ir.from_proto(model([helper.make_node("Softmax", ["x"], ["y"], axis=0)], 9))
    upgrade(new)
    once = ir.to_proto(new).SerializeToString()
    upgrade(new)
    assert ir.to_proto(new).SerializeToString() == once


def test_the_default_domain_may_be_spelt_out() -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[2], domain="ai.onnx")
    new = ir.from_proto(model([node], [helper.make_opsetid("ai.onnx", 9)]))
    upgrade(new)
    assert new.opset_imports == {"": NEWEST}
    assert new.graph.node(-1).attributes == {}


def test_a_file_older_than_opset_imports_is_of_opset_1() -> None:
    new = ir.from_proto(model([helper.make_node("Concat", ["x", "x"], ["y"])], []))
    new.ir_version = 2
    upgrade(new)
    assert new.graph.node(0).attributes["axis"].as_int() == 1


def test_element_types_are_followed_through_nodes_that_declare_none() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        helper.make_node("Relu", ["d"], ["r"]),
        helper.make_node("Clip", ["r"], ["y"], min=0.5),
    ]
    new = ir.from_proto(model(nodes, 9))
    upgrade(new)
    assert [node.op_type for node in new.graph] == ["Cast", "Relu", "Constant", "Clip"]
    assert new.graph.node(2).outputs[0].dtype == ir.DataType.DOUBLE


@pytest.mark.parametrize(
    ("node", "error", "why"),
    [
        (helper.make_node("Softmax", ["x"], ["y"], axis=3), InvalidModelError, "axis 3 is outside an input of rank 3"),
        (helper.make_node("Softmax", ["x"], ["y"], axis="1"), ConversionError, "TypeError"),
        (helper.make_node("Mul", ["x", "x"], ["y"], broadcast=1, axis=1), InvalidModelError, "does not fit"),
        (helper.make_node("Cast", ["x"], ["y"], to="FLOAT1"), InvalidModelError, "FLOAT1"),
        (helper.make_node("Clip", [], ["y"]), InvalidModelError, "required input 0 is missing"),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else "",
)
def test_a_malformed_node_is_named(node: onnx.NodeProto, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=f"{node.op_type} 'y' .*{why}"):
        upgrade(ir.from_proto(model([node], 5)))


def test_a_newer_opset_is_refused() -> None:
    new = ir.from_proto(model([helper.make_node("Neg", ["x"], ["y"], name="n")], NEWEST + 1))
    with pytest.raises(UnsupportedError, match=f"Neg 'n'.*opset {NEWEST + 1} is newer"):
        upgrade(new)


def test_a_missing_opset_import_is_refused() -> None:
    new = ir.from_proto(model([helper.make_node("Neg", ["x"], ["y"])], [helper.make_opsetid("ai.onnx.ml", 1)]))
    with pytest.raises(InvalidModelError, match="imports no opset"):
        upgrade(new)


def test_an_attribute_of_a_function_cannot_be_rewritten_before_inlining() -> None:
    squeeze = helper.make_node("Squeeze", ["a"], ["b"])
    squeeze.attribute.append(onnx.AttributeProto(name="axes", ref_attr_name="over", type=onnx.AttributeProto.INTS))
    function = helper.make_function("own", "F", ["a"], ["b"], [squeeze], [helper.make_opsetid("", 11)], ["over"])
    call = helper.make_node("F", ["x"], ["y"], domain="own", over=[2])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    with pytest.raises(UnsupportedError, match="inline"):
        upgrade(ir.from_proto(model([call], opsets, functions=[function])))


@pytest.mark.parametrize("op", ["TreeEnsembleClassifier", "TreeEnsembleRegressor"])
def test_trees_are_kept_in_the_last_version_that_has_them(op: str) -> None:
    tree = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml")
    new = ir.from_proto(model([tree], [helper.make_opsetid("", 9), helper.make_opsetid("ai.onnx.ml", 1)]))
    upgrade(new)
    assert new.opset_imports == {"": NEWEST, "ai.onnx.ml": 4}
    assert [node.op_type for node in new.graph] == [op]


@pytest.mark.parametrize("target", [0, NEWEST + 1])
def test_the_target_has_bounds(target: int) -> None:
    with pytest.raises(ValueError, match="target opset"):
        upgrade(ir.from_proto(model([helper.make_node("Neg", ["x"], ["y"])], 9)), target)


def test_an_older_target_is_for_nodes_that_mean_the_same_there() -> None:
    same = ir.from_proto(model([helper.make_node("Neg", ["x"], ["y"])], 9))
    upgrade(same, 15)
    assert same.opset_imports[""] == 15
    with pytest.raises(ValueError, match="rewritten in opset 21"):
        upgrade(ir.from_proto(model([helper.make_node("Softmax", ["x"], ["y"])], 9)), 15)


CONSUMERS = sorted(op for (_, op), entries in ENTRIES.items() if entries[0][1].__name__ == "consumed_inputs")
EXTRA_INPUTS = {"BatchNormalization": 4, "InstanceNormalization": 2} | dict.fromkeys(
    ["Add", "Div", "Mul", "PRelu", "Sub"], 1
)


@pytest.mark.parametrize("op", CONSUMERS)
def test_consumed_inputs_go(op: str) -> None:
    inputs = ["x"] * (1 + EXTRA_INPUTS.get(op, 0))
    new = ir.from_proto(model([helper.make_node(op, inputs, ["y"], consumed_inputs=[0])], 1))
    upgrade(new)
    assert all("consumed_inputs" not in node.attributes for node in new.graph)


def chain(length: int) -> ir.Model:
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    ops = [("Clip", {"min": 0.0}), ("Unsqueeze", {"axes": [0]}), ("Squeeze", {"axes": [0]}), ("Relu", {})]
    nodes = [helper.make_node(ops[i % 4][0], [names[i]], [names[i + 1]], **ops[i % 4][1]) for i in range(length)]
    return ir.from_proto(model(nodes, 9))


def test_time_is_linear_in_nodes() -> None:
    def seconds(length: int) -> float:
        new = chain(length)
        gc.collect()
        gc.disable()  # what other tests have left is not looked through again and again
        try:
            start = time.process_time()
            upgrade(new)
            return time.process_time() - start
        finally:
            gc.enable()

    seconds(400)
    short, long = min(seconds(2_000) for _ in range(3)), min(seconds(20_000) for _ in range(2))
    assert long < 25 * short
    assert long < 10
