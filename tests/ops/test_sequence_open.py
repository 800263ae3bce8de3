"""Traced by TensorFlow, sequences and optionals of which only a run knows how long they are, and whether there."""

import numpy as np
import pytest
from harness import compare, floats, text_model

from onward.errors import RunFailure
from onward.scoreboard.suite import forget_shapes, prepare

pytest.importorskip("tensorflow")
HEADER = '<ir_version: 9, opset_import: ["": 20]>\n'
X = floats(5, 3)


def found(model, inputs):
    return prepare("tensorflow:function", forget_shapes(model))(list(inputs))


def run(text, *inputs, **weights):
    model = text_model(HEADER + text, **weights)
    compare(found(model, inputs), prepare("onnxruntime", model)(list(inputs)))


def number(value):
    return np.array(value, dtype=np.int64)


GROWN = """grown = Loop (n, , empty) <
    body: graph = b (int64 i, bool going, seq(float[k, 3]) s) => (bool again, seq(float[k, 3]) r) {
        again = Identity(going)
        j = Add(i, one)
        end = Unsqueeze(j, zeros)
        part = Slice(x, zeros, end)
        r = SequenceInsert(s, part)
    }>"""
WEIGHTS = {"one": number(1), "zeros": number([0]), "zero": number(0)}


def text_of(rest, outputs, more=""):
    return f"g (float[5, 3] x, int64 n{more}) => ({outputs}) {{ empty = SequenceEmpty() {GROWN} {rest} }}"


def grown(rest, outputs, n, more="", *inputs):
    run(text_of(rest, outputs, more), X, number(n), *inputs, **WEIGHTS)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_sequence_that_grows_in_a_loop(n):
    grown("m = SequenceLength(grown)", "seq(float[k, 3]) grown, int64 m", n)


@pytest.mark.parametrize("position", [0, 2, -1, -4])
def test_an_element(position):
    grown("y = SequenceAt(grown, p)", "float[a, b] y", 4, ", int64 p", number(position))
    grown("y = SequenceErase(grown, p)", "seq(float[a, b]) y", 4, ", int64 p", number(position))
    grown("y = SequenceInsert(grown, x, p)", "seq(float[a, b]) y", 4, ", int64 p", number(position))


def test_the_first_and_the_last_element():
    grown("y = SequenceErase(grown) z = SequenceErase(y, zero)", "seq(float[a, b]) z", 4)
    grown("y = SequenceInsert(grown, x, zero) z = SequenceAt(y, zero)", "seq(float[a, b]) y, float[c, d] z", 3)


@pytest.mark.parametrize("position", [4, -5])
def test_no_such_element(position):
    model = text_model(HEADER + text_of("y = SequenceAt(grown, p)", "float[a, b] y", ", int64 p"), **WEIGHTS)
    with pytest.raises(RunFailure, match="no element at"):
        found(model, [X, number(4), number(position)])


@pytest.mark.parametrize("node", ["ConcatFromSequence<axis=0>(grown)", "ConcatFromSequence<axis=-2>(grown)"])
def test_all_in_one(node):
    grown(f"y = {node}", "float[a, b] y", 3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_all_in_one_along_a_new_axis(axis):
    run(
        f"""g (float[5, 3] x) => (float[a, b, c] y) {{
            parts = SplitToSequence<axis=0>(x)
            y = ConcatFromSequence<axis={axis}, new_axis=1>(parts)
        }}""",
        X,
    )


def test_a_function_of_each_element():
    grown(
        """y, z = SequenceMap (grown, x) <
            body: graph = b (float[k, 3] a, float[5, 3] c) => (float[k, 3] d, float[e] f) {
            d = Neg(a)
            f = ReduceMax<keepdims=0>(c, zeros)
        }>""",
        "seq(float[a, b]) y, seq(float[c]) z",
        3,
    )


SPLITS = {
    "rows": ("SplitToSequence<axis=0>(x)", ()),
    "rows without their axis": ("SplitToSequence<axis=0, keepdims=0>(x)", ()),
    "steps": ("SplitToSequence<axis=0>(x, s)", (number(2),)),
    "sizes": ("SplitToSequence<axis=0>(x, s)", (number([1, 4]),)),
    "columns": ("SplitToSequence<axis=-1>(x, s)", (number([2, 0, 1]),)),
}


@pytest.mark.parametrize(("node", "given"), SPLITS.values(), ids=SPLITS)
def test_parts_of_a_tensor(node, given):
    more = "".join(f", int64{'[m]' if s.ndim else ''} s" for s in given)
    run(f"g (float[5, 3] x{more}) => (seq(float) y) {{ y = {node} }}", X, *given)


BRANCHES = """y = If (c) <
    then_branch: graph = t () => (a) { a = SequenceConstruct(x, x) },
    else_branch: graph = u () => (b) { b = SequenceConstruct(x) }>"""


@pytest.mark.parametrize("chosen", [True, False])
def test_branches_of_different_lengths(chosen):
    text = f"g (bool c, float[5, 3] x) => (seq(float[5, 3]) y, int64 n) {{ {BRANCHES} n = SequenceLength(y) }}"
    run(text, np.array(chosen), X)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_tensor_that_may_be_there(chosen):
    run(
        """g (bool c, float[5, 3] x) => (bool there, float[a, b] y) {
            o = If (c) <
                then_branch: graph = t () => (optional(float[5, 3]) a) { a = Optional(x) },
                else_branch: graph = u () => (optional(float[5, 3]) b) { b = Optional<type=@type>() }>
            there = OptionalHasElement(o)
            y = If (there) <
                then_branch: graph = v () => (d) { d = OptionalGetElement(o) },
                else_branch: graph = w () => (e) { e = Neg(x) }>
        }""".replace("@type", "float[5, 3]"),
        np.array(chosen),
        X,
    )
