"""Functions, graphs inside nodes, training information and weights in another file survive any change of opset."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import onward
from onward.canon.opset import at_opset
from onward.canon.training import names_in
from onward.model import Model, load

TEXT = """<ir_version: 8, opset_import: ["" : 16, "own" : 1]>
g (float[2,64] x, int64 times) => (float[2,64] y) {
  h = MatMul (x, w)
  yes = Constant <value = bool {1}> ()
  last = Loop (times, yes, h) <body = turn (int64 i, bool go, float[2,64] s) => (bool on, float[2,64] n) {
    on = Identity (go)
    r = ReduceMean <axes = [1]> (s)
    d = Sub (s, r)
    n = Add (d, h)
  }>
  y = own.act (last)
}
<opset_import: ["" : 16], domain: "own">
act (a) => (b) { e = Softmax <axis = -1> (a)  m = ReduceMax <axes = [0]> (a)  b = Add (e, m) }
"""
STEP = """step (float[2,64] goal) => (float[64,64] next) {
  off = Sub (y, goal)
  mean = ReduceMean <axes = [0], keepdims = 0> (off)
  next = Sub (w, mean)
}"""
OPSETS = [11, 13, 16, 17, 18, 21, 24, 26]
RUNS = 23
"""The newest opset that ONNX Runtime has all kernels for that occur here."""
RNG = np.random.default_rng(3)
FEEDS = {"x": RNG.standard_normal((2, 64)).astype(np.float32), "times": np.array(3, np.int64)}
GOAL = RNG.standard_normal((2, 64)).astype(np.float32)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with all of them."""
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer.append(numpy_helper.from_array(RNG.standard_normal((64, 64)).astype(np.float32) / 64, "w"))
    onnx.checker.check_model(proto)
    info = proto.training_info.add()
    info.algorithm.CopyFrom(onnx.parser.parse_graph(STEP))
    info.update_binding.add(key="w", value="next")
    path = tmp_path / "source.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="source.bin", size_threshold=16)
    return path


def ran(path: Path) -> np.ndarray:
    return np.asarray(onnxruntime.InferenceSession(str(path)).run(["y"], FEEDS)[0])


def stepped(path: Path) -> np.ndarray:
    """What one step of the training makes of the weight."""
    proto = onnx.load(path)
    (info,) = proto.training_info
    proto.graph.node.extend(info.algorithm.node)
    proto.graph.initializer.extend(info.algorithm.initializer)
    proto.graph.input.extend(info.algorithm.input)
    proto.graph.output.extend(info.algorithm.output)
    del proto.training_info[:]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (bound,) = info.update_binding
    assert bound.key == "w"
    return np.asarray(session.run([bound.value], {**FEEDS, "goal": GOAL})[0])


@pytest.mark.parametrize("opset", OPSETS)
def test_all_of_a_file_survives(source: Path, tmp_path: Path, opset: int) -> None:
    out = tmp_path / "out.onnx"
    at_opset(load(source), opset).model.save(out)
    made = onnx.load(out, load_external_data=False)
    assert {o.domain: o.version for o in made.opset_import}[""] == opset
    assert {o.version for f in made.functions for o in f.opset_import} == {opset}
    needed = helper.find_min_ir_version_for(made.opset_import, ignore_unknown=True)
    assert made.ir_version == max(needed, 8), "functions came with version 8"
    assert [f.name for f in made.functions] == ["act"]
    (loop,) = (node for node in made.graph.node if node.op_type == "Loop")
    assert "h" in {name for node in loop.attribute[0].g.node for name in node.input}
    (weight,) = (tensor for tensor in made.graph.initializer if tensor.name == "w")
    assert weight.data_location == onnx.TensorProto.EXTERNAL
    assert names_in(load(out).training_info) >= {"w", "y", "next"}
    if opset <= RUNS:
        np.testing.assert_allclose(ran(out), ran(source), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(stepped(out), stepped(source), rtol=1e-5, atol=1e-6)
    else:
        back = tmp_path / "back.onnx"
        at_opset(load(out), 16).model.save(back)
        np.testing.assert_allclose(ran(back), ran(source), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(stepped(back), stepped(source), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "ir_version"), [(13, 7), (13, 8), (21, 10), (None, 8), (None, 9)])
def test_the_ir_version_that_is_asked_for_is_written(source: Path, opset: int | None, ir_version: int) -> None:
    moved = at_opset(load(source), opset, ir_version).model
    assert moved.to_proto().ir_version == ir_version
    assert len(moved.ir.functions) == (ir_version >= 8), "functions came with version 8: below they are inlined"
    session = onnxruntime.InferenceSession(moved.to_proto().SerializeToString())
    np.testing.assert_allclose(session.run(["y"], FEEDS)[0], ran(source), rtol=1e-5, atol=1e-6)


def test_a_conversion_of_all_of_it_is_verified(source: Path, tmp_path: Path) -> None:
    done = onward.convert(source, to="onnx", out=tmp_path / "out.onnx", opset=13)
    assert [verdict.status for verdict in done.verdicts] == ["verified"]
    found: Model = load(tmp_path / "out.onnx")
    assert found.training_info and found.opset[""] == 13 and done.files == ("out.onnx", "out.onnx.data")


def test_types_in_functions_are_left_out_where_there_is_no_place_for_them(source: Path) -> None:
    proto = onnx.load(source)
    proto.ir_version = 10
    proto.functions[0].value_info.append(helper.make_tensor_value_info("e", 1, [2, 64]))
    kept, left = at_opset(load(proto), 21), at_opset(load(proto), 13)
    assert kept.model.to_proto().functions[0].value_info and not kept.dropped
    assert not left.model.to_proto().functions[0].value_info and left.model.to_proto().ir_version == 8
    assert left.dropped == ("types of values in functions, for which IR version 7 has no place",)
