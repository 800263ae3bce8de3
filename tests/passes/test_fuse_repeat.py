"""What decoders do to queries and keys, as exporters write it out."""

import numpy as np
import pytest
from harness import check, floats, source, text_model

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
SIZES = """s = Shape(x) b = Slice(s, o, i1) h = Slice(s, i1, i2) t = Slice(s, i2, i3) d = Slice(s, i3, i4)"""
NUMBERS = {"o": 0, "i1": 1, "i2": 2, "i3": 3, "i4": 4, "last": -1, "half": 4, "end": 2**62, "three": 3, "whole": 8}


def model(body: str):
    numbers = {name: np.array([n], np.int64) for name, n in NUMBERS.items()}
    return text_model(f"{HEADER} g (float[n,m,k,8] x) => (float[p,q,r,u] y) {{ {body} }}", **numbers)


REPEAT = f"{SIZES} w = Unsqueeze(x, i2) e = Concat<axis = 0>(b, h, three, t, d) v = Expand(w, e) g = Mul(h, three)"


@pytest.mark.parametrize("final", ["b, g, t, d", "b, last, t, d"])
def test_heads_are_repeated(final):
    made = model(f"{REPEAT} f = Concat<axis = 0>({final}) y = Reshape(v, f)")
    check(made, [floats(2, 3, 5, 8)])
    assert "x.repeat_interleave(3, dim=1)" in source(made)


@pytest.mark.parametrize("final", ["b, h, l, d", "b, d, t, g"])
def test_other_axes_that_become_one_are_no_repetition(final):
    made = model(f"{REPEAT} l = Mul(t, three) f = Concat<axis = 0>({final}) y = Reshape(v, f)")
    check(made, [floats(2, 3, 5, 8)])
    assert "repeat_interleave" not in source(made)


ROTATED = "a = Slice(x, half, end, last) c = Neg(a) b = Slice(x, o, half, last) y = Concat<axis = -1>(c, b)"


def test_halves_change_places():
    made = model(ROTATED)
    check(made, [floats(2, 3, 5, 8)])
    assert "return rotate_half(x)" in source(made)


@pytest.mark.parametrize(
    "other",
    [
        ROTATED.replace("o, half", "o, three"),
        ROTATED.replace("Slice(x, o, half, last)", "Slice(x, half, whole, last)"),
        ROTATED.replace("(c, b)", "(b, c)"),
        ROTATED.replace("half, last) y", "half, last) y").replace("axis = -1", "axis = 2"),
    ],
    ids=["uneven", "one half twice", "another order", "another axis"],
)
def test_other_parts_are_no_halves(other):
    made = model(other)
    check(made, [floats(2, 3, 5, 8)])
    assert "rotate_half" not in source(made)
