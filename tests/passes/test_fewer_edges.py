"""Where the passes of `--simplify` must not reach, and what they must not lose on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graphs import model
from onnx import helper
from test_fewer import check, floats, ops, plainly, run, sizes

from onward.canon.opset import at_opset
from onward.cli import parser
from onward.model import load
from onward.passes.fewer.smaller import PASSES, smaller

F = np.float32


@pytest.mark.parametrize("other", ["", "folded_1_c = Neg(x)"])
def test_names_of_constants_are_new(other: str) -> None:
    text = f"g (float[3] x) => (float[3] y) {{ {other} c = Add(a, b) z = Mul(x, c) y = Add(z, folded_1_c) }}"
    weights = {"a": floats(1), "b": floats(1), **({} if other else {"folded_1_c": floats(3)})}
    check(text, [*(["Neg"] if other else []), "Mul", "Add"], {"x": floats(3)}, **weights)


def test_what_the_other_branch_reads_is_free() -> None:
    text = """g (float[n, 4] x) => (float[n, 4] y) { q = Exp(x) m = MatMul(x, w) k = Mul(m, s) r = If(yes) <
      then_branch = a () => (float[n, 4] o) <float[4] v = {1., 2., 3., 4.}> { o = Add(k, v) },
      else_branch = b () => (float[n, 4] o) { z = Add(q, m) o = MatMul(z, w) } > y = Neg(r) }"""
    small = check(text, ["Gemm", "Neg"], {"x": floats(2, 4)}, w=floats(4, 4), s=floats(4), yes=np.array(True))
    assert set(small.ir.graph.initializers) == {"w", "v"}  # by its own name


def test_names_of_a_branch_that_others_have_are_new() -> None:
    text = """g (float[n, 4] x) => (float[n, 4] y) { r = If(yes) <
      then_branch = a () => (float[n, 4] o) <float[4] v = {1., 2., 3., 4.}> { h = Add(x, v) o = Exp(h) },
      else_branch = b () => (float[n, 4] o) { o = Neg(x) } > q = If(is) <
      then_branch = c () => (float[n, 4] o) <float[4] v = {5., 6., 7., 8.}> { h = Mul(r, v) o = Abs(h) },
      else_branch = d () => (float[n, 4] o) { o = Neg(x) } > y = Neg(q) }"""
    small = check(
        text.replace("If(is)", "If(yes)"), ["Add", "Exp", "Mul", "Abs", "Neg"], {"x": floats(2, 4)}, yes=np.array(True)
    )
    assert len(small.ir.graph.initializers) == 2


def test_lists_of_attributes_are_compared_with_their_signs() -> None:
    scaler = "ai.onnx.ml.Scaler<offset=[{}], scale=[1.0]>(x)"
    text = f"""g (float[2] x) => (float[2] y) {{
      a = {scaler.format("0.0")} b = {scaler.format("-0.0")} c = Reciprocal(a) d = Reciprocal(b) y = Sub(c, d) }}"""
    assert ops(smaller(model(text)).model).count("Scaler") == 2


@pytest.mark.parametrize(("weight", "scale"), [(1e-5, 1e-38), (1e30, 1e20)])
def test_weights_that_lose_bits_are_not_scaled(weight: float, scale: float) -> None:
    text = "g (float[n, 4] x) => (float[n, 4] y) { m = MatMul(x, w) y = Mul(m, s) }"
    assert ops(smaller(model(text, w=np.full((4, 4), weight, F), s=np.full(4, scale, F))).model) == ["MatMul", "Mul"]


def test_weights_of_old_files_are_inputs_that_nobody_gives() -> None:
    text = """g (float[n, 2, 3, 3] x, float[3, 2, 1, 1] w, float[3] b) => (float[n, 12] y) {
      c = Conv(x, w) d = BatchNormalization(c, b, b, b, b) s = Shape(d) i = Constant<value = int64[1] {0}>()
      f = Constant<value = int64[1] {-1}>() g = Gather(s, i) t = Concat<axis=0>(g, f) y = Reshape(d, t) }"""
    proto = model(text, 8, w=floats(3, 2, 1, 1), b=np.array([1.0, 2.0, 3.0], F)).to_proto()
    del proto.opset_import[1:]
    proto.ir_version = 3
    small = smaller(load(proto)).model
    assert ops(small) == ["Conv", "Reshape"] and small.to_proto().ir_version == 3
    assert [value.name for value in small.ir.graph.inputs] == ["x", *small.ir.graph.initializers]
    x = floats(2, 2, 3, 3)
    np.testing.assert_allclose(run(small, {"x": x})[0], run(load(proto), {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_weights_of_old_files_are_no_inputs_where_a_caller_could_give_them() -> None:
    proto = model(
        "g (float[n] x, float[2] w) => (float[n] y) { i = Identity(x) y = Mul(i, w) }", 9, w=floats(2)
    ).to_proto()
    del proto.opset_import[1:]
    proto.ir_version = 3  # opset 9 is written in IR version 4
    for made in (smaller(load(proto)).model, at_opset(load(proto), 11).model):
        assert made.to_proto().ir_version > 3 and [value.name for value in made.ir.graph.inputs] == ["x"]


def test_names_of_outputs_stay_where_several_are_one_value() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z, float[2] w) { y = Exp(x) z = Mul(y, one) w = Identity(y) }"
    small = check(text, ["Exp", "Identity", "Identity"], {"x": floats(2)}, one=np.array(1, F))
    assert [value.name for value in small.ir.graph.outputs] == ["y", "z", "w"]


def test_nodes_that_stand_for_one_that_stays_have_a_name_of_their_own() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] h) { [h] h = HardSigmoid<alpha=0.16666667>(x) y = Mul(x, h) }"
    small = check(text, ["HardSigmoid", "HardSwish"], {"x": floats(2)})
    assert len({node.name for node in small.ir.graph}) == 2


def test_a_loop_without_a_condition_stays_one() -> None:
    text = """g (int64 n, float[2] x) => (float[k, 2] y) { i = Identity(x) y = Loop(n, "")
      <body = b (int64 step, bool go) => (bool on, float[2] s) <float[2] left = {1., 2.}> {
        on = Identity(go) s = Exp(i) }> }"""
    small = check(text, ["Loop"], {"n": np.array(2), "x": floats(2)})
    body = next(iter(small.ir.graph)).attributes["body"].as_graph()
    assert not body.initializers  # nothing reads it


def test_parts_of_a_shape_that_are_not_all_known() -> None:
    text = """g (float[n, 4] x) => (float[n, 4] y, int64[1] a, int64[1] c) {
      s = Shape(x) a, b = Split(s) c = Neg(b) y = Neg(x) }"""
    check(text, ["Shape", "Split", "Neg", "Neg"], {"x": floats(2, 4)}, 13)


def test_a_constant_that_is_given_out() -> None:
    text = "g (float[2] x) => (float[2] y, float[1] c) { c = Constant<value_floats=[2.0]>() y = Mul(x, c) }"
    check(text, ["Constant", "Mul"], {"x": floats(2)})


def test_a_bias_that_is_halved_is_not_scaled() -> None:
    text = "g (float[n, 4] x) => (float[n, 4] y) { p = Gemm<beta=0.5>(x, w, b) y = Mul(p, s) }"
    check(text, ["Gemm", "Mul"], {"x": floats(2, 4)}, w=floats(4, 4), b=floats(4), s=floats(4))


def test_several_numbers_of_a_shape_keep_their_order() -> None:
    text = """g (float[n, p, q] x) => (float y) { s = Shape(x) a = Gather(s, i12) b = Gather(s, n0)
      c = Unsqueeze(b, i0) d = Concat<axis=0>(a, c) y = ConstantOfShape(d) }"""
    feeds = {"x": floats(1, 2, 4)}
    check(text, ["Shape", "Gather", "ConstantOfShape"], feeds, **sizes(i12=[1, 2], i0=[0]), n0=np.array(0))


def test_a_batch_that_is_turned_round_is_no_series() -> None:
    text = """g (float[t, n, 3] x) => (float[t, n, 4] y) { r = Slice(x, m1, near, i1, m1)
      all = GRU<hidden_size=4>(r, w, u) flat = Squeeze(all, i1) y = Slice(flat, m1, near, i1, m1) }"""
    weights = {"w": floats(1, 12, 3), "u": floats(1, 12, 4), **sizes(m1=[-1], near=[-(2**31)], i1=[1])}
    check(text, ["Slice", "GRU", "Squeeze", "Slice"], {"x": floats(5, 2, 3)}, **weights)


def test_the_larger_of_two_sizes_is_not_one_of_them() -> None:
    text = """g (float[n, k] x) => (float y) { s = Shape(x) a = Gather(s, i0) b = Gather(s, i1) c = Max(a, b)
      d = Min(a, b) e = Concat<axis=0>(c, d) y = Reshape(x, e) }"""
    whole = model(text, **sizes(i0=[0], i1=[1]))
    for shape in ((2, 5), (5, 2)):
        assert run(smaller(whole).model, {"x": floats(*shape)})[0].shape == (5, 2)


def test_a_default_that_nothing_reads_stays_optional() -> None:
    proto = model("g (float[2] x) => (float[2] y) { z = Add(d, d) y = Neg(x) }", d=np.zeros(1, F)).to_proto()
    proto.graph.input.append(helper.make_tensor_value_info("d", 1, [1]))
    small = smaller(load(proto)).model
    assert [one.tolist() for one in run(small, {"x": np.ones(2, F)})] == [[-1, -1]]


def test_an_offset_behind_weights_that_are_computed() -> None:
    text = """g (float[n, 2, h, w] x) => (float[n, 3, a, b] y) {
      k = Cast<to=1>(stored) c = Conv(x, k) y = Add(c, bias) }"""
    weights = {"stored": np.arange(6, dtype=np.int8).reshape(3, 2, 1, 1), "bias": floats(1, 3, 1, 1)}
    whole = model(text, **weights)
    small = smaller(whole, ["constants"]).model
    assert ops(small) == ["Cast", "Conv"] and "bias" in small.ir.graph.initializers
    x = floats(1, 2, 3, 3)
    np.testing.assert_allclose(run(small, {"x": x})[0], run(whole, {"x": x})[0], rtol=1e-5)


VECTORS = sizes(i0=[0], i1=[1], i2=[2], i4=[4], far=[2**63 - 1], s24=[2, 4], s124=[-1, 1, 2, 2], flat=[-1, 4])
NUMBERS = {"n1": np.array(1), "n2": np.array(2), "n3": np.array(3)}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = Concat<axis=1>(x, x) b = Concat<axis=-2>(a, x) y = Neg(b)", ["Concat", "Neg"]),
        ("a = Concat<axis=1>(x, x) b = Concat<axis=2>(a, a) y = Neg(b)", ["Concat", "Concat", "Neg"]),
        (
            "a = Concat<axis=1>(x, x) n = Neg(x) b = Concat<axis=1>(n, x) y = Concat<axis=2>(a, b)",
            ["Concat", "Neg", "Concat", "Concat"],
        ),
        ("a = Reshape(x, flat) b = Unsqueeze(a, i1) y = Neg(b)", ["Reshape", "Neg"]),
        ("a = Reshape(x, s124) b = Squeeze(a, i1) y = Neg(b)", ["Reshape", "Neg"]),
        ("a = Slice(x, i0, far, i0) y = Neg(a)", ["Neg"]),
        ("a = Slice(x, i1, far, i0) y = Neg(a)", ["Slice", "Neg"]),
        ("a = Unsqueeze(x, i1) b = Transpose<perm=[3, 1, 2, 0]>(a) y = Reshape(b, flat)", ["Transpose", "Reshape"]),
        ("a = Unsqueeze(x, i1) b = Transpose<perm=[0, 2, 1, 3]>(a) y = Reshape(b, flat)", ["Reshape"]),
        (
            "a = Unsqueeze(x, i1) b = Exp(a) c = ReduceSum<keepdims=0>(b, i1) y = Neg(c)",
            ["Unsqueeze", "Exp", "Squeeze", "Neg"],
        ),
        ("a = Unsqueeze(x, i1) b = Exp(a) c = ReduceMean<axes=[-3]>(b) y = Neg(c)", ["Unsqueeze", "Exp", "Neg"]),
        ("a = ReduceMax<axes=[1]>(x) y = Neg(a)", ["ReduceMax", "Neg"]),
        ("a = Neg(x) y = Identity(a)", ["Neg"]),
        ("y = Identity(x)", ["Identity"]),
        ("a = Cast<to=1>(x) b = Exp(a) y = Dropout(b)", ["Exp"]),
        (
            """s = Shape(x) a = Gather(s, n1) b = Unsqueeze(a, i0) c = Gather(s, n2) d = Unsqueeze(c, i0)
            e = Concat<axis=0>(b, d) f = Concat<axis=0>(i2, e) q = Unsqueeze(x, i0) z = Squeeze(q, i0)
            y = Resize<mode="nearest">(z, , , f)""",
            ["Shape", "Gather", "Concat", "Resize"],
        ),
    ],
)
@pytest.mark.parametrize("batch", [0, 2])
def test_moves(nodes: str, expected: list[str], batch: int) -> None:
    batch = batch or int("Resize" in nodes)  # ONNX Runtime resizes nothing that has no elements
    used = {name: array for name, array in (VECTORS | NUMBERS).items() if f" {name})" in nodes or f" {name}," in nodes}
    used |= {"i2": VECTORS["i2"]} if "(i2, e)" in nodes else {}
    text = f"g (float[n, p, q] x) => (float y) {{ {nodes} }}" if "Resize" in nodes else ""
    check(text or f"g (float[n, 2, 4] x) => (float y) {{ {nodes} }}", expected, {"x": floats(batch, 2, 4)}, **used)


def test_a_rest_that_is_not_known_stays_open() -> None:
    text = """g (float[n, k, 4] x) => (float y) {
      s = Shape(x) d = Gather(s, i1) t = Concat<axis=0>(m1, d) y = Reshape(x, t) }"""
    small = check(text, ["Reshape"], {"x": floats(2, 3, 4)}, **sizes(i1=[1], m1=[-1]))
    assert [v.const_value.numpy().tolist() for v in small.ir.graph.initializers.values()] == [[-1, 0]]


def test_sizes_of_a_resize_that_are_known_in_part() -> None:
    text = """g (float[1, 3, h, w] x) => (float y) { s = Shape(x) a = Slice(s, i2, i4, i0) b = Mul(a, i2)
      c = Concat<axis=0>(s13, b) r = Resize<mode="nearest">(x, , , c) t = Shape(r) u = Slice(t, i0, i2, i0)
      v = Concat<axis=0>(u, m1) y = Reshape(r, v) }"""
    small = check(
        text, ["Shape", "Slice", "Mul", "Concat", "Resize", "Reshape"], {"x": floats(1, 3, 2, 2)},
        **sizes(i0=[0], i2=[2], i4=[4], s13=[1, 3], m1=[-1]),
    )  # fmt: skip
    assert [v.const_value.numpy().tolist() for n, v in small.ir.graph.initializers.items() if "known" in n] == [
        [1, 3, -1]
    ]


@pytest.mark.parametrize("opset", [11, 17])
def test_a_weight_that_is_only_moved_keeps_its_name(opset: int) -> None:
    axes = "Unsqueeze<axes=[0]>(b)" if opset < 13 else "Unsqueeze(b, i0)"
    text = f"""g (float[n, 4] x) => (float[n, 6] y) {{
      t = Transpose<perm=[1, 0]>(w) p = MatMul(x, t) u = {axes} r = Reshape(u, s6) y = Add(p, r) }}"""
    weights = {"w": floats(6, 4), "b": floats(6), **sizes(s6=[1, 6]), **({} if opset < 13 else sizes(i0=[0]))}
    small = check(text, ["Gemm"], {"x": floats(3, 4)}, opset, **weights)
    assert set(small.ir.graph.initializers) == {"w", "b"}
    shared = text.replace("y = Add(p, r)", "q = Add(p, r) z = MatMul(q, w) y = MatMul(z, t)")
    assert "Transpose" in ops(smaller(model(shared, opset, **weights)).model)


SCORES = "t = Transpose<perm=[0, 1, 3, 2]>(k) p = MatMul(q, t) d = Div(p, root)"


@pytest.mark.parametrize(
    ("opset", "sizes_", "mask", "expected"),
    [
        (23, "2, 4, 5", None, ["Attention"]),
        (24, "2, 4, 5", floats(1, 4, 5, 5), ["Attention"]),
        (23, "2, 4, 5", np.triu(np.full((5, 5), -np.inf, F), 1), ["Attention"]),
        (23, "2, 4, 5", floats(1, 1, 1, 5), None),  # ONNX Runtime refuses one row for all queries
        (23, "n, 4, 5", None, None),  # and no rows
        (22, "2, 4, 5", None, None),
    ],
)
def test_attention_is_named_where_it_runs(opset: int, sizes_: str, mask: Any, expected: list[str] | None) -> None:
    ends = ", ".join(f"float[{sizes_}, 8] {name}" for name in "qkv")
    masked = "w = Softmax<axis=-1>(d)" if mask is None else "m = Add(d, mask) w = Softmax<axis=-1>(m)"
    text = f"g ({ends}) => (float[{sizes_}, 8] y) {{ {SCORES} {masked} y = MatMul(w, v) }}"
    written = ["Transpose", "MatMul", "Div", *([] if mask is None else ["Add"]), "Softmax", "MatMul"]
    weights = {"root": np.array(8**0.5, F), **({} if mask is None else {"mask": mask})}
    feeds = {name: floats(2, 4, 5, 8) for name in "qkv"}
    check(text, expected or written, feeds, opset, **weights)


def test_a_type_that_is_not_told_is_inferred() -> None:
    """Without that, numbers in double precision would get operators that ONNX Runtime has for floats only."""
    text = "g (double[n] x) => (double[n] y) { a = Add(x, c3) b = Clip(a, c0, c6) m = Mul(x, b) y = Div(m, c6) }"
    whole = model(text, 21, c0=np.array(0.0), c3=np.array(3.0), c6=np.array(6.0))
    for without in PASSES:
        small = smaller(whole, [without]).model
        x = np.linspace(-4, 4, 9)
        np.testing.assert_array_equal(plainly(small, {"x": x})[0], plainly(whole, {"x": x})[0])


def test_every_pass_is_told() -> None:
    (action,) = [
        one
        for command in parser()._subparsers._group_actions[0].choices.values()  # type: ignore[union-attr]
        for one in command._actions
        if "--without" in one.option_strings
    ]
    assert str(action.help).split(": ")[1].split(", ") == [*PASSES]
    guide = (Path(__file__).parents[2] / "docs/guide/onnx-to-onnx.md").read_text(encoding="utf-8")
    assert [line.split("`")[1] for line in guide.splitlines() if line.startswith("| `")] == [*PASSES]


def test_functions_and_annotations_survive() -> None:
    proto = model("g (float[n] x) => (float[n] y) { i = Identity(x) a = Exp(i) y = Neg(a) }").to_proto()
    proto.functions.append(
        helper.make_function(
            "own", "twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], proto.opset_import
        )
    )
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.graph.node.append(helper.make_node("twice", ["a"], ["z"], domain="own"))
    proto.graph.output.append(helper.make_tensor_value_info("z", 1, ["n"]))
    small = smaller(load(onnx.ModelProto.FromString(proto.SerializeToString()))).model
    assert ops(small) == ["Exp", "Neg", "twice"]
    one, two = run(small, {"x": np.zeros(2, F)})
    assert one.tolist() == [-1, -1] and two.tolist() == [2, 2]


def test_nodes_that_read_equal_constants_become_one() -> None:
    """But for weights, whose names stay."""
    text = """g (float[2, 1] x) => (float[2, 3] y, float[2, 3] z) {
      a = Expand(x, s) b = Expand(x, t) c = Exp(a) d = Exp(b) e = Add(c, v) f = Add(d, w) y = Neg(e) z = Abs(f) }"""
    weights = {"v": np.ones(3, F), "w": np.ones(3, F), **sizes(s=[2, 3], t=[2, 3])}
    small = check(text, ["Expand", "Exp", "Add", "Add", "Neg", "Abs"], {"x": floats(2, 1)}, **weights)
    assert {"v", "w"} <= set(small.ir.graph.initializers)


@pytest.mark.parametrize("others", [[], ["scale"]])
def test_weights_that_old_exporters_listed_as_inputs(others: list[str]) -> None:
    """Where one of them is not listed, the others are meant to be open."""
    text = (
        "g (float[n, 2, 3, 3] x) => (float[n, 3, 3, 3] y) { c = Conv(x, w, b) y = BatchNormalization(c, s, t, m, v) }"
    )
    weights = {"w": floats(3, 2, 1, 1), **{name: np.abs(floats(3)) for name in "bstmv"}}
    proto = model(text, 9, **weights, **dict.fromkeys(others, floats(1))).to_proto()
    proto.graph.input.extend(helper.make_tensor_value_info(name, 1, array.shape) for name, array in weights.items())
    listed, small = load(proto), smaller(load(proto)).model
    x = floats(2, 2, 3, 3)
    np.testing.assert_allclose(run(small, {"x": x})[0], run(listed, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert (ops(small), len(small.ir.graph.inputs)) == (
        (["Conv", "BatchNormalization"], 7) if others else (["Conv"], 1)
    )
    assert len(smaller(listed, ["inputs"]).model.ir.graph.inputs) == 7
