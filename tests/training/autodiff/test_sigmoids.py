"""Sigmoids that are written out have gradients where exp(-x) is too large for a number."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from onward.training import gradient

X = np.array([-1089.0, -88.8, -3.0, 0.5, 1089.0], np.float32)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("n = Neg(x) e = Exp(n) d = Add(e, one) y = Reciprocal(d)", True),
        ("n = Neg(x) e = Exp(n) d = Add(one, e) y = Div(one, d)", True),
        ("n = Neg(x) e = Exp(n) d = Add(e, two) y = Reciprocal(d)", False),
        ("n = Neg(x) e = Exp(n) d = Add(e, one) y = Div(two, d)", False),
        ("n = Abs(x) e = Exp(n) d = Add(e, one) y = Reciprocal(d)", False),
    ],
)
def test_what_is_a_sigmoid_is_one(text: str, named: bool) -> None:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[5] x) => (float y)
        <float one = {{1}}, float two = {{2}}, float zero = {{0}}>
        {{ {text.replace("y = ", "s = ")} y = ReduceSum<keepdims = 0>(s) }}"""
    )
    made = gradient(proto, "y", ["x"])
    kinds = [node.op_type for node in made.ir.graph]
    assert ("Sigmoid" in kinds) == named
    if named:
        assert "Exp" not in kinds
        session = onnxruntime.InferenceSession(made.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
        *_, found = session.run(None, {"x": X})
        half = np.exp(-np.abs(X.astype(np.float64)))
        np.testing.assert_allclose(found, half / (1 + half) ** 2, rtol=1e-5, atol=1e-30)


def test_a_part_that_is_asked_for_stays() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[5] x) => (float[5] y) <float one = {1}>
        { n = Neg(x) e = Exp(n) d = Add(e, one) y = Reciprocal(d) }"""
    )
    made = gradient(proto, "y", ["e"])
    session = onnxruntime.InferenceSession(made.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": np.zeros(5, np.float32)})[1], np.full(5, -0.25), rtol=1e-6)
