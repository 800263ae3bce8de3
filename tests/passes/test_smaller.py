"""`--simplify`: fewer nodes that compute the same, and no name or number that a caller relies on is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_samples import trained, with_body
from graphs import model
from onnx import helper

from onward.errors import OnwardError
from onward.model import Model, load
from onward.passes.fewer.smaller import PASSES, smaller

RNG = np.random.default_rng(0)
NORM = """g (float[n, 3, 8, 8] x) => (float[n, 4, 8, 8] y) {
  c = Conv<pads=[1, 1, 1, 1]>(x, w) b = BatchNormalization<epsilon=0.01>(c, gamma, beta, mean, var) y = Relu(b) }"""
PARAMS = {
    "w": RNG.standard_normal((4, 3, 3, 3)).astype(np.float32),
    **{name: RNG.random(4).astype(np.float32) + 0.5 for name in ("gamma", "beta", "mean", "var")},
}
RESHAPE = """g (float[n, 3, 4] x) => (float[n, 12] y) {
  s = Shape(x) i = Constant<value_ints=[0]>() first = Gather(s, i) rest = Constant<value_ints=[-1]>()
  whole = Concat<axis=0>(first, rest) y = Reshape(x, whole) }"""


def ops(made: Model) -> list[str]:
    return [node.op_type for node in made.ir.graph]


def run(made: Model, **feeds: Any) -> Any:
    proto = made.to_proto()
    onnx.checker.check_model(proto)
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize("opset", [9, 13, 17, 21])
def test_batchnorm_goes_into_the_convolution(opset: int) -> None:
    whole = model(NORM, opset, **PARAMS)
    small = smaller(whole).model
    assert ops(small) == ["Conv", "Relu"] and small.opset == whole.opset
    assert set(small.ir.graph.initializers) == {"w", "beta"}
    x = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(small, x=x), run(whole, x=x), rtol=1e-4, atol=1e-5)
    assert ops(smaller(whole, ["scalings"]).model) == ["Conv", "BatchNormalization", "Relu"]
    np.testing.assert_array_equal(whole.ir.graph.initializers["w"].const_value.numpy(), PARAMS["w"])


@pytest.mark.parametrize(
    "text",
    [
        NORM.replace("y = Relu(b)", "y = Add(b, c)"),  # another reader of the convolution
        NORM.replace("y = Relu(b)", "d = Conv<pads=[1, 1, 1, 1]>(x, w) y = Add(b, d)"),  # another reader of its weights
        NORM.replace("8, 8] x)", "8, 8] x, float[4] gamma)"),  # a scale that a caller gives
    ],
)
def test_batchnorm_stays_where_others_read_what_would_change(text: str) -> None:
    params = {name: array for name, array in PARAMS.items() if f"float[4] {name}" not in text}
    assert "BatchNormalization" in ops(smaller(model(text, **params)).model)


def test_shapes_that_are_known_become_constants() -> None:
    whole = model(RESHAPE.replace("n, 3", "2, 3"))
    small = smaller(whole).model
    assert ops(small) == ["Reshape"]
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(small, x=x), run(whole, x=x))
    kept = smaller(model(RESHAPE)).model  # the batch is open: it is that of x
    assert ops(kept) == ["Reshape"]
    np.testing.assert_array_equal(run(kept, x=x), run(whole, x=x))


def test_nodes_that_do_nothing_or_do_it_twice() -> None:
    text = """g (float[n] x) => (float[n] y) { i = Identity(x) d = Dropout(i) one = Constant<value_float=1.0>()
      m = Mul(d, one) a = Exp(m) b = Exp(x) s = Add(a, b) y = Cast<to=1>(s) }"""
    small = smaller(model(text))
    assert ops(small.model) == ["Exp", "Add"] and (small.before, small.after) == (8, 2)
    assert [value.name for value in small.model.ir.graph.outputs] == ["y"]
    assert ops(smaller(model(text), ["equal"]).model) == ["Exp", "Exp", "Add"]
    assert "Dropout" in ops(smaller(model(text), ["neutral"]).model)


def test_random_numbers_are_drawn_twice() -> None:
    text = "g (float[n] x) => (float[n] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }"
    assert ops(smaller(model(text)).model) == ["RandomNormalLike", "RandomNormalLike", "Sub"]


def test_each_reader_keeps_its_own_dequantisation() -> None:
    """ONNX Runtime computes in integers only where each has one reader."""
    text = """g (uint8[n, 4] x) => (float[n, 4] y) {
      a = DequantizeLinear(x, s) b = DequantizeLinear(x, s) p = Neg(a) q = Abs(b) y = Add(p, q) }"""
    small = smaller(model(text, s=np.array(0.5, np.float32))).model
    assert ops(small).count("DequantizeLinear") == 2


def test_a_default_stays_open_to_the_caller() -> None:
    proto = model(
        "g (float[2] x) => (float[2] y) { z = Add(d, d) y = Mul(x, z) }", d=np.zeros(1, np.float32)
    ).to_proto()
    proto.graph.input.append(helper.make_tensor_value_info("d", 1, [1]))
    small = smaller(load(proto)).model
    assert ops(small) == ["Add", "Mul"] and [value.name for value in small.ir.graph.inputs] == ["x", "d"]
    assert run(small, x=np.ones(2, np.float32), d=np.full(1, 3, np.float32)).tolist() == [6.0, 6.0]
    assert run(small, x=np.ones(2, np.float32)).tolist() == [0.0, 0.0]


def test_a_dropout_whose_mode_is_given_stays() -> None:
    text = "g (float[n] x, bool t) => (float[n] y) { d = Dropout(x, r, t) y = Neg(d) }"
    assert ops(smaller(model(text, r=np.array(0.5, np.float32))).model) == ["Dropout", "Neg"]
    text = text.replace(", bool t", "")
    for mode in (True, False):
        weights = {"r": np.array(0.5, np.float32), "t": np.array(mode)}
        assert ops(smaller(model(text, **weights)).model) == [*(["Dropout"] if mode else []), "Neg"]


def test_files_do_not_grow() -> None:
    text = "g (float[4096] x) => (float[4096] y) { e = Expand(c, s) y = Pow(x, e) }"
    whole = model(text, c=np.array([2.5], np.float32), s=np.array([4096]))
    small = smaller(whole).model
    assert len(small.to_proto().SerializeToString()) <= len(whole.to_proto().SerializeToString())


@pytest.mark.parametrize("sign", [1, -1])
def test_bodies_go_on_to_read_what_they_capture(sign: int) -> None:
    x = sign * np.array([[1.0, 2.0, 0.5]], np.float32)
    np.testing.assert_array_equal(run(smaller(with_body()).model, x=x), run(with_body(), x=x))


def test_what_is_refused() -> None:
    with pytest.raises(OnwardError, match=r"no pass 'scaling'; there are inputs, .*; did you mean scalings"):
        smaller(with_body(), ["scaling"])
    with pytest.raises(OnwardError, match="training information"):
        smaller(trained())
    assert set(PASSES) == {
        *("inputs", "initializers", "shapes", "neutral", "constants", "branches", "moves"),
        *("weights", "scalings", "pads", "recurrence", "idioms", "attention", "equal"),
    }
