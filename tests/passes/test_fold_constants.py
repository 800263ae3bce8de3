"""What is computed from constants alone is computed once, but a weight stays in the state dict under its own name."""

import numpy as np
import pytest
from harness import check, floats, source, text_model

import onward
from onward.passes.fold_constants import EVALUATE

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
X = floats(2, 4)

# (nodes from the weight w to the constant c that is added to x, what the forward says)
DERIVED = [
    ("c = Unsqueeze(w, zero)", "w.unsqueeze(0)"),
    ("two = Constant<value_float: float = 2.0>() c = Mul(two, w)", "2.0 * self.w"),
    ("a = Unsqueeze(w, zero) b = Transpose<perm=[1, 0]>(a) c = Squeeze(b)", "w.unsqueeze(0)"),
    ("a = Neg(w) c = Sqrt(a)", "torch.sqrt(-self.w)"),
    ("p = Constant<value_ints: ints = [3, 2, 1, 0]>() c = Gather(w, p)", "w["),
    ("a = Identity(w) c = Identity(a)", "x + self.w"),
]


def model(body: str, weight: str) -> str:
    """`w` in the body is the weight."""
    named = body.replace("(w", f'("{weight}"').replace(", w)", f', "{weight}")')
    return f"""{HEADER} g (float[n,4] x) => (float[n,4] y) <int64[1] zero = {{0}}> {{ {named} y = Add(x, c) }}"""


@pytest.mark.parametrize(("body", "written"), DERIVED)
def test_a_weight_keeps_its_name(body: str, written: str) -> None:
    weight = -abs(floats(4))
    proto = text_model(model(body, "layer.w"), **{"layer.w": weight})
    check(proto, [X])
    np.testing.assert_array_equal(onward.to_torch(proto).state_dict()["layer.w"], weight)
    assert written in source(proto)


@pytest.mark.parametrize(("body", "written"), DERIVED[:-1])
def test_a_constant_of_a_formula_is_folded(body: str, written: str) -> None:
    """Of a file whose weights are initializers."""
    proto = text_model(model(f"w = Constant<value = float[4] {{-1, -2, -3, -4}}>() {body}", "w"), weight=floats(4))
    check(proto, [X])
    net = onward.to_torch(proto)
    assert list(net.state_dict()) == ["constant"] and not list(net.parameters())
    assert "x + self.constant" in source(proto) and written not in source(proto)


def test_a_weight_without_a_name_is_trained() -> None:
    proto = text_model(model(DERIVED[0][0], "onnx::Mul_12"), **{"onnx::Mul_12": -abs(floats(4))})
    check(proto, [X])
    assert [name for name, _ in onward.to_torch(proto).named_parameters()] == ["weight"]


def test_integers_and_the_shape_of_a_weight_are_folded() -> None:
    proto = text_model(
        f"""{HEADER} g (float[n,m] x) => (float[n,m] y) {{
            s = Shape(weight) last = Constant<value_ints: ints = [-1]>() t = Concat<axis=0>(last, s)
            a = Reshape(x, t) b = Add(a, weight) before = Shape(x) y = Reshape(b, before) }}""",
        weight=floats(2, 2),
    )
    check(proto, [X])
    assert "x.reshape(-1, 2, 2)" in source(proto)


STORED = f"""{HEADER} g (float[n,4,h,h] x) => (float[n,3,h,h] y) {{
    wide = Cast<to=1>(stored) weight = Mul(wide, scale) y = Conv(x, weight) }}"""


@pytest.mark.parametrize(
    ("scale", "conv"),
    [
        (floats(3, 1, 1, 1), "nn.Conv2d(4, 3, 1, bias=False)"),  # the integers are the weight
        (floats(3, 4, 1, 1), "F.conv2d(x, self.constant * self.scale)"),  # they are a mask of it
    ],
)
def test_a_weight_stored_as_integers_is_read_once(scale: np.ndarray, conv: str) -> None:
    stored = np.arange(-6, 6, dtype=np.int8).reshape(3, 4, 1, 1)
    proto = text_model(STORED, stored=stored, scale=scale)
    check(proto, [floats(2, 4, 5, 5)])
    assert conv in source(proto)


def test_named_scales_of_a_resize_may_be_computed() -> None:
    proto = text_model(
        f"""{HEADER} g (float[1,2,h,w] x) => (float[a,b,c,d] y) <float[2] ones = {{1, 1}}, float[2] scales = {{2, 2}}>
        {{ both = Concat<axis=0>(ones, scales) y = Resize<mode="nearest">(x, , both) }}"""
    )
    check(proto, [floats(1, 2, 3, 4)])


def test_integers_are_divided_towards_zero() -> None:
    """All that there are of eight bits, the smallest included, which has no absolute value."""
    a, b = np.meshgrid(np.arange(-128, 128), [n for n in range(-128, 128) if n])
    wanted = np.trunc(a / b).astype(np.int64).astype(np.int8)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(EVALUATE["Div"](a.astype(np.int8), b.astype(np.int8)), wanted)
