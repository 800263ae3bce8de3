"""Quantization against ONNX Runtime: the integers must be equal."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from harness import check, floats, literal, merged, node_model, reference, source, to_torch

from onward.backends.torch.runtime.quantize import quantized_conv, quantized_matmul
from onward.spec.quantize import EXACT, largest_distance, largest_sum

FOUR_BITS = [ml_dtypes.int4, ml_dtypes.uint4]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, *FOUR_BITS]
names = {"ids": lambda t: t.__name__}


def levels(*shape: int, dtype: Any, seed: int = 0) -> np.ndarray:
    info = ml_dtypes.iinfo(dtype)
    random = np.random.default_rng([seed, *shape])
    return random.integers(int(info.min), int(info.max), shape, endpoint=True).astype(dtype)


def scales(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).uniform(0.01, 0.3, shape).astype(np.float32)


@pytest.mark.parametrize("fixed", [(), (1, 2)], ids=["computed", "fixed"])
@pytest.mark.parametrize("dtype", INTEGERS, **names)
def test_quantize_and_dequantize(dtype: Any, fixed: tuple[int, ...]) -> None:
    x = floats(3, 4, 5) * 3
    x[0, 0] = [0.05, 0.15, 0.25, 1e6, -1e6]
    quantized = levels(3, 4, 5, dtype=dtype)
    parts = []
    for scale, axis in [((), None), ((4,), 1), ((5,), -1), ((3,), 0)]:
        options = {} if axis is None else {"axis": axis}
        step = np.float32(0.1) if not scale else scales(*scale)
        for zero in (levels(*scale, dtype=dtype), np.zeros(scale, dtype)):
            parts.append(node_model("QuantizeLinear", [x, step, zero], fixed=fixed, **options))
            parts.append(node_model("DequantizeLinear", [quantized, step, zero], fixed=fixed, **options))
        parts.append(node_model("QuantizeLinear", [x, step], fixed=fixed[:1], **options))
    model, feeds = merged(parts)
    for variant in (model, literal(model)):
        check(variant, feeds, expected=reference(model, feeds) if dtype in FOUR_BITS else None)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, *FOUR_BITS], **names)
@pytest.mark.parametrize("axis,blocks", [(0, (2, 4)), (1, (3, 2)), (-1, (3, 2))])
def test_blocks(dtype: Any, axis: int, blocks: tuple[int, int]) -> None:
    x, step, zero = floats(3, 4), scales(*blocks), levels(*blocks, dtype=dtype)
    options = {"axis": axis, "block_size": 2}
    parts = [node_model("QuantizeLinear", [x, step, zero], **options)]
    parts.append(node_model("DequantizeLinear", [levels(3, 4, dtype=dtype), step, zero], **options))
    model, feeds = merged(parts)
    check(model, feeds, expected=reference(model, feeds) if dtype in FOUR_BITS else None)


@pytest.mark.parametrize("fixed", [(), (1, 2)])
def test_one_scale_in_a_vector_is_for_the_whole_tensor(fixed: tuple[int, ...]) -> None:
    for x in (np.array(1.3, np.float32), floats(3), floats(3, 4)):
        scale, zero = np.array([0.1], np.float32), np.array([5], np.uint8)
        expected = np.clip(np.rint(x / scale[0]) + 5, 0, 255).astype(np.uint8)
        model, feeds = node_model("QuantizeLinear", [x, scale, zero], fixed=fixed)
        check(model, feeds, expected=[expected])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], **names)
def test_half_precision_scales(dtype: Any) -> None:
    """The quotient is rounded to the precision of the scale, its sum with the zero point is not."""
    x, step = np.array([60.0, -3.3, 0.7, 1000.0]).astype(dtype), np.array(0.25).astype(dtype)
    for target, zero in ((np.uint8, 11), (np.int16, -301)):
        quotient = np.rint((x / step).astype(np.float64))
        info = np.iinfo(target)
        expected = np.clip(quotient + zero, info.min, info.max).astype(target)
        check(*node_model("QuantizeLinear", [x, step, np.array(zero, target)]), expected=[expected])
    values = levels(6, dtype=np.int8)
    expected = ((values.astype(np.float32) - 3) * step.astype(np.float32)).astype(dtype)
    check(*node_model("DequantizeLinear", [values, step, np.int8(3)]), expected=[expected])


def test_precision_and_output_dtype() -> None:
    x, step = np.array([1.0, 2.7, -9.1], np.float32), np.array(0.3, np.float32)
    half = (x.astype(np.float16) / step.astype(np.float16)).astype(np.float64)
    model, feeds = node_model("QuantizeLinear", [x, step], opset=23, precision=10, output_dtype=3)
    check(model, feeds, expected=[np.rint(half).astype(np.int8)])
    model, feeds = node_model("DequantizeLinear", [np.array([1, 5], np.int8), step], opset=23, output_dtype=10)
    check(model, feeds, expected=[(np.array([1, 5], np.float32) * step).astype(np.float16)])


def test_scales_that_are_powers_of_two() -> None:
    x = floats(2, 8)
    step = np.array([[0.5, 0.25], [1.0, 2.0]]).astype(ml_dtypes.float8_e8m0fnu)
    model, feeds = node_model("QuantizeLinear", [x, step], opset=25, axis=1, block_size=4, output_dtype=3)
    wide = np.repeat(step.astype(np.float32), 4, axis=1)
    check(model, feeds, expected=[np.clip(np.rint(x / wide), -128, 127).astype(np.int8)])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2], **names)
@pytest.mark.parametrize("saturate", [0, 1])
def test_eight_bit_floats(dtype: Any, saturate: int) -> None:
    x, step = np.concatenate([floats(20) * 100, [np.inf, 1e9, -1e9]]).astype(np.float32), np.float32(0.3)
    zero = np.zeros((), dtype)
    model, feeds = node_model("QuantizeLinear", [x, step, zero], fixed=[2], saturate=saturate)
    largest = float(ml_dtypes.finfo(dtype).max)
    expected = (np.clip(x / step, -largest, largest) if saturate else x / step).astype(dtype)
    check(model, feeds, expected=[expected])
    check(*node_model("DequantizeLinear", [expected, step, zero]), expected=[expected.astype(np.float32) * step])


@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, 2.0, 5.0], [-1.0, -7.0], [-3.0, 0.0, 3.0], [1e-30, -2e-30]])
def test_dynamic_quantization(x: list[float]) -> None:
    check(*node_model("DynamicQuantizeLinear", [np.array([x], np.float32)], 3))


@pytest.mark.parametrize("a_type", [np.uint8, np.int8], **names)
@pytest.mark.parametrize("b_type", [np.uint8, np.int8], **names)
def test_integer_matmul(a_type: Any, b_type: Any) -> None:
    if (a_type, b_type) == (np.int8, np.uint8):
        pytest.skip("ONNX Runtime has no kernel")
    a, b = levels(2, 3, 70, dtype=a_type), levels(70, 5, dtype=b_type)
    zeros = levels(2, dtype=a_type)[0], levels(5, dtype=b_type)
    parts = []
    for fixed in ((), (1,), (1, 2, 3)):
        parts.append(node_model("MatMulInteger", [a, b, zeros[0], zeros[1][0]], fixed=fixed))
        parts.append(node_model("MatMulInteger", [a, b, zeros[0], zeros[1]], fixed=fixed))
        parts.append(node_model("MatMulInteger", [a, b], fixed=fixed[:1]))
    check(*merged(parts))


def test_zero_points_of_rows() -> None:
    a, b, rows = levels(3, 4, dtype=np.uint8), levels(4, 5, dtype=np.int8), levels(3, dtype=np.uint8)
    expected = (a.astype(np.int32) - rows[:, None]) @ b.astype(np.int32)
    for fixed in ((), (2,)):
        check(*node_model("MatMulInteger", [a, b, rows], fixed=fixed), expected=[expected])


CONVS: list[dict[str, Any]] = [
    {},
    {"pads": [1, 1, 1, 1]},
    {"pads": [0, 1, 2, 1], "strides": [2, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"dilations": [2, 1], "auto_pad": "VALID"},
]


@pytest.mark.parametrize("attributes", CONVS)
@pytest.mark.parametrize("group", [1, 2])
def test_integer_conv(attributes: dict[str, Any], group: int) -> None:
    x, w = levels(2, 4, 7, 6, dtype=np.uint8), levels(6, 4 // group, 3, 3, dtype=np.uint8)
    zero = [np.uint8(7), np.uint8(9)]
    parts = [node_model("ConvInteger", [x, w, *zero], fixed=f, group=group, **attributes) for f in ((), (1, 2, 3))]
    parts.append(node_model("ConvInteger", [x, w], fixed=[1], group=group, **attributes))
    check(*merged(parts))


@pytest.mark.parametrize("group", [1, 2])
def test_integer_conv_of_many_channels(group: int) -> None:
    """Sums that single precision does not hold, of numbers as far from zero as they can be."""
    x, w = levels(1, 1000, 3, 3, dtype=np.uint8), levels(2, 1000 // group, 3, 3, dtype=np.int8)
    x[:, ::3], w[0] = 255, -128
    zeros = np.uint8(0), np.int8(127)
    check(*node_model("ConvInteger", [x, w, *zeros], fixed=(1, 2, 3), group=group, pads=[1, 0, 0, 1]))


@pytest.mark.parametrize("fixed", [(), (1, 2, 3, 4, 5, 6, 7)], ids=["computed", "fixed"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_quantized_conv(fixed: tuple[int, ...], per_channel: bool) -> None:
    x, w = levels(2, 4, 7, 6, dtype=np.uint8), levels(6, 4, 3, 3, dtype=np.int8)
    count = (6,) if per_channel else ()
    w_scale = scales(*count) / 10
    inputs = [x, np.float32(0.02), np.uint8(100), w, w_scale, np.zeros(count, np.int8), np.float32(0.07), np.uint8(128)]
    bias = levels(6, dtype=np.int16).astype(np.int32)
    parts = [node_model("QLinearConv", inputs, fixed=fixed, pads=[1, 1, 1, 1])]
    parts.append(node_model("QLinearConv", [*inputs, bias], fixed=[*fixed, 8] if fixed else [], strides=[2, 2]))
    check(*merged(parts))


@pytest.mark.parametrize("fixed", [(), (1, 2, 3, 4, 5, 6, 7)], ids=["computed", "fixed"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8], **names)
def test_quantized_matmul(dtype: Any, fixed: tuple[int, ...]) -> None:
    a, b = levels(2, 3, 40, dtype=dtype), levels(40, 5, dtype=np.int8)
    first = [a, np.float32(0.02), dtype(3), b]
    last = [np.float32(0.09), dtype(10)]
    parts = [node_model("QLinearMatMul", [*first, np.float32(0.03), np.int8(-2), *last], fixed=fixed)]
    parts.append(node_model("QLinearMatMul", [*first, scales(5) / 10, np.zeros(5, np.int8), *last], fixed=fixed))
    check(*merged(parts))


def test_single_precision_only_where_it_is_exact() -> None:
    small, large = levels(16, 4, dtype=np.int8), np.full((2000, 4), 127, np.int8)
    for weight, single in ((small, True), (large, False)):
        a = np.full((1, len(weight)), 255, np.uint8)
        model, feeds = node_model("MatMulInteger", [a, weight], fixed=[1])
        assert ("dtype=torch.float32" in source(model)) == single
        check(model, feeds)
    assert largest_sum(255, large, np.int8(0), (-2,)) == 2000 * 127 * 255 > EXACT
    assert largest_distance(None, None) == 383


def test_sums_at_the_bound_are_exact() -> None:
    """65793 products of 255 * 1 add up to 2 ** 24 - 1, the largest odd sum that single precision holds."""
    a, b = torch.full((1, 65793), 255, dtype=torch.uint8), torch.ones(65793, 1, dtype=torch.int8)
    assert quantized_matmul(a, b, dtype=torch.float32).item() == 2**24 - 1
    x, w = a.reshape(1, 1, -1, 1), b.reshape(1, 1, -1, 1)
    assert quantized_conv(x, w, dtype=torch.float32).item() == 2**24 - 1


def test_code_reads_as_written_by_hand() -> None:
    model, _ = node_model("QuantizeLinear", [floats(2, 3), np.float32(0.1), np.uint8(3)], fixed=[1, 2])
    assert "torch.clamp(torch.round(in0 / 0.1) + 3, 0, 255).to(torch.uint8)" in source(literal(model))


def test_scales_learn() -> None:
    model, _ = node_model("DequantizeLinear", [levels(2, 3, dtype=np.int8), scales(3)], fixed=[1])
    net = to_torch(model)
    net(torch.ones(2, 3, dtype=torch.int8)).sum().backward()
    assert [p.grad.tolist() for p in net.parameters() if p.grad is not None] == [[2.0, 2.0, 2.0]]


def test_the_range_of_nothing_is_zero() -> None:
    nothing = np.zeros((0, 3), np.float32)
    wanted = [nothing.astype(np.uint8), np.float32(1), np.uint8(0)]
    check(*node_model("DynamicQuantizeLinear", [nothing], 3), expected=wanted)
