"""Which lines of generated source come from which node."""

import pytest
from graphs import model

from onward.backends.backend import backend
from onward.backends.emit.modules.tracing import Line, located, marked, origins_of, together
from onward.backends.emit.package import Source
from onward.model import load


def texts(source: Source, origin: str) -> list[str]:
    lines = source.model.splitlines()
    return [lines[number - 1].strip() for number in source.lines.get(origin, ())]


def test_a_line_knows_its_origin_when_it_is_indented() -> None:
    line = Line("x = y", ["Add 'a'", "", "Add 'a'"])
    assert line == "x = y" and origins_of("    " + ("    " + line)) == ("Add 'a'",)
    assert origins_of("x = y") == ()
    assert list(map(origins_of, marked([line, "z"], ["Mul 'm'"]))) == [("Add 'a'",), ("Mul 'm'",)]


def test_lines_that_stand_for_several_know_all() -> None:
    ours, theirs, shorter = [Line("x", ["a"]), Line("y")], [Line("x", ["b"]), Line("y")], [Line("x", ["c"])]
    assert list(map(origins_of, together(ours, [theirs, shorter]))) == [("a", "b"), ()]


def test_lines_are_counted_from_one() -> None:
    piece = [Line("def f():"), Line("    return 1", ["One"])]
    assert located([piece], "import x\n\n\ndef f():\n    return 1\n") == {"One": [5]}
    assert located([piece], "something else") == {}


def test_members_and_calls_of_classes_that_repeat() -> None:
    source = backend("torch").generate(load("examples/digits/digits.onnx"))
    assert texts(source, "Gemm 'node_linear'") == ["self.head = nn.Linear(32, 10)", "return self.head(x)"]
    first, second = (texts(source, f"Conv 'node_conv2d_{number}'") for number in (1, 3))
    assert first == second, "two modules of one class have the same lines"
    assert first[0].startswith("self.conv1 = nn.Conv2d(") and "self.conv1(x)" in first[1]
    (stem,) = texts(source, "Conv 'node_conv2d'")
    assert stem.startswith("self.stem = nn.Sequential(nn.Conv2d(")


@pytest.mark.parametrize("name", ["torch", "tensorflow", "jax", "keras"])
def test_what_is_inlined_or_branches_has_its_lines(name: str) -> None:
    net = model("""net (float[2] x, bool flag) => (float[2] y) {
        s = Sigmoid(x)
        t = If (flag) <then_branch = a () => (float[2] p) { p = Exp(s) },
                       else_branch = b () => (float[2] q) { q = Tanh(s) }>
        y = Atan(t)
    }""")
    source = backend(name).generate(net)
    for op, value, word in (
        ("Sigmoid", "s", "sigmoid"),
        ("Exp", "p", "exp"),
        ("Tanh", "q", "tanh"),
        ("Atan", "y", "tan"),
    ):
        found = texts(source, f"{op} '{value}'")
        assert found and any(word in line for line in found), (op, found)


def test_every_origin_is_a_node_of_the_file() -> None:
    net = load("examples/digits/digits.onnx")
    known = {f"{node.op_type} '{node.name}'" for node in net.ir.graph}
    assert set(backend("torch").generate(net).lines) <= known
