"""Products of bytes on ONNX Runtime: right on every processor, also where its own saturate."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

import onward
from onward.graph.infer import infer
from onward.graph.walk import all_nodes
from onward.model import Model, load
from onward.runners.onnxruntime import UNOPTIMIZED, session
from onward.runners.unsaturated import PRODUCTS, unsaturated

RNG = np.random.default_rng(0)


def numbers(dtype: Any, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def zero(number: int, dtype: Any) -> np.ndarray:
    return np.array(number, dtype)


SCALE, WIDE = np.array(0.01, np.float32), np.array(2.0, np.float32)
LEFT = numbers(np.uint8, 3, 64), SCALE, zero(120, np.uint8)
RIGHT = numbers(np.int8, 64, 8), SCALE, zero(-5, np.int8)
TO = WIDE, zero(100, np.uint8)
GIVEN: dict[str, list[Any]] = {
    "MatMulInteger": [LEFT[0], RIGHT[0]],
    "QLinearMatMul": [*LEFT, *RIGHT, *TO],
    "QLinearConv": [numbers(np.uint8, 1, 9, 5, 5), *LEFT[1:], numbers(np.int8, 2, 9, 3, 3), *RIGHT[1:], *TO],
    "MatMulIntegerToFloat": [LEFT[0], RIGHT[0], SCALE, SCALE, LEFT[2], RIGHT[2]],
    "QGemm": [*LEFT, *RIGHT, None, *TO],
    "QAttention": [
        numbers(np.uint8, 1, 3, 64),
        numbers(np.int8, 64, 24),
        RNG.standard_normal(24).astype(np.float32),
        SCALE,
        SCALE,
    ],
    "DynamicQuantizeMatMul": [RNG.standard_normal((3, 64)).astype(np.float32), *RIGHT],
    "DynamicQuantizeLSTM": [
        *(RNG.standard_normal((3, 2, 16)).astype(np.float32), numbers(np.int8, 1, 16, 32), numbers(np.int8, 1, 8, 32)),
        *[None] * 5,
        *[np.full(1, 0.01, np.float32), np.zeros(1, np.int8)] * 2,
    ],
}
ATTRIBUTES: dict[str, dict[str, Any]] = {"QAttention": {"num_heads": 2}, "DynamicQuantizeLSTM": {"hidden_size": 8}}


def model_of(op: str, given: list[Any], fixed: bool, **attributes: Any) -> tuple[Model, dict[str, np.ndarray]]:
    """One node, and what to feed it; of `fixed` weights nothing is fed but the first input."""
    names = ["" if x is None else f"in{i}" for i, x in enumerate(given)]
    arrays = {name: x for name, x in zip(names, given, strict=True) if name}
    feeds = {name: x for name, x in arrays.items() if name == "in0" or not fixed}
    domain = "" if onnx.defs.has(op) else "com.microsoft"
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], domain=domain, **attributes)],
        "product",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(x, n) for n, x in arrays.items() if n not in feeds],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return load(helper.make_model(graph, opset_imports=opsets, ir_version=10)), feeds


def run(model: Model, feeds: dict[str, np.ndarray], mode: str = "") -> Any:
    return session(model, mode, threads=1).run(None, feeds)[0]


@pytest.mark.parametrize("mode", ["", UNOPTIMIZED])
@pytest.mark.parametrize("fixed", [True, False])
def test_large_products_are_not_clipped(fixed: bool, mode: str) -> None:
    given = [np.full((1, 64), 255, np.uint8), np.full((64, 1), 127, np.int8)]
    assert run(*model_of("MatMulInteger", given, fixed), mode) == 64 * 255 * 127


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("op", PRODUCTS)
def test_uint8_instead_of_int8_means_the_same(op: str, fixed: bool) -> None:
    model, feeds = model_of(op, GIVEN[op], fixed, **ATTRIBUTES.get(op, {}))
    made = unsaturated(model)
    infer(made.ir)
    at = [(node, product.weights) for node in all_nodes(made.ir.graph) for product in PRODUCTS.get(node.op_type, [])]
    assert {value.dtype for node, index in at if (value := node.inputs[index])} == {ir.DataType.UINT8}
    found, wanted = run(made, feeds), run(model, feeds)
    assert found.std() > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_products_of_int8_stay() -> None:
    left = numbers(np.int8, 3, 64)
    model, feeds = model_of("MatMulInteger", [left, RIGHT[0]], fixed=True)
    (node,) = unsaturated(model).ir.graph
    assert [value and value.dtype for value in node.inputs] == [ir.DataType.INT8] * 2
    np.testing.assert_array_equal(run(model, feeds), left.astype(np.int32) @ RIGHT[0].astype(np.int32))


def test_what_stands_between_grids_is_not_clipped() -> None:
    """Beside data of int8, and with weights that are computed: two things ONNX Runtime's own option fails on."""
    text = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    g (uint8[1, 64] a, int8[1, 64] c, float[1, 64] w) => (float[1, 1] y, float[1, 1] z, float[1, 1] computed)
    <float s = {1.0}, uint8 u = {0}, int8 i = {0}> {
        da = DequantizeLinear(a, s, u)
        db = DequantizeLinear(b, s, i)
        y = MatMul(da, db)
        z = com.microsoft.QGemm(c, s, i, b, s, i)
        q = QuantizeLinear(w, s, i)
        t = Transpose(q)
        dt = DequantizeLinear(t, s, i)
        computed = MatMul(da, dt)
    }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(np.full((64, 1), 127, np.int8), "b"))
    feeds = {"a": np.full((1, 64), 255, np.uint8), "c": np.full((1, 64), -128, np.int8)}
    found = session(load(proto)).run(None, {**feeds, "w": np.full((1, 64), 127, np.float32)})
    assert [x.item() for x in found] == [64 * 255 * 127, -64 * 128 * 127, 64 * 255 * 127]


def test_products_in_functions_of_a_model_are_not_clipped() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (uint8[1, 64] a, int8[64, 1] b) => (int32[1, 1] y) { y = own.product(a, b) }
    <domain: "own", opset_import: ["": 21]>
    product (a, b) => (y) { y = MatMulInteger(a, b) }"""
    made = unsaturated(load(onnx.parser.parse_model(text)))
    infer(made.ir)
    (node,) = (node for node in made.ir.graph if node.op_type == "MatMulInteger")
    assert node.inputs[1] is not None
    assert node.inputs[1].dtype == ir.DataType.UINT8


@pytest.mark.parametrize(("weights", "told"), [(np.int8, True), (np.uint8, False)])
@pytest.mark.parametrize("op", ["MatMulInteger", "MatMul"])
def test_verification_tells_that_onnx_runtime_saturates_here(
    op: str, weights: Any, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onward.runners.unsaturated.products_saturate", lambda: True)
    b = numbers(weights, 64, 8)
    if op == "MatMulInteger":
        model, _ = model_of(op, [LEFT[0], b], fixed=True)
    else:
        text = """<ir_version: 10, opset_import: ["": 20]>
        g (float[3, 64] x) => (float[3, 8] y) <float s = {0.1}, uint8 u = {128}> {
            q = QuantizeLinear(x, s, u)
            d = DequantizeLinear(q, s, u)
            w = DequantizeLinear(b, s)
            y = MatMul(d, w)
        }"""
        proto = onnx.parser.parse_model(text)
        proto.graph.initializer.append(numpy_helper.from_array(b, "b"))
        model = load(proto)
    report = onward.verify(model, "torch", quick=True)
    assert report.ok
    assert ("ONNX Runtime saturates here" in report.remark) == told
    assert any("saturates here" in note for note in report.notes) == told
