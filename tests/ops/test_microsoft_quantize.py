"""Quantized ops that ONNX Runtime's quantizer writes, against ONNX Runtime itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from harness import floats, node_model

from onward.scoreboard.suite import forget_shapes, prepare

MS = "com.microsoft"
TYPES = [np.uint8, np.int8]


def quantum(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def integers(*shape: int, dtype: Any = np.uint8, seed: int = 0, low: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.uint8).view(dtype)


def check(op: str, inputs: Sequence[Any], domain: str = MS, unknown: bool = True, **attributes: Any) -> None:
    """The same integers; scales are such that no element falls halfway between two."""
    softmax_opset = attributes.pop("opset", None)
    model, feeds = node_model(op, inputs, domain=domain, **attributes)
    if softmax_opset is not None:
        model.graph.node[0].attribute.append(onnx.helper.make_attribute("opset", softmax_opset))
    wanted = prepare("onnxruntime", model)(feeds)[0]
    for variant in [model, forget_shapes(model)] if unknown else [model]:
        found = prepare("torch", variant)(feeds)[0]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def zero(value: int, dtype: Any) -> np.ndarray:
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("other", [(4, 5, 16), (16,), (5, 1)])
def test_binary(op: str, other: tuple[int, ...], dtype: Any) -> None:
    a, b = integers(4, 5, 16, dtype=dtype), integers(*other, dtype=dtype, seed=1)
    given = [a, quantum(0.031), zero(7, dtype), b, quantum(0.017), zero(-3 if dtype is np.int8 else 100, dtype)]
    check(op, [*given, quantum(0.0437), zero(11, dtype)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("op", "given"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
        ("QLinearSoftmax", {"axis": 1, "opset": 12}),
        ("QLinearSoftmax", {"axis": 1, "opset": 13}),
    ],
    ids=str,
)
def test_unary(op: str, given: dict[str, Any], dtype: Any) -> None:
    x = integers(3, 8, 6, dtype=dtype)
    scale = 1 / 256 if op == "QLinearSoftmax" else 0.0085
    start = 0 if op == "QLinearSoftmax" else 5
    start = start - 128 if op == "QLinearSoftmax" and dtype is np.int8 else start
    inputs = [x, quantum(0.05), zero(20, dtype), quantum(scale), zero(start, dtype)]
    check(op, inputs, **given)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [0, 1])
def test_pools(last: int, dtype: Any) -> None:
    x = integers(2, 6, 7, 5, dtype=dtype)
    inputs = [x, quantum(0.0517), zero(20, dtype), quantum(0.0353), zero(5, dtype)]
    given = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "channels_last": last}
    for count in (0, 1):
        check("QLinearAveragePool", inputs, unknown=not last, count_include_pad=count, **given)
    check("QLinearGlobalAveragePool", inputs, unknown=not last, channels_last=last)


@pytest.mark.parametrize("dtype", TYPES)
def test_reduce_mean(dtype: Any) -> None:
    inputs = [integers(3, 6, 5, dtype=dtype), quantum(0.05), zero(20, dtype), quantum(0.035), zero(5, dtype)]
    model, feeds = node_model("QLinearReduceMean", inputs, domain=MS, axes=[1], keepdims=0)
    found = prepare("torch", model)(feeds)[0]
    mean = ((inputs[0].astype(np.float32) - 20) * np.float32(0.05)).mean(1)
    info = np.iinfo(dtype)
    np.testing.assert_array_equal(
        found, np.clip(np.rint(mean / np.float32(0.035)) + 5, info.min, info.max).astype(dtype)
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_where(dtype: Any) -> None:
    test = floats(4, 6) > 0
    x, y = integers(4, 6, dtype=dtype), integers(4, 6, dtype=dtype, seed=1)
    scales = [quantum(0.031), zero(7, dtype), y, quantum(0.017), zero(9, dtype), quantum(0.02), zero(1, dtype)]
    check("QLinearWhere", [test, x, *scales])


@pytest.mark.parametrize("dtype", TYPES)
def test_concat(dtype: Any) -> None:
    x, y = integers(4, 6, dtype=dtype), integers(4, 3, dtype=dtype, seed=1)
    given = [quantum(0.02), zero(1, dtype), x, quantum(0.031), zero(7, dtype), y, quantum(0.02), zero(1, dtype)]
    check("QLinearConcat", given, axis=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 1])
def test_quantize_and_dequantize(axis: int | None, dtype: Any) -> None:
    given = {} if axis is None else {"axis": axis}
    scale = quantum(0.031) if axis is None else np.array([0.1, 0.2, 0.3], np.float32)
    start = np.array(7 if axis is None else [7, 0, 9], dtype)
    check("DequantizeLinear", [integers(4, 3).astype(dtype), scale, start], **given)
    check("QuantizeLinear", [floats(4, 3), scale, start], **given)


WEIGHTS = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]


@pytest.mark.parametrize(("dtype", "kind"), WEIGHTS)
@pytest.mark.parametrize("columns", [False, True])
def test_qlinear_matmul(columns: bool, dtype: Any, kind: Any) -> None:
    a, b = integers(2, 5, 24, dtype=dtype), integers(24, 7, dtype=kind, seed=1, high=128)
    b_scale = np.linspace(0.01, 0.02, 7).astype(np.float32) if columns else quantum(0.013)
    b_zero = np.zeros(7, kind) if columns else zero(3, kind)
    given = [a, quantum(0.031), zero(20, dtype), b, b_scale, b_zero, quantum(0.4), zero(50, dtype)]
    check("QLinearMatMul", given, domain="")


@pytest.mark.parametrize(("dtype", "kind"), WEIGHTS)
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv(bias: bool, channels: bool, dtype: Any, kind: Any) -> None:
    x, w = integers(2, 4, 9, 8, dtype=dtype), integers(6, 2, 3, 3, dtype=kind, seed=1, high=128)
    w_scale = np.linspace(0.01, 0.02, 6).astype(np.float32) if channels else quantum(0.013)
    w_zero = np.zeros(6, kind) if channels else zero(3, kind)
    given = [x, quantum(0.031), zero(20, dtype), w, w_scale, w_zero, quantum(0.4), zero(50, dtype)]
    given += [np.arange(-300, 300, 100, dtype=np.int32)] if bias else []
    options: dict[str, Any] = {"group": 2, "pads": [1, 1, 0, 2], "strides": [2, 1]}
    check("QLinearConv", given, domain="", fixed=[3, 4, 5] if channels else (), **options)


@pytest.mark.parametrize("dtype", TYPES)
def test_qlinear_conv_with_channels_last(dtype: Any) -> None:
    x, w = integers(2, 9, 8, 4, dtype=dtype), integers(6, 4, 3, 3, dtype=np.int8, seed=1)
    given = [x, quantum(0.031), zero(20, dtype), w, quantum(0.013), zero(0, np.int8), quantum(0.9), zero(50, dtype)]
    check("QLinearConv", given, fixed=[3], unknown=False, channels_last=1, pads=[1, 1, 1, 1])


def test_results_are_typed() -> None:
    """What follows a lowered op knows its type: a cast to the same type is no work."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
        "g (uint8[N, 4] x) => (float[N, 4] y) <float s = {0.5}, uint8 z = {3}> {"
        " a = com.microsoft.QLinearSigmoid(x, s, z, s, z)  y = DequantizeLinear(a, s, z) }"
    )
    assert prepare("torch", model)([integers(2, 4)])[0].dtype == np.float32
