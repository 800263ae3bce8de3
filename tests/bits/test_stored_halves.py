"""Weights take 16 bits wherever they are read, and what 16 bits may change is told from what they may not."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onward
from onward.bits.narrow_floats import narrowed
from onward.errors import UnsupportedError
from onward.graph.infer import infer
from onward.graph.walk import all_graphs
from onward.model import Model
from onward.runners import prepare

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 16)).astype(np.float32)
W = RNG.standard_normal((16, 16)).astype(np.float32)


def parsed(text: str, weights: dict[str, np.ndarray] | None = None) -> Model:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> {text}')
    for name, array in (weights or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return onward.load(proto)


def dtypes(model: Model) -> dict[str, str]:
    return {value.name or "": str(value.dtype) for value in model.ir.graph.initializers.values()}


def both(one: Model, other: Model, inputs: dict[str, Any]) -> tuple[Any, Any]:
    expected, actual = (next(iter(prepare("onnxruntime", each)(inputs).values())) for each in (one, other))
    return expected, actual


def overflowing(name: str = "w") -> Model:
    """A product that does not fit into float16, and so stays in 32 bits."""
    text = f"net (float[n, 16] x) => (float[n, 16] y) {{ m = MatMul(x, {name}) q = Mul(m, m) l = Log(q) y = Neg(l) }}"
    return parsed(text, {name: 900 * W})


def test_weights_of_nodes_in_32_bits_have_16() -> None:
    model = overflowing()
    found = narrowed(model, "float16", [{"x": X}])
    assert "Mul" in {one.op for one in found.kept}
    again = narrowed(model, "float16", [{"x": X}], keep=["Neg"])
    assert dtypes(found.model) == dtypes(again.model) == {"w": "FLOAT16"}
    assert found.model.nbytes < 0.55 * model.nbytes
    np.testing.assert_allclose(*both(model, found.model, {"x": X}), atol=0.1)


def test_what_is_asked_to_stay_keeps_its_weights() -> None:
    found = narrowed(overflowing(), "float16", [{"x": X}], keep=["w"])
    assert dtypes(found.model) == {"w": "FLOAT"}


@pytest.mark.parametrize("size", [1e6, 1e-6])
def test_weights_that_16_bits_cannot_hold_stay(size: float) -> None:
    """They overflow, or have hardly a digit left."""
    model = parsed(
        "net (float[n, 16] x) => (float[n, 16] y) { a = Neg(x) m = MatMul(a, w) y = Mul(m, back) }",
        {"w": (W * size).astype(np.float32), "back": np.float32(1 / size)},
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert dtypes(found.model)["w"] == "FLOAT"
    np.testing.assert_allclose(*both(model, found.model, {"x": X}), rtol=5e-3, atol=5e-3)


def test_scales_of_integers_stay() -> None:
    """They say what an integer stands for."""
    weights = {"w": RNG.integers(-99, 99, (16, 256)).astype(np.int8), "s": RNG.random(256).astype(np.float32)}
    text = "net (float[n, 16] x) => (float[n, 256] y) { f = DequantizeLinear<axis = 1>(w, s) y = MatMul(x, f) }"
    assert dtypes(narrowed(parsed(text, weights), "float16", [{"x": X}]).model)["s"] == "FLOAT"


def looped() -> Model:
    values = ", ".join(f"{value:.6f}" for value in (W / 8).reshape(-1))
    return parsed(f"""net (float[4, 16] x) => (float[4, 16] y) <int64 steps = {{3}}, bool on = {{1}}> {{
        h = Loop(steps, on, x) <body = step (int64 i, bool go, float[4, 16] old) => (bool next, float[4, 16] new) {{
            w = Constant<value = float[16, 16] {{{values}}}>()
            m = MatMul(old, w) new = Tanh(m) next = Identity(go) }}>
        y = Neg(h) }}""")


def test_weights_of_a_body_are_cast_once_in_front_of_it() -> None:
    model = looped()
    found = narrowed(model, "float16", [{"x": X}]).model
    assert "FLOAT16" in dtypes(found).values()
    assert found.to_proto().ByteSize() < 0.75 * model.to_proto().ByteSize()
    bodies = [graph for graph in all_graphs(found.ir.graph) if graph is not found.ir.graph]
    assert [node.op_type for body in bodies for node in body] == ["MatMul", "Tanh", "Identity"]
    np.testing.assert_allclose(*both(model, found, {"x": X}), rtol=5e-3, atol=1e-3)


def test_a_model_of_bodies_alone_is_halved() -> None:
    model = looped()
    neg = next(node for node in model.ir.graph if node.op_type == "Neg")
    neg.op_type = "Identity"
    found = narrowed(model, "float16", [{"x": X}], keep=["Identity"])
    assert found.nodes == 0 and "FLOAT16" in dtypes(found.model).values()


def test_ops_of_other_domains_read_stored_weights() -> None:
    model = parsed(
        "net (float[n, 16] x) => (float[n, 16] y) { y = com.microsoft.FusedMatMul<transB = 1>(x, w) }", {"w": W}
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert dtypes(found.model) == {"w": "FLOAT16"}
    np.testing.assert_allclose(*both(model, found.model, {"x": X}), rtol=2e-3, atol=2e-3)


def test_nodes_of_bodies_and_of_other_domains_keep_their_weights_if_asked() -> None:
    assert "FLOAT16" not in dtypes(narrowed(looped(), "float16", [{"x": X}], keep=["MatMul"]).model).values()
    text = "net (float[n, 16] x) => (float[n, 16] y) { h = com.microsoft.FusedMatMul(x, w) y = Neg(h) }"
    found = narrowed(parsed(text, {"w": W}), "float16", [{"x": X}], keep=["FusedMatMul"])
    assert dtypes(found.model) == {"w": "FLOAT"} and [one.op for one in found.kept] == ["FusedMatMul"]


def test_what_onnx_runtime_refuses_as_it_computes_stays() -> None:
    """It has a kernel that adds up in 32 bits alone, and says so only as it runs."""
    model = parsed(
        """net (float[n, 16] x) => (float[n, 16] y) {
            a = Neg(x) s = ScatterElements<axis = 1, reduction = "add">(a, i, a) y = Relu(s) }""",
        {"i": np.zeros((4, 16), np.int64)},
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert [(one.op, one.why) for one in found.kept] == [("ScatterElements", "ONNX Runtime does not run it in float16")]
    np.testing.assert_allclose(*both(model, found.model, {"x": X}), rtol=5e-3, atol=1e-2)


def test_numbers_of_which_only_the_shape_is_read_are_halved_too() -> None:
    model = parsed(
        "net (float[n, 16] x) => (float[n, 16] y, int64[2] s) { y = MatMul(x, w) s = Shape(v) }", {"w": W, "v": W}
    )
    assert dtypes(narrowed(model, "float16", [{"x": X}]).model) == {"w": "FLOAT16", "v": "FLOAT16"}


def test_a_file_holds_no_shapes_that_it_did_not_hold() -> None:
    model = parsed("net (float[n, 16] x) => (float[n, 16] y) { h = MatMul(x, w) r = Relu(h) y = Neg(r) }", {"w": W})
    assert not narrowed(model, "float16", [{"x": X}]).model.to_proto().graph.value_info
    infer(model.ir)
    found = narrowed(model, "float16", [{"x": X}], keep=["MatMul"]).model
    assert "h" in {value.name for value in found.to_proto().graph.value_info}


def test_what_rounding_explains_is_measured_in_16_bits() -> None:
    """All runs of the original in 32 bits round alike here, which says nothing of what a sum loses in 16."""
    model = parsed(
        "net (float[n, 16] x) => (float[n, 16] y) { e = Erf(x) s = Add(e, far) d = Sub(s, far) y = Neg(d) }",
        {"far": np.float32(30)},
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert not found.kept
    assert (
        0.005 < max(one.metrics.overall for one in found.outputs) < max(one.tolerance.overall for one in found.outputs)
    )


def raced(margin: float) -> tuple[Model, list[dict[str, Any]]]:
    """The number of the larger of two sums, of which the second is larger by a share of `margin`, and what it picks."""
    model = parsed(
        """net (float[n, 16] x) => (int64[n] best, float[n] picked) {
            one = ReduceSum<keepdims = 1>(x, axis) two = Mul(one, more) both = Concat<axis = 1>(one, two)
            best = ArgMax<axis = 1, keepdims = 0>(both)
            of = GatherElements<axis = 0>(far, best) picked = Neg(of) }""",
        {
            "axis": np.array([1]),
            "more": np.float32(1 + margin),
            "far": np.array([1.0, 500.0], np.float32),
        },
    )
    return model, [{"x": (1 + RNG.random((64, 16))).astype(np.float32)} for _ in range(2)]


def test_numbers_of_classes_may_change_where_the_race_is_near() -> None:
    """1.0001 is 1 in float16, so that the first wins; what follows from it is no fault of rounding."""
    model, samples = raced(1e-4)
    found = narrowed(model, "float16", samples)
    assert {"best", "picked"} <= {one.name for one in found.elsewhere}
    assert "both" in {one.name for one in found.outputs}
    assert all(one.status == "same" for one in found.outputs)


def test_numbers_of_classes_are_the_same_where_it_is_not() -> None:
    model, samples = raced(0.01)
    found = narrowed(model, "float16", samples)
    assert not found.elsewhere
    np.testing.assert_array_equal(*both(model, found.model, samples[0]))


def test_a_race_that_is_lost_by_more_than_rounding_is_no_excuse() -> None:
    """What is raced over is off by far more than 16 bits explain, as a node before it overflows in the square."""
    model = parsed(
        """net (float[n, 16] x) => (int64[n] best) {
            s = Mul(x, big) q = Mul(s, s) best = ArgMax<axis = 1, keepdims = 0>(q) }""",
        {"big": np.float32(1000.0)},
    )
    found = narrowed(model, "float16", [{"x": X}])
    assert {one.op for one in found.kept} >= {"Mul"}
    np.testing.assert_array_equal(*both(model, found.model, {"x": X}))


def test_what_cannot_be_told_is_said() -> None:
    """A recurrent layer that amplifies what it is given, time and again: nothing is left of the last bits."""
    weights = {"w": W[None], "r": 4 * RNG.standard_normal((1, 16, 16)).astype(np.float32)}
    model = parsed(
        "net (float[60, 1, 16] x) => (float[60, 1, 1, 16] y) { y = RNN<hidden_size = 16>(x, w, r) }", weights
    )
    with pytest.raises(UnsupportedError, match=r"rounding alone moves 'y' .*; give data of your own by calibrate"):
        narrowed(model, "float16", [{"x": RNG.standard_normal((60, 1, 16)).astype(np.float32)}])


def test_a_cast_that_loses_nothing_is_not_cast_back() -> None:
    model = parsed(
        "net (float16[n, 16] x) => (float[n, 16] y) { f = Cast<to = 1>(x) m = MatMul(f, w) y = Relu(m) }", {"w": W}
    )
    found = narrowed(model, "float16", [{"x": X.astype(np.float16)}]).model
    product = next(node for node in found.ir.graph if node.op_type == "MatMul")
    assert product.inputs[0] is not None and product.inputs[0].name == "x"
    assert {value.dtype for value in found.ir.graph.initializers.values()} == {ir.DataType.FLOAT16}
