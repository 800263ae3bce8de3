"""Gradients through sequences whose elements are known."""

import numpy as np
import pytest
from gradient_checks import TARGET, check_model, check_op, close, differences, run_torch, with_target
from onnx import parser

from onward.scoreboard.suite import forget_shapes
from onward.training.autodiff.derivatives import gradient
from onward.training.autodiff.reverse import MissingGradient

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


SPLIT = """agraph (double[4,3] x) => (double[6,3] y) {
    sizes = Constant <value_ints = [1, 3]> ()
    s = SplitToSequence <axis = 0> (x, sizes)
    one = Constant <value_int = -1> ()
    a = SequenceAt (s, one)
    b = Sin (a)
    t = SequenceInsert (s, b)
    zero = Constant <value_int = 0> ()
    u = SequenceErase (t, zero)
    y = ConcatFromSequence <axis = 0> (u)
}"""

ROWS = """agraph (double[4,3] x) => (double[3] z) {
    v = SplitToSequence <axis = 0, keepdims = 0> (x)
    three = Constant <value_int = 3> ()
    last = SequenceAt (v, three)
    z = Exp (last)
}"""

JOIN = """agraph (double[3] x, double[3] w) => (double[3,2] y, int64 n) {
    a = Mul (x, w)
    s = SequenceConstruct (a, x)
    y = ConcatFromSequence <axis = 1, new_axis = 1> (s)
    n = SequenceLength (s)
}"""


def test_taken_apart() -> None:
    check_model(parser.parse_model(HEAD + SPLIT), {"x": normal(4, 3)})


def test_rows() -> None:
    """Their number has to be known."""
    model = with_target(parser.parse_model(HEAD + ROWS), {"x": normal(4, 3)})
    found = run_torch(gradient(model, TARGET, ["x"]).to_proto(), {"x": normal(4, 3)})
    close(found["x.grad"], differences(model, {"x": normal(4, 3)}, ["x"], TARGET)["x"], 1e-6, "the gradient")
    with pytest.raises(MissingGradient, match="SplitToSequence has no gradient rule"):
        gradient(forget_shapes(model), TARGET, ["x"])


def test_put_together() -> None:
    check_model(parser.parse_model(HEAD + JOIN), {"x": normal(3), "w": normal(3) + 1})


def test_an_optional_tensor() -> None:
    check_op("OptionalGetElement", {"x": normal(2, 3)}, second=False)


def test_an_unknown_position_is_refused() -> None:
    text = """agraph (double[2,3] x, int64 at) => (double[1,3] y) {
        s = SplitToSequence <axis = 0> (x)
        y = SequenceAt (s, at)
    }"""
    with pytest.raises(MissingGradient, match="SplitToSequence has no gradient rule"):
        gradient(parser.parse_model(HEAD + text), "y", ["x"])
