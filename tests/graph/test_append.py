"""Graphs written behind others, and what nothing reads left out."""

import numpy as np
import onnx_ir as ir
import onnxruntime
from onnx import TensorProto, helper

from onward.graph.append import appended
from onward.graph.build import Builder
from onward.graph.unused import remove_unused
from onward.model import Model, load


def doubling() -> Model:
    """y = 2 x, with a constant and a node that are called as those of the other graph."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y"], name="node")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor("two", TensorProto.FLOAT, [1], [2.0])],
    )
    return load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_a_graph_behind_itself() -> None:
    first, second = doubling(), doubling()
    op = Builder(first.ir)
    before = first.ir.graph.outputs[0]
    (after,) = appended(op, second.ir, {"x": before})
    first.ir.graph.outputs[0] = after
    session = onnxruntime.InferenceSession(first.to_proto().SerializeToString())
    (found,) = session.run(None, {"x": np.asarray([1.0, 3.0], np.float32)})
    assert found.tolist() == [4.0, 12.0]


def test_an_output_that_is_an_input_is_what_it_is_fed() -> None:
    first, second = doubling(), doubling()
    graph = second.ir.graph
    graph.outputs[0] = graph.inputs[0]
    (after,) = appended(Builder(first.ir), second.ir, {"x": first.ir.graph.outputs[0]})
    assert after is first.ir.graph.outputs[0]


def test_what_a_removed_body_reads_is_removed() -> None:
    """A node is read by nothing but the body of an If, which nothing reads."""
    model = doubling()
    op = Builder(model.ir)
    x = op.tensor(model.ir.graph.inputs[0])
    inner = op.Exp(x)
    branch = ir.Node("", "Neg", [inner.value], num_outputs=1)
    branch.outputs[0].name = "negated"
    body = ir.Graph([], [branch.outputs[0]], nodes=[branch], name="body")
    other = ir.Node("", "Identity", [inner.value], num_outputs=1)
    other.outputs[0].name = "same"
    otherwise = ir.Graph([], [other.outputs[0]], nodes=[other], name="otherwise")
    op.many("If", 1, op.constant(np.asarray(True)), then_branch=body, else_branch=otherwise)
    remove_unused(model.ir)
    assert [node.op_type for node in model.ir.graph] == ["Mul"]
