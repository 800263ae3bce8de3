"""A model in 16-bit floats computes what it did, and what does not fit into them stays."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.bits.candidates import candidates
from onward.bits.narrow_floats import narrowed
from onward.bits.which_stay import ranked
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.model import Model
from onward.runners import prepare

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 16)).astype(np.float32)


def built(*nodes: onnx.NodeProto, opset: int = 18, **weights: np.ndarray) -> Model:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))


def layer(scale: float = 1.0) -> Model:
    return built(
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="second"),
        helper.make_node("ReduceSumSquare", ["r"], ["y"], name="third", keepdims=0),
        w=scale * RNG.standard_normal((16, 8)).astype(np.float32),
    )


def weight_types(model: Model) -> set[ir.DataType]:
    return {value.dtype for value in model.ir.graph.initializers.values() if value.dtype is not None}


def test_everything_fits() -> None:
    model = layer(0.1)
    found = narrowed(model, "float16", [{"x": X}])
    assert (found.nodes, found.kept) == (3, ())
    assert weight_types(found.model) == {ir.DataType.FLOAT16}
    assert [node.op_type for node in found.model.ir.graph].count("Cast") == 2  # one for the input, one for the output
    expected, actual = (prepare("onnxruntime", each)({"x": X})["y"] for each in (model, found.model))
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=5e-3)


def test_what_overflows_stays() -> None:
    model = layer(100.0)
    found = narrowed(model, "float16", [{"x": X}])
    assert [(one.node, one.why) for one in found.kept] == [("third", "its numbers do not fit into float16")]
    expected, actual = (prepare("onnxruntime", each)({"x": X})["y"] for each in (model, found.model))
    np.testing.assert_allclose(actual, expected, rtol=5e-3)
    assert narrowed(model, "bfloat16", [{"x": X}]).kept == ()  # which holds as large numbers as 32 bits do


def test_a_tiny_constant_that_would_be_zero_stays() -> None:
    model = built(
        helper.make_node("Sub", ["x", "x"], ["zero"], name="none"),
        helper.make_node("Add", ["zero", "eps"], ["small"], name="eps"),
        helper.make_node("Div", ["small", "small"], ["y"], name="ratio"),
        eps=np.float32(1e-12),
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert {"eps", "ratio"} <= {one.node for one in found.kept}
    np.testing.assert_array_equal(prepare("onnxruntime", found.model)({"x": X})["y"], np.ones((4, 16)))


def test_named_nodes_and_ops_stay() -> None:
    assert {one.node for one in narrowed(layer(0.1), "float16", [{"x": X}], keep=["fir*"]).kept} == {"first"}
    assert {one.node for one in narrowed(layer(0.1), "float16", [{"x": X}], keep=["Relu"]).kept} == {"second"}
    with pytest.raises(OnwardError, match="'fourth' is no node"):
        narrowed(layer(0.1), "float16", [{"x": X}], keep=["fourth"])


def test_a_weight_that_must_stay_is_not_stored_twice() -> None:
    """Both layers read it, and one of them stays; its shape is read as well."""
    w = RNG.standard_normal((16, 16)).astype(np.float32)
    model = built(
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("MatMul", ["h", "w"], ["m"], name="second"),
        helper.make_node("Shape", ["w"], ["s"], name="sizes"),
        helper.make_node("ReduceProd", ["s"], ["p"], keepdims=0),
        helper.make_node("Cast", ["p"], ["f"], to=1),
        helper.make_node("Add", ["m", "f"], ["y"], name="last"),
        w=w,
    )
    for keep in ([], ["second"], ["first", "second"]):
        found = narrowed(model, "float16", [{"x": X}], keep=keep).model
        (weight,) = found.ir.graph.initializers.values()
        assert (weight.name, weight.dtype) == ("w", ir.DataType.FLOAT if keep else ir.DataType.FLOAT16)
        np.testing.assert_allclose(prepare("onnxruntime", found)({"x": X})["y"], X @ w @ w + 256, rtol=5e-3, atol=1.0)


@pytest.mark.parametrize("keep", [[], ["first"], ["third"]])
def test_inputs_and_outputs_of_16_bits(keep: list[str]) -> None:
    model = layer(0.1)
    found = narrowed(model, "float16", [{"x": X}], keep=keep, ends=True).model
    ends = [*found.ir.graph.inputs, *found.ir.graph.outputs]
    assert [(value.name, value.dtype) for value in ends] == [("x", ir.DataType.FLOAT16), ("y", ir.DataType.FLOAT16)]
    onnx.checker.check_model(found.to_proto(), full_check=True)
    casts = [node.op_type for node in found.ir.graph].count("Cast")
    assert casts == (2 if keep else 0)
    actual = prepare("onnxruntime", found)({"x": X.astype(np.float16)})["y"]
    np.testing.assert_allclose(actual, prepare("onnxruntime", model)({"x": X})["y"], rtol=5e-3)


def test_the_original_is_left_alone() -> None:
    model = layer(0.1)
    before = model.to_proto().SerializeToString()
    narrowed(model, "float16", [{"x": X}])
    assert model.to_proto().SerializeToString() == before


def test_nothing_to_narrow_is_said() -> None:
    model = built(
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64), helper.make_node("Cast", ["i"], ["y"], to=1)
    )
    with pytest.raises(UnsupportedError, match="nothing would change"):
        narrowed(model, "float16", [{"x": X}])


def test_weights_that_are_listed_as_inputs_are_halved() -> None:
    """As old exporters wrote them."""
    model = layer()
    weights = list(model.ir.graph.initializers.values())
    model.ir.graph.inputs.extend(weights)
    found = narrowed(model, "float16", [{"x": X}])
    assert weight_types(found.model) == {ir.DataType.FLOAT16} and not found.kept
    assert [value.name for value in found.model.ir.graph.inputs] == ["x"]


def test_groups_that_move_the_results_come_first() -> None:
    """Not the nodes that lose most by themselves."""
    nodes = [helper.make_node("Relu", ["x" if i == 0 else f"h{i}"], [f"h{i + 1}"]) for i in range(31)]
    model = built(*nodes, helper.make_node("Neg", ["h31"], ["y"]))
    infer(model.ir)
    found = list(candidates(model.ir, ir.DataType.FLOAT16))
    lost = {id(one.node): float(place) for place, one in enumerate(found)}
    order = ranked(found, lost, lambda group: 9.0 if found[4] in group else 1.0)
    assert [found.index(one) for one in order] == [5, 4, *(i + 1 - 2 * (i % 2) for i in range(32) if i not in (4, 5))]


def test_what_a_product_reads_is_moved_in_32_bits() -> None:
    """A Transpose and a MatMul in 16 bits end the process of ONNX Runtime 1.31."""
    model = built(
        helper.make_node("Unsqueeze", ["x", "axis"], ["u"]),
        helper.make_node("Transpose", ["u"], ["t"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
        axis=np.array([0]),
        w=RNG.standard_normal((16, 8)).astype(np.float32),
    )
    found = narrowed(model, "float16", [{"x": X}])
    infer(found.model.ir)
    transpose = next(node for node in found.model.ir.graph if node.op_type == "Transpose")
    assert transpose.inputs[0] is not None and transpose.inputs[0].dtype == ir.DataType.FLOAT
    expected, actual = (prepare("onnxruntime", each)({"x": X})["y"] for each in (model, found.model))
    np.testing.assert_allclose(actual, expected, rtol=1e-2, atol=1e-2)


def test_what_is_given_out_beside_floats() -> None:
    """An output that has 16 bits already, one that is a weight, and a node that gives no floats."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[n, 16] x, float16[3] h) => (float[n, 16] y, float16[3] t, float[1] w, int64[n, 1] top)
        <float[1] w = {2.}> {
          e = Exp(x) y = Mul(e, w) t = Transpose(h) top = ArgMax<axis = 1>(x) }""")
    proto.graph.output[2].type.tensor_type.ClearField("shape")  # so that the file says less of it than of the weight
    inputs = {"x": X, "h": np.ones(3, np.float16)}
    made = narrowed(onward.load(proto), "float16", [inputs], ends=True).model
    found = prepare("onnxruntime", made)({**inputs, "x": X.astype(np.float16)})
    assert {name: str(array.dtype) for name, array in found.items()} == {
        **dict.fromkeys("ytw", "float16"),
        "top": "int64",
    }


def test_a_model_that_gives_no_floats() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 16] x) => (int64[n, 1] y) { y = ArgMax<axis = 1>(x) }'
    )
    assert narrowed(onward.load(proto), "float16", [{"x": X}]).nodes == 1
