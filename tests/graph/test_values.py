"""The interpreter of small values agrees with ONNX's reference on numbers, and makes up nothing about the rest."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onward.graph.facts import Facts, Term
from onward.graph.known import Known
from onward.graph.values import LIMIT, Algebra, constant_items, evaluate

A, B, C = np.array([[7, -7, 3], [0, 5, -2]]), np.array([2, -2, 5]), np.array([True, False, True])
F = np.array([2.25, 0.0, 6.5])
NAN = np.array([np.nan, 1.0, np.inf])
TWO = np.array([2])

CASES = {
    "Add": ([A, B], {}),
    "Sub": ([A, B], {}),
    "Mul": ([A, B], {}),
    "Div": ([A, B], {}),
    "Div of floats": ([NAN, F], {}),
    "Mod": ([A, B], {}),
    "Neg": ([A], {}),
    "Abs": ([A], {}),
    "Sqrt": ([F], {}),
    "Floor": ([-F], {}),
    "Ceil": ([-F], {}),
    "Min": ([A, B, A + 1], {}),
    "Max of floats": ([NAN, F], {}),
    "Equal": ([A, B], {}),
    "Less": ([A, B], {}),
    "GreaterOrEqual": ([A, B], {}),
    "And": ([C, ~C], {}),
    "Or": ([C, ~C], {}),
    "Not": ([C], {}),
    "Where": ([C, A, B], {}),
    "Cast to int": ([-F], {"to": 7}),
    "Cast to bool": ([A], {"to": 9}),
    "Cast to double": ([A], {"to": 11}),
    "Shape": ([A], {"start": -1}),
    "Size": ([A], {}),
    "ReduceProd": ([B], {"keepdims": 0}),
    "ReduceSum": ([B], {}),
    "ReduceMin": ([B], {}),
    "ReduceMax": ([B], {}),
    "Identity": ([A], {}),
    "Gather": ([A, np.array([[-1, 0]])], {"axis": 1}),
    "Gather one": ([B, np.array(-1)], {}),
    "Slice": ([A, np.array([9]), np.array([-(2**63)]), np.array([1]), np.array([-2])], {}),
    "Slice from far before": ([B, np.array([-9]), np.array([2])], {}),
    "Concat": ([A, A], {"axis": -1}),
    "Unsqueeze": ([B, np.array([0, -1])], {}),
    "Squeeze": ([A[:, :1], np.array([-1])], {}),
    "Squeeze all": ([A[:1, :1]], {}),
    "Reshape": ([A, np.array([0, -1, 1])], {}),
    "Expand": ([B, np.array([2, 1])], {}),
    "Tile": ([A, np.array([2, 1])], {}),
    "Transpose": ([A], {"perm": [1, 0]}),
    "Split": ([A, np.array([2, 1])], {"axis": 1}),
    "Split evenly": ([B], {"num_outputs": 2}),
    "ConstantOfShape": ([TWO], {"value": helper.make_tensor("value", 7, [1], [5])}),
    "ConstantOfShape of zeros": ([TWO], {}),
    "Range": ([np.array(7), np.array(-2), np.array(-3)], {}),
}


class Constants(Algebra):
    """Knows constants and their shapes."""

    def of(self, value):
        return constant_items(value.const_value.numpy())

    def dim(self, value, axis):
        return value.shape[axis]


def node_of(op_type, arrays, attributes, outputs=1):
    inputs = []
    for i, data in enumerate(arrays):
        value = ir.Value(name=f"i{i}", const_value=ir.tensor(data), shape=ir.Shape(data.shape))
        value.type = ir.TensorType(value.const_value.dtype)
        inputs.append(value)
    proto = helper.make_node(op_type, [v.name for v in inputs], [f"o{i}" for i in range(outputs)], **attributes)
    given = [ir.serde.deserialize_attribute(a) for a in proto.attribute]
    return proto, ir.Node("", op_type, inputs, given, num_outputs=outputs)


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_reference(case):
    op_type, (arrays, attributes) = case.split()[0], CASES[case]
    proto, node = node_of(op_type, arrays, attributes, 2 if op_type == "Split" else 1)
    kinds = [(helper.np_dtype_to_tensor_dtype(data.dtype), data.shape) for data in arrays]
    infos = [helper.make_tensor_value_info(f"i{i}", *kind) for i, kind in enumerate(kinds)]
    graph = helper.make_graph([proto], "g", infos, [onnx.ValueInfoProto(name=name) for name in proto.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    wanted = ReferenceEvaluator(model).run(None, {f"i{i}": a for i, a in enumerate(arrays)})
    found = evaluate(node, Constants())
    assert found is not None and len(found) == len(wanted)
    for items, data in zip(found, wanted, strict=True):
        assert items.shape == np.shape(data)
        np.testing.assert_array_equal(items.astype(np.asarray(data).dtype), data)


@pytest.mark.parametrize(
    ("op_type", "arrays", "attributes"),
    [
        ("Gather", [B, np.array(3)], {}),
        ("Reshape", [A, np.array([4, -1])], {}),
        ("Tile", [A, np.array([LIMIT])], {}),
        ("Expand", [B, np.array([LIMIT, 3])], {}),
        ("Add", [np.zeros((LIMIT, 1), int), B], {}),
        ("Add", [np.array([2**63 - 1]), TWO], {}),
        ("Range", [np.array(0), np.array(2**62), np.array(1)], {}),
        ("Mod", [A, B], {"fmod": 1}),
        ("Split", [B, np.array([2, 2])], {}),
        ("Exp", [F], {}),
    ],
)
def test_what_is_wrong_too_large_or_not_followed_is_unknown(op_type, arrays, attributes):
    assert evaluate(node_of(op_type, arrays, attributes, 2 if op_type == "Split" else 1)[1], Constants()) is None


def test_a_division_by_zero_is_one_unknown_number():
    (items,) = evaluate(node_of("Div", [A, np.array([1, 0, 2])], {})[1], Constants())
    assert items.tolist() == [[7, None, 1], [0, None, -1]]


def shape_node(of):
    """`of` of the shape of a tensor (batch, ?, 4) and of ones."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["batch", None, 4]))
    shape = ir.Node("", "Shape", [x])
    (ones,) = node_of("Identity", [np.array([1, 1, 1])], {})[1].inputs
    node = ir.Node("", of, [shape.outputs[0], ones])
    for made in (shape, node):
        made.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    return shape, node


def test_inference_knows_names_and_some_of_the_numbers():
    known = Known()
    shape, node = shape_node("Add")
    known.node(shape)
    known.node(node)
    assert known.of(shape.outputs[0]).tolist() == ["batch", None, 4]
    assert known.of(node.outputs[0]).tolist() == [None, None, 5]


def test_passes_multiply_dimensions_and_add_none():
    facts = Facts()
    batch, other, four = facts.numbers(shape_node("Mul")[1].outputs[0])
    assert isinstance(batch, Term) and isinstance(other, Term) and four == 4
    assert facts.numbers(shape_node("Add")[1].outputs[0]) is None
