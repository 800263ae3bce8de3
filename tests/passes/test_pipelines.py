"""Every value is typed when a model is in canonical form, however few times it took to infer the types."""

import onnx_ir as ir
import pytest
from onnx import parser

from onward.canon.upgrade import has_outdated
from onward.graph.walk import all_nodes
from onward.model import Model, load
from onward.passes.pipelines import canonical

GRAPHS = {
    "nothing to do": (20, "(float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  y = Add (a, x) }"),
    "upgraded": (11, "(float[N, 1, 4] x) => (float[N, 4] y) { a = Squeeze <axes = [1]> (x)  y = Relu (a) }"),
    "folded": (
        20,
        """(float[2, 6] x) => (float[H, W] y) <float[2] val_1 = {1, 2}, float[2] val_2 = {2, 3}>
        { s = Mul (val_1, val_2)  r = Resize (x, , s)  y = Relu (r) }""",
    ),
    "recognised": (
        20,
        """(float[N, 2] x) => (float[N, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}>
        { m = MatMul (x, w)  s = Add (m, b)  y = Relu (s) }""",
    ),
    "lowered": (20, "(float[N, 4] x) => (float[N, 4] y) { a = Elu (x)  y = Relu (a) }"),
    "inside": (
        20,
        """(bool c, float[N, 4] x) => (float[N, 4] y)
        { y = If (c) <then_branch = t () => (float[N, 4] p) { q = Elu (x)  p = Relu (q) },
                      else_branch = e () => (float[N, 4] n) { n = Neg (x) }> }""",
    ),
}  # fmt: skip


def parsed(name: str) -> Model:
    opset, text = GRAPHS[name]
    return load(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'))


@pytest.mark.parametrize("name", GRAPHS)
def test_every_value_is_typed(name: str) -> None:
    graph = canonical(parsed(name), lambda key: key != "Elu").graph
    for node in all_nodes(graph):
        assert node.op_type != "Elu"
        for value in node.outputs:
            assert isinstance(value.type, ir.TensorType), value
            assert value.shape is not None, value
            assert all(isinstance(dim, int) or dim.value == "N" for dim in value.shape), value


@pytest.mark.parametrize("name", GRAPHS)
def test_only_an_old_op_that_changed_is_outdated(name: str) -> None:
    assert has_outdated(parsed(name).ir) == (name == "upgraded")


@pytest.mark.parametrize("own", [True, False])
def test_ops_of_our_own_are_for_backends_that_know_them(own: bool) -> None:
    graph = canonical(parsed("recognised"), lambda key: own or not key.startswith("onward::")).graph
    assert [node.op_type for node in graph] == (["Linear", "Relu"] if own else ["MatMul", "Add", "Relu"])
