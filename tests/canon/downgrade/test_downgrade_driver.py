"""What survives a change of opset: names, functions, bodies, weights, metadata, training; and what is refused."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from new_files import floats, moved, ran, same
from onnx import helper, numpy_helper

from onward.canon.opset import at_opset
from onward.errors import OnwardError, UnsupportedError
from onward.model import load

TRIED = {("If", 11), ("Scan", 11), ("Scan", 9), ("Identity", 14), ("Identity", 16), ("Constant", 9), ("Upsample", 9)}
TRIED |= {("DequantizeLinear", 23), ("DequantizeLinear", 25), ("QuantizeLinear", 23)}
"""Entries that the tests of this file reach."""

X = floats(2, 3)


def model(text: str, opset: int | None = None) -> onnx.ModelProto:
    made = onnx.parser.parse_model(text)
    onnx.checker.check_model(made)
    return made


def ops(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


BRANCHES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2,3] x, bool c) => (float[a,b] y) {
  y = If (c) <then_branch = t () => (float[a,b] p) { one = Constant <value_ints = [1]> () p = ReduceMean (x, one) },
              else_branch = e () => (float[a,b] q) { two = Constant <value_ints = [0]> () q = ReduceMax (x, two) }>
}"""


@pytest.mark.parametrize("target", [17, 13, 11])
def test_graphs_inside_nodes_are_brought_along(target: int) -> None:
    new = model(BRANCHES)
    old = moved(new, target)
    assert {len(n.input) for a in old.graph.node[0].attribute for n in a.g.node if n.op_type.startswith("Reduce")} == {
        1
    }
    for choice in (True, False):
        feeds = {"x": X, "c": np.array(choice)}
        same(ran(old, feeds)[0], ran(new, feeds)[0], 1e-6)


def test_branches_of_two_shapes_are_refused_where_one_is_demanded() -> None:
    with pytest.raises(UnsupportedError, match="its branches"):
        moved(model(BRANCHES), 10)


FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2,3] x) => (float[2,3] y) { y = own.act (x) }
<opset_import: ["" : 21], domain: "own">
act (a) => (b) { h = Gelu (a) b = LayerNormalization <axis = -1> (h, a) }
"""


def test_functions_stay_functions() -> None:
    new = model(FUNCTION)
    old = moved(new, 16)
    assert ops(old) == ["act"] and len(old.functions) == 1
    assert [(o.domain, o.version) for o in old.functions[0].opset_import] == [("", 16)]
    assert not {"Gelu", "LayerNormalization"} & {node.op_type for node in old.functions[0].node}
    same(ran(old, {"x": X})[0], ran(new, {"x": X})[0], 1e-5)


PARAMETER = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2,3] x) => (float[2,3] y) { y = own.act <how = "tanh"> (x) }
<opset_import: ["" : 21], domain: "own">
act <how> (a) => (b) { b = Gelu <approximate : string = @how> (a) }
"""


def test_a_function_whose_parameter_has_to_be_known_is_inlined() -> None:
    new = model(PARAMETER)
    old = moved(new, 16)
    assert not old.functions and "act" not in ops(old)
    same(ran(old, {"x": X})[0], ran(new, {"x": X})[0], 1e-5)


def test_nodes_that_mean_the_same_stay_as_they_are() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[n,m] y) <float w = {2}> {
      [first] a = Mul (x, w)
      [second] b = Relu (a)
      axes = Constant <value_ints = [1]> ()
      [third] y = ReduceMean <keepdims = 0> (b, axes)
    }"""
    new = model(text)
    new.graph.node[0].doc_string = "kept"
    new.metadata_props.add(key="author", value="somebody")
    old = moved(new, 13)
    assert [node.name for node in old.graph.node] == ["first", "second", "third"]
    same_form = load(new).to_proto()
    assert old.graph.node[:2] == same_form.graph.node[:2]
    assert old.metadata_props == new.metadata_props and old.graph.initializer == same_form.graph.initializer
    assert old.ir_version == 7


@pytest.mark.parametrize("target", [7, 9, 11, 13, 17, 21, 26])
def test_there_and_back_again(target: int) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,3] x) => (float[n,m] y) {
      axes = Constant <value_ints = [1]> ()
      low = Constant <value_float = -0.5> ()
      a = Clip (x, low)
      b = Softmax (a)
      c = ReduceSum <keepdims = 1> (b, axes)
      d = HardSigmoid (c)
      y = Add (d, a)
    }"""
    new = model(text)
    old = moved(new, target)
    again = moved(old, 21)
    wanted = ran(new, {"x": X})[0]
    for made in (old, again):
        same(ran(made, {"x": X})[0], wanted, 1e-6)


def test_weights_beside_the_file_stay_there(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(floats(64, 64), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Gelu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 64])],
        [helper.make_tensor_value_info("y", 1, [2, 64])],
        [weight],
    )
    source, out = tmp_path / "new.onnx", tmp_path / "old.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(made, source, save_as_external_data=True, location="w.bin", size_threshold=16)
    at_opset(load(source), 13).model.save(out)
    assert out.with_name("old.onnx.data").stat().st_size == 64 * 64 * 4 and out.stat().st_size < 2000
    x = floats(2, 64)
    before, after = (onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0] for path in (source, out))
    same(after, before, 1e-4)


def test_training_information_follows() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { y = Mul (x, w) }"""
    new = model(text)
    step = onnx.parser.parse_graph("""step (float[2,3] goal) => (float[3] next) {
      zero = Constant <value_ints = [0]> ()
      error = Sub (y, goal)
      g = ReduceMean <keepdims = 0> (error, zero)
      next = Sub (w, g)
    }""")
    info = new.training_info.add()
    info.algorithm.CopyFrom(step)
    info.update_binding.add(key="w", value="next")
    old = moved(new, 13)
    nodes = old.training_info[0].algorithm.node
    assert [node.op_type for node in nodes if node.op_type != "Constant"] == ["Sub", "ReduceMean", "Sub"]
    assert [len(node.input) for node in nodes if node.op_type == "ReduceMean"] == [1]
    assert old.training_info[0].update_binding == info.update_binding
    assert old.graph.initializer == load(new).to_proto().graph.initializer


def test_four_bits_are_stored_in_eight() -> None:
    codes = helper.make_tensor("w", onnx.TensorProto.INT4, [4, 2], [-8, 7, 3, -2, 0, 1, 5, -5])
    scale = numpy_helper.from_array(abs(floats(2, 2)), "s")
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["h"], axis=0, block_size=2)
    graph = helper.make_graph(
        [node, helper.make_node("MatMul", ["x", "h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 4])],
        [helper.make_tensor_value_info("y", 1, [1, 2])],
        [codes, scale],
    )
    feeds = {"x": floats(1, 4)}
    for opset in (21, 23, 25):
        new = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        old = moved(new, 13)
        assert {t.data_type for t in old.graph.initializer} <= {onnx.TensorProto.INT8, onnx.TensorProto.FLOAT}
        same(ran(old, feeds)[0], ran(new, feeds)[0], 1e-5)


def test_precision_of_a_quantisation_that_is_none_is_left_out() -> None:
    text = """<ir_version: 11, opset_import: ["" : 23]>
    g (float[2,3] x) => (uint8[2,3] y) <float s = {0.1}> { y = QuantizeLinear <precision = 1> (x, s) }"""
    new = model(text)
    same(ran(moved(new, 13), {"x": X})[0], ran(new, {"x": X})[0], 0)


SEQUENCE = """<ir_version: 8, opset_import: ["" : 14]>
g (float[2,3] x) => (float[2,3] y) {
  s = SequenceConstruct (x)
  t = Identity (s)
  zero = Constant <value_int = 0> ()
  y = SequenceAt (t, zero)
}"""


def test_a_copy_of_a_sequence_is_left_out() -> None:
    old = moved(model(SEQUENCE), 13)
    assert "Identity" not in ops(old)
    same(ran(old, {"x": X})[0], X, 0)


def test_an_optional_is_refused_by_name() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2,3] y) { o = Optional (x) p = Identity (o) y = OptionalGetElement (p) }"""
    with pytest.raises(UnsupportedError, match=r"Optional 'o': opset 13 cannot say it.*give opset 15 or later"):
        moved(model(text), 13)


SCAN = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3] s, float[4,3] x) => (float[3] t, float[n,3] y) {
  t, y = Scan <num_scan_inputs = 1, scan_input_axes = [-2],
    body = b (float[3] a, float[3] e) => (float[3] c, float[3] d) { c = Add (a, e) d = Identity (c) }> (s, x)
}"""


def test_a_scan_says_its_axes_from_the_front() -> None:
    new = model(SCAN)
    old, feeds = moved(new, 10), {"s": floats(3), "x": floats(4, 3)}
    assert [a.ints for a in old.graph.node[0].attribute if a.name == "scan_input_axes"] == [[0]]
    same(ran(old, feeds)[1], ran(new, feeds)[1], 1e-6)
    with pytest.raises(UnsupportedError, match="scan of batches"):
        moved(new, 8)


def test_an_upsample_of_old_has_its_scales_as_an_attribute() -> None:
    text = """<ir_version: 10, opset_import: ["" : 13]>
    g (float[1,1,2,2] x) => (float[n,c,h,w] y) <float[4] s = {1, 1, 2, 3}> { y = Resize (x, , s) }"""
    new, feeds = model(text), {"x": floats(1, 1, 2, 2)}
    old = moved(new, 8)
    assert ops(old) == ["Upsample"]
    same(ran(old, feeds)[0], ran(new, feeds)[0], 1e-6)


@pytest.mark.parametrize("target", [10, 11, 12, 13])
def test_an_upsample_becomes_a_resize_of_any_version(target: int) -> None:
    scales = numpy_helper.from_array(np.float32([1, 1, 2, 3]), "s")
    graph = helper.make_graph(
        [helper.make_node("Upsample", ["x", "s"], ["y"], mode="nearest")],
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 1, 2, 2])],
        [helper.make_tensor_value_info("y", 1, [1, 1, 4, 6])],
        [scales],
    )
    old = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    new, feeds = moved(old, target), {"x": floats(1, 1, 2, 2)}
    onnx.checker.check_model(new)
    assert ops(new)[-1] == "Resize"
    same(ran(new, feeds)[0], ran(old, feeds)[0], 0)


def test_the_refusal_names_the_node_and_the_lowest_opset() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (string[2] x) => (string[2] y) { [joined] y = StringConcat (x, x) }"""
    with pytest.raises(
        UnsupportedError, match=r"StringConcat 'joined': opset 17 cannot say it.*give opset 20 or later"
    ):
        moved(model(text), 17)


@pytest.mark.parametrize("opset", [6, 99])
def test_only_opsets_that_are_known_are_written(opset: int) -> None:
    with pytest.raises(OnwardError, match="give one from 7"):
        moved(model(SEQUENCE), opset)


@pytest.mark.parametrize(("version", "words"), [(2, "give one from 3"), (6, "needs 7"), (99, "give one from")])
def test_an_ir_version_that_does_not_fit_is_refused(version: int, words: str) -> None:
    with pytest.raises(OnwardError, match=words):
        at_opset(load(model(SEQUENCE)), 13, version)


def test_metadata_of_nodes_is_left_out_where_there_is_no_place_for_it() -> None:
    new = model(SEQUENCE)
    new.ir_version = 10
    new.graph.node[0].metadata_props.add(key="line", value="3")
    done = at_opset(load(new), 13)
    assert done.model.to_proto().ir_version == 7 and "metadata of nodes" in done.dropped[0]
    kept = at_opset(load(new), 13, 10)
    assert kept.model.to_proto().graph.node[0].metadata_props and not kept.dropped


def test_constants_of_a_function_are_no_weights_of_it() -> None:
    """Before 9, a Constant holds floats alone, and functions have no initializers."""
    new = model("""<ir_version: 8, opset_import: ["" : 15, "own" : 1]>
      g (int64[3] x) => (int64[3] y) { y = own.more (x) }
      <opset_import: ["" : 15], domain: "own"> more (a) => (b) { one = Constant <value_ints = [1]> () b = Add (a, one) }
    """)
    x = np.arange(3)
    same(ran(moved(new, 8), {"x": x})[0], x + 1, 0)


def test_a_loop_without_a_condition() -> None:
    new = model("""<ir_version: 8, opset_import: ["" : 21]>
      g (int64 n) => (int64[k] y) { y = Loop (n, "") <body = b (int64 i, bool on) => (bool go, int64 s) {
        go = Identity (on) s = Add (i, i) }> }""")
    same(ran(moved(new, 13), {"n": np.array(3)})[0], np.array([0, 2, 4]), 0)


def test_bodies_of_ops_are_written_in_types_of_their_time() -> None:
    new = model("""<ir_version: 8, opset_import: ["" : 20]> g (int16 x) => (int16[n] y) <int16 o = {1}, int16 z = {0}> {
      y = Range (z, x, o) }""")
    same(ran(moved(new, 10), {"x": np.array(3, np.int16)})[0], np.arange(3, dtype=np.int16), 0)


def test_what_a_call_decides_stays_open_in_a_function() -> None:
    """The parameters of a function are attributes of its nodes without a value: no shape follows from a default."""
    new = model("""<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float[2,3,4] x) => (float[a,b] y, float[c,d] z) {
      y = own.act <alpha = 0.5, axis = 1> (x)
      z = own.act <alpha = 0.25, axis = 2> (x)
    }
    <opset_import: ["" : 17], domain: "own">
    act <alpha, axis> (a) => (f) {
      one = Constant <value_ints = [1]> ()
      b = LeakyRelu <alpha: float = @alpha> (a)
      c = Gather <axis: int = @axis> (b, one)
      d = Shape (c)
      e = Expand (b, d)
      f = Sub (e, c)
    }""")
    old = moved(new, 21)
    assert len(old.functions) == 1
    x = floats(2, 3, 4)
    for wanted, found in zip(ran(new, {"x": x}), ran(old, {"x": x}), strict=True):
        same(wanted, found, 1e-6)


@pytest.mark.parametrize("target", [11, 13, 21])
def test_a_sparse_constant(target: int) -> None:
    numbers = numpy_helper.from_array(np.array([1.0, 2.0], np.float32), "numbers")
    sparse = helper.make_sparse_tensor(numbers, numpy_helper.from_array(np.array([1, 5]), "places"), [2, 3])
    held = helper.make_node("Constant", [], ["held"], sparse_value=sparse)
    ends = [helper.make_tensor_value_info(name, 1, [2, 3]) for name in "xy"]
    graph = helper.make_graph([held, helper.make_node("Add", ["x", "held"], ["y"])], "g", ends[:1], ends[1:])
    new = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    same(ran(moved(new, target), {"x": X})[0], X + np.array([[0, 1, 0], [0, 0, 2]], np.float32), 0.0)


@pytest.mark.parametrize("target", [11, 13, 18, 24])
def test_a_scan_says_how_many_dimensions_its_results_have(target: int) -> None:
    """ONNX Runtime asks for that, and may find it out in the opset of the file, but not in the one that is wanted."""
    old = model("""<ir_version: 8, opset_import: ["" : 9]>
    g (float[n,m] x, float[t,m] rows) => (float[n,m] y, float[t,n,m] z) {
      y, z = Scan <num_scan_inputs = 1, body = b (float[n,m] s, float[m] e) => (float[n,m] p, float[n,m] q) {
        a = Add (s, e)
        p = Clip <min = -9.0, max = 9.0> (a)
        q = Clip <min = -1.0, max = 1.0> (p)
      }> (x, rows)
    }""")
    for attribute in old.graph.node[0].attribute:
        for value in attribute.g.output:
            value.type.tensor_type.ClearField("shape")
    made = moved(old, target)
    bodies = [attribute.g for attribute in made.graph.node[-1].attribute if attribute.name == "body"]
    assert [len(value.type.tensor_type.shape.dim) for value in bodies[0].output] == [2, 2]
    feeds = {"x": X, "rows": floats(4, 3)}
    for wanted, found in zip(ran(old, feeds), ran(made, feeds), strict=True):
        same(wanted, found, 0.0)
