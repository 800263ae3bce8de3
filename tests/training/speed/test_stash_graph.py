"""Which values of a graph are held as bfloat16, and from where to where, node by node."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.helper as oh
import onnx_ir as ir
import pytest
from onnx import TensorProto
from test_lifetimes import FLOATS

from onward.training.speed.stash import COMPARES, LEAST, NEAR, ROUNDS, Roundable, roundable, stash

BFLOAT16 = TensorProto.BFLOAT16
WAIT = [oh.make_node("Neg", [f"w{i}"], [f"w{i + 1}"]) for i in range(NEAR)]
"""So many nodes between the last reader of the way forward and the first of the way back."""


def graph_of(nodes: Sequence[onnx.NodeProto], *outputs: str) -> onnx.GraphProto:
    ends = {name: oh.make_tensor_value_info(name, FLOATS, None) for name in ("x", "w0", "loss", *outputs)}
    return oh.make_graph(list(nodes), "g", [ends["x"], ends["w0"]], [ends["loss"], *(ends[name] for name in outputs)])


def stashed(
    nodes: Sequence[onnx.NodeProto], large: str = "a", exact: str = "", signs: str = "", outputs: str = "y"
) -> list[str]:
    """Every node as text, after `stash`."""
    graph = graph_of(nodes, *outputs.split())
    stash(graph, "loss", Roundable(*(frozenset(names.split()) for names in (large, exact, signs))))
    return [f"{','.join(node.output)}={node.op_type}({','.join(node.input)})" for node in graph.node]


FORWARD = [oh.make_node("Exp", ["x"], ["a"]), oh.make_node("Sin", ["a"], ["b"])]
LOSS = oh.make_node("ReduceSum", ["b"], ["loss"])
WAITED = [f"w{i + 1}=Neg(w{i})" for i in range(NEAR)]


def test_a_value_is_short_between_its_last_reader_forwards_and_its_first_backwards() -> None:
    back = [oh.make_node("Cos", ["a"], ["y"]), oh.make_node("Tanh", ["a"], ["z"])]
    assert stashed([*FORWARD, *WAIT, LOSS, *back], outputs="y z") == [
        *("a=Exp(x)", "b=Sin(a)", "a.bfloat16=Cast(a)", *WAITED),
        *("loss=ReduceSum(b)", "a.held=Cast(a.bfloat16)", "y=Cos(a.held)", "z=Tanh(a.held)"),
    ]


def test_types_of_what_is_held() -> None:
    graph = graph_of([*FORWARD, *WAIT, LOSS, oh.make_node("Cos", ["a"], ["y"])], "y")
    stash(graph, "loss", Roundable(frozenset("a"), frozenset(), frozenset()))
    assert [node.attribute[0].i for node in graph.node if node.op_type == "Cast"] == [BFLOAT16, FLOATS]


def test_a_value_that_waits_shortly_stays_as_it_is() -> None:
    nodes = [*FORWARD, *WAIT[3:], LOSS, oh.make_node("Cos", ["a"], ["y"])]
    assert "a.bfloat16=Cast(a)" not in stashed(nodes)
    assert "a.bfloat16=Cast(a)" in stashed([*FORWARD, *WAIT[2:], *nodes[-2:]])


def test_a_value_that_only_the_way_forward_reads_stays_as_it_is() -> None:
    read = oh.make_node("Sum", ["a", "b"], ["c"])
    nodes = [*FORWARD, *WAIT, read, oh.make_node("ReduceSum", ["c"], ["loss"])]
    assert stashed([*nodes, oh.make_node("Neg", ["loss"], ["y"])])[-2:] == ["loss=ReduceSum(c)", "y=Neg(loss)"]


def test_a_value_that_only_the_way_back_reads() -> None:
    """It is made short as soon as it is there."""
    nodes = [*FORWARD, oh.make_node("Cos", ["a"], ["c"]), *WAIT, LOSS, oh.make_node("Neg", ["c"], ["y"])]
    found = stashed(nodes, large="c")
    assert found[2:4] == ["c=Cos(a)", "c.bfloat16=Cast(c)"]
    assert found[-2:] == ["c.held=Cast(c.bfloat16)", "y=Neg(c.held)"]


def test_views_are_held_as_what_they_are_views_of() -> None:
    """A view on the way back, which would hold the whole, is gone; one that is given out stays."""
    shape = oh.make_node("Flatten", ["a"], ["v"])
    nodes = [*FORWARD[:1], shape, FORWARD[1], *WAIT, LOSS, oh.make_node("Cos", ["v"], ["y"])]
    found = stashed(nodes, large="a v")
    assert not [each for each in stashed(nodes, large="") if "Cast" in each]
    assert [each for each in found if "Cast" in each] == ["a.bfloat16=Cast(a)", "a.held=Cast(a.bfloat16)"]
    assert found[-2:] == ["v.held=Flatten(a.held)", "y=Cos(v.held)"]
    assert "v=Flatten(a)" not in found
    given = [*nodes, oh.make_node("Flatten", ["y"], ["z"])]
    assert stashed(given, large="a v", outputs="z")[-1] == "z=Flatten(y)"


@pytest.mark.parametrize("op", COMPARES + ROUNDS)
def test_what_decides_on_the_way_back_gets_exact_numbers(op: str) -> None:
    """Also if it is the first node behind the loss, and if it reads something that is computed from the value."""
    decides = oh.make_node(op, ["a", "w0"], ["d"])
    assert "a.bfloat16=Cast(a)" not in stashed([*FORWARD, *WAIT, LOSS, decides, oh.make_node("Cos", ["d"], ["y"])])
    signs = stashed([*FORWARD, *WAIT, LOSS, decides, oh.make_node("Cos", ["d"], ["y"])], signs="a")
    assert "a.bfloat16=Cast(a)" in signs


@pytest.mark.parametrize("suffix", [".again", ".anew", ".anew.again"])
def test_what_is_computed_again_for_a_decision_is_computed_from_exact_numbers(suffix: str) -> None:
    """The value `b`, whatever it is called when it is computed again, is compared; if only with zero, a Relu of it is
    as good of rounded numbers, a sine is not."""
    for op in ("Sin", "Relu"):
        forward = [FORWARD[0], oh.make_node(op, ["a"], ["b"])]
        again = oh.make_node(op, ["a"], [f"b{suffix}"])
        nodes = [*forward, *WAIT, LOSS, again, oh.make_node("Cos", [f"b{suffix}"], ["y"])]
        assert "a.bfloat16=Cast(a)" in stashed(nodes)
        assert "a.bfloat16=Cast(a)" not in stashed(nodes, exact="b")
        assert ("a.bfloat16=Cast(a)" in stashed(nodes, signs="b")) == (op == "Relu")


def test_a_relu_passes_on_that_only_signs_count() -> None:
    """What it is computed from, if computed again itself, is not to be rounded before a sine."""
    forward = [FORWARD[0], FORWARD[1], oh.make_node("Relu", ["b"], ["c"]), oh.make_node("ReduceSum", ["c"], ["loss"])]
    back = [oh.make_node("Sin", ["a"], ["b.again"]), oh.make_node("Relu", ["b.again"], ["c.again"])]
    nodes = [*forward[:3], *WAIT, forward[3], *back, oh.make_node("Cos", ["c.again"], ["y"])]
    assert "a.bfloat16=Cast(a)" in stashed(nodes)
    assert "a.bfloat16=Cast(a)" not in stashed(nodes, signs="c")


MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[n, {width}] x, float[n, {width}] g0) => (float[n, {width}] y)
<float zero = {{0}}, float one = {{1}}>
{{
  a = Exp(x)
  {middle}
  loss = ReduceSum(b)
  {back}
}}
"""


def found(back: str, width: int = 1024, middle: str = "b = Sin(a)") -> Roundable:
    text = MODEL.format(back=back, width=width, middle=middle)
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    return roundable(ir.from_proto(proto).graph, "loss")


def test_large_values_of_the_way_forward() -> None:
    """A batch is taken to be of 32."""
    assert found("y = Mul(g0, a)").large == {"a", "b"}
    assert found("y = Mul(g0, a)", LEAST // 32).large == {"a", "b"}
    assert found("y = Mul(g0, a)", LEAST // 32 - 1).large == set()
    assert found("c = Cos(a)\n y = Mul(g0, c)").large == {"a", "b"}
    integers = "d = Cast<to = 7>(a)\n b = Cast<to = 1>(d)"
    assert found("y = Mul(g0, a)", middle=integers).large == {"a", "b"}
    unknown = "i = Cast<to = 7>(a)\n s = Unique(i)\n b = Reshape(a, s)"
    assert found("y = Mul(g0, a)", middle=unknown).large == {"a"}


@pytest.mark.parametrize(
    ("back", "exact", "signs"),
    [
        ("y = Mul(g0, a)", "", ""),
        ("c = Greater(a, zero)\n y = Where(c, g0, a)", "", "a"),
        ("c = Less(zero, a)\n y = Where(c, g0, a)", "", "a"),
        ("c = Greater(a, one)\n y = Where(c, g0, a)", "a one", ""),
        ("c = Mul(a, zero)\n y = Mul(g0, c)", "", ""),
        ("c = Cos(a)\n d = Greater(c, zero)\n y = Where(d, g0, a)", "c zero a", ""),
        ("c = Cos(a)\n d = Floor(c)\n y = Mul(g0, d)", "c a", ""),
        ("c = ArgMax(b)\n d = Cast<to = 1>(c)\n y = Mul(g0, d)", "b", ""),
    ],
)
def test_what_may_not_be_rounded(back: str, exact: str, signs: str) -> None:
    values = found(back)
    assert values.exact == set(exact.split())
    assert values.signs == set(signs.split())


def test_what_bodies_read_may_not_be_rounded() -> None:
    condition = "c = Greater(g0, g0)\n d = ReduceMax<keepdims = 0>(loss)\n e = Cast<to = 9>(d)\n"
    then = "t () => (float[n, 1024] p) { p = Neg(b) }"
    other = "s () => (float[n, 1024] q) { q = Neg(g0) }"
    values = found(f"{condition} y = If(e) <then_branch = {then}, else_branch = {other}>")
    assert "b" in values.exact
    assert "a" not in values.exact
