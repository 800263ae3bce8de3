"""Sequences as lists and optionals as None, against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, text_model
from test_shape import forward, some

HEADER = '<ir_version: 9, opset_import: ["": 20]>\n'


def run(text, *inputs, expected=None, **weights):
    model = text_model(HEADER + text, **weights)
    check(model, list(inputs), expected=expected)
    return forward(model)


ITEMS = [floats(2, seed=i) for i in range(3)]


def number(value, dtype=np.int64):
    return np.array(value, dtype=dtype)


@pytest.mark.parametrize("position", [None, 0, 1, 3, -1, -3])
def test_insert(position):
    if position is None:
        run("g (seq(float[k]) s, float[2] x) => (seq(float[k]) r) { r = SequenceInsert(s, x) }", ITEMS, floats(2))
        return
    text = "(seq(float[k]) s, float[2] x%s) => (seq(float[k]) r) { r = SequenceInsert(s, x, p) }"
    run("g " + text % ", int64 p", ITEMS, floats(2), number(position))
    run("g " + text % "", ITEMS, floats(2), p=number(position, np.int32))


@pytest.mark.parametrize("position", [None, 0, 1, -1, -3])
def test_erase(position):
    if position is None:
        run("g (seq(float[k]) s) => (seq(float[k]) r) { r = SequenceErase(s) }", ITEMS)
        return
    run("g (seq(float[k]) s, int64 p) => (seq(float[k]) r) { r = SequenceErase(s, p) }", ITEMS, number(position))
    run("g (seq(float[k]) s) => (seq(float[k]) r) { r = SequenceErase(s, p) }", ITEMS, p=number(position))


@pytest.mark.parametrize("position", [0, 2, -1])
def test_at_and_length(position):
    text = "(seq(float[k]) s%s) => (float[a] x, int64 n) { x = SequenceAt(s, p) n = SequenceLength(s) }"
    code = run("g " + text % "", ITEMS, p=number(position))
    assert f"s[{position}]" in code and "len(s)" in code
    run("g " + text % ", int32 p", ITEMS, number(position, np.int32))


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)])
def test_construct_and_concat(axis, new_axis):
    body = f"s = SequenceConstruct(x, y) z = ConcatFromSequence<axis = {axis}, new_axis = {new_axis}>(s)"
    run(f"g (float[2, 3] x, float[2, 3] y) => (z) {{ {body} }}", floats(2, 3), floats(2, 3, seed=1))


@pytest.mark.parametrize(
    ("split", "keepdims"), [("", 0), ("", 1), ("int64 p", 1), ("int64[n] p", 0), ("int64[n] p", 1)]
)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("dtype", ["float", "string"])
def test_split(split, axis, keepdims, fixed, dtype):
    x = some((5, 5), "str" if dtype == "string" else "float32")
    sizes = number(2) if split == "int64 p" else np.array([1, 0, 4])
    given = [] if fixed or not split else [sizes]
    weights = {"p": sizes} if fixed and split else {}
    more = f", {split}" if given else ""
    node = f"SplitToSequence<axis = {axis}, keepdims = {keepdims}>(x{', p' if split else ''})"
    run(f"g ({dtype}[a, b] x{more}) => (seq({dtype}) s) {{ s = {node} }}", x, *given, **weights)


def test_strings_in_sequences():
    words = some((2, 2), "str")
    body = "s = SequenceConstruct(x, x) y = ConcatFromSequence<axis = 1>(s)"
    run(f"g (string[a, b] x) => (string[c, d] y) {{ {body} }}", words)


def test_lists_are_never_changed_in_place():
    run(
        """g (seq(float[k]) s, float[2] x) => (seq(float[k]) a, seq(float[k]) b, int64 n) {
            a = SequenceInsert(s, x)
            b = SequenceErase(s)
            n = SequenceLength(s)
        }""",
        ITEMS,
        floats(2),
    )


OPTIONAL = """g (optional(float[2]) o) => (bool h, float[k] y) {
    h = OptionalHasElement(o)
    y = If (h) <then_branch: graph = t () => (a) { a = OptionalGetElement(o) },
                else_branch: graph = u () => (b) { b = Constant<value_floats = [7.0]>() }>
}"""


@pytest.mark.parametrize("value", [floats(2), None])
def test_optionals(value):
    content = np.array([7], dtype=np.float32) if value is None else value
    code = run(OPTIONAL, value, expected=[np.array(value is not None), content])
    assert "o is not None" in code


def test_optional_made_and_opened():
    body = "o = Optional(x) y = OptionalGetElement(o) h = OptionalHasElement(o)"
    run(f"g (float[2] x) => (float[k] y, bool h) {{ {body} }}", floats(2))


@pytest.mark.parametrize("operands", ["s", "s, x", "s, s"])
def test_sequence_map(operands):
    formals = ["float[k] a", "float[k] b"][: operands.count(",") + 1]
    body = "c = Neg(a) d = Shape(a)" if len(formals) == 1 else "c = Sub(a, b) d = Shape(a)"
    code = run(
        f"""g (seq(float[k]) s, float[2] x) => (seq(float[k]) y, seq(int64[m]) z) {{
            y, z = SequenceMap ({operands}) <
                body: graph = g ({", ".join(formals)}) => (float[k] c, int64[1] d) {{ {body} }}>
        }}""",
        ITEMS,
        floats(2),
    )
    assert "for " in code
