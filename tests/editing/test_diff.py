"""What differs between two models, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from graph_samples import chain, trained, with_body, with_function
from graphs import model
from onnx import helper

import onward
from onward.model import Model, load

SAMPLES = {"body": with_body, "function": with_function, "trained": trained, "chain": lambda: chain("Neg", "Exp")}
NET = "g (float[n, 3] x) => (float[n, 4] y) { h = MatMul(x, first) r = Relu(h) y = MatMul(r, second) }"
RENAMED = {("renamed", "Relu"), ("renamed", "Neg")}
RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.standard_normal(size).astype(np.float32) for size in ((3, 6), (6, 4)))


def changes(first: Model, second: Model, part: str = "") -> list[tuple[str, str, str]]:
    found = onward.diff(first, second)
    return [(c.kind, c.name, "; ".join(c.details)) for c in found.changes if part in ("", c.part)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_is_like_itself(name: str) -> None:
    found = onward.diff(SAMPLES[name](), SAMPLES[name]())
    assert found.same and found.changes == [] and all(line.kind == "same" for line in found.lines)


def test_a_node_put_in_moves_no_others() -> None:
    """All names behind it are other ones, and stand for other nodes than before."""
    before, after = chain("Neg", "Relu", "Exp", "Relu", "Neg"), chain("Neg", "Relu", "Abs", "Exp", "Relu", "Neg")
    found = onward.diff(before, after)
    assert {(c.kind, c.op) for c in found.of("node")} == {("added", "Abs"), ("changed", "Exp"), *RENAMED}
    assert [line.kind for line in found.lines] == ["same", "same", "added", "changed", "renamed", "renamed"]
    back = onward.diff(after, before)
    assert {(c.kind, c.op) for c in back.of("node")} == {("removed", "Abs"), ("changed", "Exp"), *RENAMED}


def test_an_op_in_the_place_of_another() -> None:
    assert changes(chain("Neg", "Relu", "Exp"), chain("Neg", "Elu", "Exp")) == [("changed", "Relu_1", "Relu → Elu")]


def test_attributes_by_what_they_mean() -> None:
    def pool(**attributes: Any) -> Model:
        node = helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[2, 2], **attributes)
        ends = [helper.make_tensor_value_info(name, 1, ["n", 1, None, None]) for name in "xy"]
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        return load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))

    assert changes(pool(), pool(auto_pad="NOTSET", ceil_mode=0)) == []
    assert changes(pool(strides=[1, 2]), pool(strides=[2, 2], ceil_mode=1)) == [
        ("changed", "pool", "strides: [1, 2] → [2, 2]; ceil_mode: left out → 1")
    ]


def test_weights_by_content() -> None:
    other = SECOND.copy()
    other[0, 0] += 0.5
    one = model(NET, first=FIRST, second=SECOND)
    assert changes(one, model(NET, first=FIRST, second=other)) == [
        ("changed", "second", f"1 of 24 numbers differ, by up to 0.5, {0.5 / np.linalg.norm(SECOND):.2g} of its norm")
    ]
    renamed = model(NET.replace("first", "p"), p=FIRST, second=SECOND)
    assert changes(one, renamed) == [("renamed", "first", "is called 'p' now")]
    half = model(NET, first=FIRST, second=SECOND.astype(np.float16))
    assert changes(one, half, "weight") == [("changed", "second", "float32 [6, 4] → float16 [6, 4]")]


def test_not_a_number_is_like_itself() -> None:
    weights = np.full((3, 6), np.nan, np.float32)
    assert changes(model(NET, first=weights, second=SECOND), model(NET, first=weights, second=SECOND)) == []


def test_weights_that_become_one() -> None:
    text = "g (float[n, 4] x) => (float[n, 4] y) { h = MatMul(x, a) y = MatMul(h, B) }"
    square = RNG.standard_normal((4, 4)).astype(np.float32)
    two = model(text.replace("B", "b"), a=square, b=square)
    one = model(text.replace("B", "a"), a=square)
    assert ("tied", "a", "is one now for several: 'a', 'b'") in changes(two, one, "weight")
    assert ("tied", "a", "was one, and is several now: 'a', 'b'") in changes(one, two, "weight")


def test_a_node_that_reads_another_weight() -> None:
    text = "g (float[n, 4] x) => (float[n, 4] y) { h = MatMul(x, P) y = MatMul(h, Q) }"
    a, b = (RNG.standard_normal((4, 4)).astype(np.float32) for _ in range(2))
    straight = model(text.replace("P", "a").replace("Q", "b"), a=a, b=b)
    crossed = model(text.replace("P", "b").replace("Q", "a"), a=a, b=b)
    found = changes(straight, crossed)
    assert found and all(kind != "same" for kind, *_ in found)
    assert any("'a' → 'b'" in words or "→ 'h'" in words for *_, words in found)


def test_settings_are_told_with_their_node() -> None:
    text = "g (float[n, 4] x) => (float[a, b] y) {{ s = Constant<value_ints=[{}]>() y = Reshape(x, s) }}"
    (found,) = changes(model(text.format("2, -1")), model(text.format("4, -1")))
    assert found[0] == "changed" and found[2] == "input 1: [2, -1] → [4, -1]"
    held = model("g (float[n, 4] x) => (float[a, b] y) { y = Reshape(x, s) }", s=np.array([2, -1]))
    assert changes(model(text.format("2, -1")), held) == []


def test_bodies() -> None:
    other = with_body()
    (branch,) = [node for node in other.ir.graph if node.op_type == "If"]
    (inner,) = branch.attributes["then_branch"].as_graph()
    inner.op_type = "Add"
    found = onward.diff(with_body(), other)
    (change,) = [c for c in found.of("node") if c.where]
    assert change.details == ("Mul → Add",) and change.where == "then_branch of If 'branch'"


def test_functions() -> None:
    found = onward.diff(with_function("Relu"), with_function("Abs"))
    assert [(c.kind, c.name) for c in found.of("function")] == [("changed", "local::once")]
    assert [(c.where, c.details) for c in found.of("node")] == [("function local::once", ("Relu → Abs",))]


def test_inputs_outputs_opsets_metadata() -> None:
    before = model("g (float[n, 3] x, float[n] q) => (float[n, 3] y) { y = Relu(x) }", opset=13)
    after = model("g (float[1, 3] x) => (float[1, 3] y, float[1, 3] z) { y = Relu(x) z = Neg(x) }")
    before.ir.metadata_props.update({"a": "1", "b": "2"})
    after.ir.metadata_props.update({"a": "3", "c": "4"})
    found = changes(before, after)
    assert ("changed", "ai.onnx", "13 → 17") in found
    assert ("changed", "x", "float32 [n, 3] → float32 [1, 3]") in found
    assert ("removed", "q", "float32 [n]") in found and ("added", "z", "float32 [1, 3]") in found
    assert {("changed", "a", "1 → 3"), ("removed", "b", "2"), ("added", "c", "4")} <= set(found)


def test_an_input_under_another_name() -> None:
    found = changes(
        model("g (float[n] x) => (float[n] y) { y = Relu(x) }"), model("g (float[n] a) => (float[n] y) { y = Relu(a) }")
    )
    assert found == [("renamed", "x", "is called 'a' now")]


def test_training_information() -> None:
    other = trained()
    algorithm = other.training_info[0].algorithm
    tanh = next(node for node in algorithm.node if node.op_type == "Mul")
    tanh.op_type = "Add"
    other.training_info[0].update_binding[0].value, kept = (
        algorithm.output[-1].name,
        other.training_info[0].update_binding[0].value,
    )
    found = onward.diff(trained(), other)
    assert found.of("training")[0].kind == "changed"
    assert any(kept in " ".join(c.details) for c in found.of("training"))
    assert [c.details for c in found.of("node")] == [("Mul → Add",)]
    none = trained()
    none.training_info.clear()
    assert ("removed", "training info 0", "") in changes(trained(), none, "training")


def test_many_nodes_that_are_alike() -> None:
    """Thousands of equal branches are matched without comparing each with each."""

    def wide(count: int) -> Model:
        nodes = [helper.make_node("Neg", ["x"], [f"n{i}"], name=f"Neg_{i}") for i in range(count)]
        nodes.append(helper.make_node("Sum", [f"n{i}" for i in range(count)], ["y"], name="sum"))
        ends = [helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy"]
        proto = helper.make_model(
            helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        )
        onnx.checker.check_model(proto)
        return load(proto)

    found = onward.diff(wide(3000), wide(2999))
    assert found.counts()["node"] == {"removed": 1, "changed": 1}


def test_outputs_that_come_of_other_nodes() -> None:
    """The same nodes under the same names, and what is given out is not the same."""
    net = "g (float[n] x) => (float[n] y, float[n] z) { %s = Relu(x) %s = Neg(x) }"
    assert changes(model(net % ("y", "z")), model(net % ("z", "y"))) == [
        ("changed", "y", "'y' of Relu → 'y' of Neg"),
        ("changed", "z", "'z' of Neg → 'z' of Relu"),
    ]
    turned = model("g (float[n] x) => (float[n] y, float[n] z) { z = Neg(x) y = Relu(x) }")
    assert changes(model(net % ("y", "z")), turned) == []


def test_outputs_of_a_body_in_another_order() -> None:
    net = """g (float[n] x, bool c) => (float[n] p, float[n] q) {
        p, q = If(c) <then_branch = t () => (float[n] %s, float[n] %s) { a = Relu(x) b = Neg(x) },
                      else_branch = e () => (float[n] d, float[n] e) { d = Abs(x) e = Exp(x) }> }"""
    found = onward.diff(model(net % ("a", "b")), model(net % ("b", "a")))
    assert [(c.part, c.name, c.where) for c in found.changes] == [
        ("output", "a", "then_branch of If 'p'"),
        ("output", "b", "then_branch of If 'p'"),
    ]


def test_numbers_of_attributes_bit_by_bit() -> None:
    def imputer(missing: float) -> Model:
        settings = {"imputed_value_floats": [1.0], "replaced_value_float": missing}
        node = helper.make_node("Imputer", ["x"], ["y"], domain="ai.onnx.ml", **settings)
        ends = [helper.make_tensor_value_info(name, 1, ["n", 1]) for name in "xy"]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        return load(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=opsets))

    assert changes(imputer(float("nan")), imputer(float("nan"))) == []
    assert changes(imputer(0.0), imputer(-0.0)) == [("changed", "y", "replaced_value_float: left out → -0.0")]


@pytest.mark.parametrize("shape", [(), (0,)])
def test_constants_of_other_types(shape: tuple[int, ...]) -> None:
    nets = [model("g () => (float[m] y) { y = Cast<to = 1>(w) }", w=np.full(shape, 2, dtype)) for dtype in ("i4", "i8")]
    numbers = "2" if not shape else "[]"
    wanted = f"input 0: int32 {list(shape)} {numbers} → int64 {list(shape)} {numbers}"
    assert changes(*nets) == [("changed", "y", wanted)]


@pytest.mark.parametrize("outputs", ["float[n] y", "float[n] y, int64 w"])
def test_small_constants_that_no_node_reads(outputs: str) -> None:
    nets = [model(f"g (float[n] x) => ({outputs}) {{ y = Relu(x) }}", w=np.array(value)) for value in (3, 4)]
    assert [(kind, name) for kind, name, _ in changes(*nets)] == [("changed", "w")]
