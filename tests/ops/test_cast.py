"""Casts between all dtypes, against ml_dtypes, ONNX's reference or ONNX Runtime."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from harness import check, merged, node_model
from onnx import TensorProto

PLAIN = [
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_),
    *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16),
]
SMALL = [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn]
FLOAT8 = [
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
]
FLOAT6 = [ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn]
names = {"ids": lambda t: t.__name__}


def code(dtype: Any) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model(x: np.ndarray, to: Any, op: str = "Cast", **attributes: Any) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    return node_model(op, [x], to=to if isinstance(to, int) else code(to), opset=25, **attributes)


@pytest.mark.parametrize("source", [*PLAIN, *SMALL, *FLOAT8], **names)
def test_small_numbers_survive_every_cast(source: Any) -> None:
    x = np.array([[0, 1, 1], [0, 1, 0]]).astype(source)
    parts, expected = [], []
    for target in [*PLAIN, *SMALL, *FLOAT8]:
        parts.append(model(x, target))
        expected.append(x.astype(np.float32).astype(target))
    check(*merged(parts), expected=expected)


@pytest.mark.parametrize("source", [np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64], **names)
def test_integers_that_do_not_fit_wrap(source: Any) -> None:
    info = np.iinfo(source)
    x = np.array([info.min, info.max, info.max // 3, 200, 7], source)
    parts, expected = [], []
    for target in PLAIN[:9]:
        parts.append(model(x, target))
        expected.append(x.astype(target))
    for small, (width, signed) in {ml_dtypes.int4: (4, 1), ml_dtypes.uint4: (4, 0), ml_dtypes.int2: (2, 1)}.items():
        low = [int(v) % 2**width for v in x]
        parts.append(model(x, small))
        expected.append(np.array([v - 2**width if signed and v >= 2 ** (width - 1) else v for v in low]).astype(small))
    check(*merged(parts), expected=expected)


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16], **names)
def test_floats_are_cut_off(source: Any) -> None:
    x = np.array([0.9, -0.9, 1.5, -1.5, 2.5, 100.7, -0.0]).astype(source)
    parts, expected = [], []
    for target in (np.int8, np.int16, np.int32, np.int64, np.bool_):
        parts.append(model(x, target))
        expected.append(x.astype(np.float64).astype(target))
    for target in (np.uint8, np.uint16, np.uint32, np.uint64):
        parts.append(model(np.abs(x), target))
        expected.append(np.abs(x).astype(np.float64).astype(target))
    check(*merged(parts), expected=expected)


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16], **names)
def test_floats_that_do_not_fit_wrap(source: Any) -> None:
    """Wherever they stand: in a row that is longer than what a processor converts at a time."""
    x = np.tile(np.array([300, -300, -1, 200, 256.5, 255], source), 13)
    targets = (np.int8, np.uint8, np.int16, np.uint16)
    check(*merged([model(x, t) for t in targets]), expected=[x.astype(np.int64).astype(t) for t in targets])


@pytest.mark.parametrize("target", [np.uint32, np.uint64], **names)
def test_negative_floats_to_unsigned(target: Any) -> None:
    x = np.float32([-1.5, -3, 0, 7, -0.5])
    expected = x.astype(np.int64).astype(target)
    check(*node_model("Cast", [x], to=code(target)), expected=[expected])


def test_large_floats_to_unsigned() -> None:
    parts = [model(np.array([4e9, 2.0**31]), np.uint32), model(np.array([2.0**63, 1e19]), np.uint64)]
    expected = [np.array([4_000_000_000, 2**31], np.uint32), np.array([2**63, 10**19], np.uint64)]
    check(*merged(parts), expected=expected)


def test_nan_and_infinity() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e300, 0.0])
    parts, expected = [], []
    with np.errstate(over="ignore"):
        for target in (np.float32, np.float16, ml_dtypes.bfloat16, np.bool_):
            parts.append(model(x, target))
            expected.append(x.astype(target))
    check(*merged(parts), expected=expected)


def grid(dtype: Any) -> np.ndarray:
    """Every value of an 8-bit or smaller float, the midpoints, their neighbours, and values out of range."""
    values = np.arange(256, dtype=np.uint8).view(dtype) if np.dtype(dtype).itemsize == 1 else np.arange(16)
    known = np.unique(np.asarray(values, np.float32))
    known = known[np.isfinite(known)]
    middle = (known[1:] + known[:-1]) / 2
    near = np.concatenate([np.nextafter(middle, np.float32(s)) for s in (-np.inf, np.inf)])
    out = [known.max() * 1.01, known.max() * 1.2, known.min() * 4, np.inf, -np.inf, np.nan]
    return np.concatenate([known, middle, near, np.array(out, np.float32)])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", FLOAT8, **names)
def test_rounding_to_eight_bits(target: Any, saturate: int) -> None:
    x = grid(target)
    expected = onnx.numpy_helper.saturate_cast(x, np.dtype(target)) if saturate else x.astype(target)
    to_float8 = model(x, target, saturate=saturate)
    check(*to_float8, expected=[expected])
    check(*model(expected, np.float32), expected=[expected.astype(np.float32)])


@pytest.mark.parametrize("target,opset", [(ml_dtypes.float4_e2m1fn, 25), *((t, 28) for t in FLOAT6)])
def test_rounding_to_fewer_bits(target: Any, opset: int) -> None:
    count = 2 ** ml_dtypes.finfo(target).bits // 2
    values = np.arange(count, dtype=np.uint8).view(target).astype(np.float32)
    middle = (values[1:] + values[:-1]) / 2
    x = np.concatenate([values, middle, middle * 1.001, middle * 0.999, [7, 30, 1e9, np.inf, np.nan, 1e-9]])
    x = np.concatenate([x, -x]).astype(np.float32)
    small = x.astype(target)
    check(*node_model("Cast", [x], to=code(target), opset=opset), expected=[small])
    check(*node_model("Cast", [small], to=TensorProto.FLOAT, opset=opset), expected=[small.astype(np.float32)])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_rounding_to_powers_of_two(round_mode: str, saturate: int) -> None:
    x = np.array([1, 1.1, 1.5, 1.6, 2, 3, 2.0**127, 3e38, np.inf, np.nan, 1e-40, 5e-39, 0, 2.0**-126], np.float32)
    expected = onnx.numpy_helper.to_float8e8m0(x, bool(saturate), round_mode)
    found = model(x, TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=round_mode)
    check(*found, expected=[expected])


def test_strings_to_numbers() -> None:
    x = np.array(["1", "-2.5", "1e3", "INF", "-inf", "+INF", "NaN", "1E-5"], object)
    whole = np.array([["0", "42"], ["-7", "9007199254740993"]], object)
    parts = [node_model("Cast", [x], to=code(t)) for t in (np.float32, np.float64)]
    parts += [node_model("Cast", [whole], to=code(t)) for t in (np.int64, np.int32, np.float32)]
    parts.append(node_model("Cast", [np.array(["18446744073709551615"], object)], to=TensorProto.UINT64))
    check(*merged(parts))


def test_numbers_to_strings() -> None:
    x = np.array([0.1, 1e-5, 1e20, 123456789, 3.14159265, -0.0, 1 / 3, np.inf, -np.inf, np.nan, 100, 1e8])
    with np.errstate(over="ignore"):
        parts = [node_model("Cast", [x.astype(t)], to=TensorProto.STRING) for t in (np.float32, np.float16, np.float64)]
    for values in (np.array([[1, -5]]), np.array([True, False]), np.array([2**64 - 1], np.uint64)):
        parts.append(node_model("Cast", [values], to=TensorProto.STRING))
    check(*merged(parts))


def test_cast_like() -> None:
    x = np.array([1.7, -2.0], np.float32)
    for like in (np.zeros(1, np.int32), np.zeros((), np.float64), np.zeros(2, np.bool_)):
        check(*node_model("CastLike", [x, like]))
    check(*node_model("CastLike", [x, np.array(["a"], object)]), expected=[np.array(["1.7", "-2"], object)])


SAME_WIDTH = [
    (np.float32, np.int32),
    (np.uint32, np.float32),
    (np.float64, np.uint64),
    (np.int16, np.float16),
    (ml_dtypes.bfloat16, np.uint16),
    (ml_dtypes.float8_e5m2, np.int8),
    (np.uint8, ml_dtypes.float8_e4m3fn),
    (np.complex64, np.float64),
]


@pytest.mark.parametrize("source,target", SAME_WIDTH)
def test_bit_patterns(source: Any, target: Any) -> None:
    x = np.array([0, 1, 5, 100]).astype(source)
    check(*_bit_cast(x, target), expected=[x.view(target)])


def test_bit_patterns_of_four_bits() -> None:
    bits = np.arange(16)
    x = bits.astype(ml_dtypes.uint4)
    signed = np.where(bits < 8, bits, bits - 16).astype(ml_dtypes.int4)
    floats = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]).astype(
        ml_dtypes.float4_e2m1fn
    )
    for a, b in [(x, signed), (signed, x), (x, floats), (floats, signed)]:
        check(*_bit_cast(a, b.dtype), expected=[b])


def _bit_cast(x: np.ndarray, to: Any) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    return node_model("BitCast", [x], to=code(to), opset=26)
