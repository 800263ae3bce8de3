"""IREE as a runner: StableHLO from the JAX source, and ONNX as IREE itself reads it."""

import numpy as np
import onnx
import pytest

from onward import runners
from onward.errors import RunFailure
from onward.model import Model, load

NET = """<ir_version: 9, opset_import: ["": 18]>
net (float[N, 3] x) => (float[N, 3] y, int64[2] size) <float[3] w = {1, 2, 3}> {
    a = Mul(x, w) b = Exp(a) y = Add(b, x) size = Shape(x)
}"""
WIDE = """<ir_version: 9, opset_import: ["": 18]>
wide (double[N] x, int64[N] i) => (double[N] y, int64[N] j) { y = Add(x, x) j = Add(i, i) }"""
DEFAULT = """<ir_version: 9, opset_import: ["": 18]>
g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {3, 4}> { y = Mul(x, w) }"""


def text(model: str) -> Model:
    return load(onnx.parser.parse_model(model))


@pytest.mark.parametrize("name", ["iree", "iree:onnx"])
def test_each_size_is_run(name: str) -> None:
    run = runners.prepare(name, text(NET))
    for rows in (2, 3):
        x = np.linspace(-1, 1, 3 * rows, dtype=np.float32).reshape(rows, 3)
        found = run({"x": x})
        assert list(found) == ["y", "size"]
        np.testing.assert_allclose(found["y"], np.exp(x * np.float32([1, 2, 3])) + x, rtol=1e-5)
        np.testing.assert_array_equal(found["size"], [rows, 3])


@pytest.mark.parametrize("name", ["iree", "iree:onnx"])
def test_64_bits_stay(name: str) -> None:
    x, i = np.array([1 / 3, 1e300]), np.array([2**40, -1])
    found = runners.prepare(name, text(WIDE))({"x": x, "i": i})
    np.testing.assert_array_equal(found["y"], x + x)
    np.testing.assert_array_equal(found["j"], i + i)


def test_defaults_are_weights() -> None:
    run = runners.prepare("iree", text(DEFAULT))
    np.testing.assert_array_equal(run({"x": np.ones(2, np.float32)})["y"], [3, 4])
    with pytest.raises(RunFailure, match="the input 'w' has a default, which IREE keeps as a weight"):
        run({"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)})


def test_what_iree_does_not_compile_is_told() -> None:
    model = text("""<ir_version: 9, opset_import: ["": 18]>
    g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }""")
    with pytest.raises(RunFailure, match="IREE does not compile it"):
        runners.prepare("iree:onnx", model)({"x": np.array(["a"], object)})
