"""Products with quantized weights, against ONNX Runtime itself."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import check, floats, node_model
from test_microsoft_quantize import check as check_integers
from test_microsoft_quantize import integers, quantum, zero

MS = "com.microsoft"


def ms(op: str, inputs: list[Any], tolerance: float = 1e-5, unknown: bool = True, **given: Any) -> None:
    model, feeds = node_model(op, inputs, domain=MS, **given)
    check(model, feeds, rtol=tolerance, atol=tolerance, unknown=unknown)


KINDS = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("kind", "weight"), KINDS)
def test_matmul_integer_to_float(kind: Any, weight: Any, bias: bool, columns: bool) -> None:
    a, b = integers(2, 5, 24, dtype=kind), integers(24, 7, dtype=weight, seed=1, high=128)
    b_scale = np.linspace(0.01, 0.02, 7).astype(np.float32) if columns else quantum(0.013)
    b_zero = np.arange(7).astype(weight) if columns else zero(3, weight)
    given = [a, b, quantum(0.031), b_scale, zero(20, kind), b_zero]
    ms("MatMulIntegerToFloat", given + [floats(7)] * bias)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weight", [np.uint8, np.int8])
def test_dynamic_quantize_matmul(weight: Any, bias: bool, columns: bool) -> None:
    b = integers(24, 7, dtype=weight, seed=1, high=128)
    b_scale = np.linspace(0.01, 0.02, 7).astype(np.float32) if columns else quantum(0.013)
    b_zero = np.arange(7).astype(weight) if columns else zero(3, weight)
    ms("DynamicQuantizeMatMul", [floats(2, 5, 24), b, b_scale, b_zero] + [floats(7)] * bias)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize(("kind", "weight"), KINDS)
def test_qgemm(kind: Any, weight: Any, swap: int, quantized: bool) -> None:
    a, b = integers(5, 24, dtype=kind), integers(24, 7, dtype=weight, seed=1, high=128)
    a, b = (a.T.copy(), b.T.copy()) if swap else (a, b)
    b_scale, b_zero = np.linspace(0.01, 0.02, 7).astype(np.float32), np.zeros(7, weight)
    given = [a, quantum(0.031), zero(20, kind), b, b_scale, b_zero, np.arange(7, dtype=np.int32) * 50]
    options = {"transA": swap, "transB": swap, "alpha": 0.5}
    if quantized:
        check_integers("QGemm", [*given, quantum(0.4), zero(50, kind)], **options)
    else:
        ms("QGemm", given, **options)


def packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of so many bits, along the last axis, in bytes."""
    per = 8 // bits
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % per)])
    parts = padded.reshape(*padded.shape[:-1], -1, per).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(per, dtype=np.uint8) * bits), axis=-1)


@pytest.mark.parametrize("points", ["none", "packed", "float"])
@pytest.mark.parametrize("columns", [64, 72])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matmul_nbits(bits: int, columns: int, points: str) -> None:
    if (bits, points) == (8, "float"):
        pytest.skip("ONNX Runtime does not run it")
    count, size = 6, 32
    blocks = -(-columns // size)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 2**bits, (count, blocks, size))
    zeros = rng.integers(0, 2**bits, (count, blocks))
    inputs: list[Any] = [floats(2, 3, columns), packed(weight, bits), np.abs(floats(count, blocks)) / 9]
    inputs += {"none": [], "packed": [packed(zeros, bits)], "float": [zeros.astype(np.float32)]}[points]
    given = {"K": columns, "N": count, "bits": bits, "block_size": size}
    ms("MatMulNBits", inputs, 1e-4, fixed=range(1, len(inputs)), **given)


def test_matmul_nbits_with_groups_and_bias() -> None:
    """Without zero points: with them, ONNX Runtime's result for groups in order is not that for no groups."""
    count, size, columns = 6, 16, 64
    rng = np.random.default_rng(0)
    weight = packed(rng.integers(0, 16, (count, 4, size)), 4)
    groups = rng.permutation(np.repeat(np.arange(4), 16)).astype(np.int32)
    zeros = packed(rng.integers(0, 16, (count, 4)), 4)
    inputs: list[Any] = [floats(5, columns), weight, floats(count * 4)]
    given = {"K": columns, "N": count, "bits": 4, "block_size": size}
    ms("MatMulNBits", [*inputs, None, groups], 1e-4, fixed=[1, 2, 4], **given)
    ms("MatMulNBits", [*inputs, zeros, None, floats(count)], 1e-4, fixed=[1, 2, 3, 5], **given)


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gather_block_quantized(bits: int, points: bool) -> None:
    rng = np.random.default_rng(0)
    table, zeros = rng.integers(0, 2**bits, (9, 64)), rng.integers(0, 2**bits, (9, 4))
    indices = np.array([[3, 0, 8], [1, 1, 7]])
    inputs = [packed(table, bits), indices, floats(9, 4), *([packed(zeros, bits)] if points else [])]
    given = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    ms("GatherBlockQuantized", inputs, fixed=[0, 2, 3][: 2 + points], **given)


@pytest.mark.parametrize("kind", [ml_dtypes.uint4, ml_dtypes.int4])
def test_gather_block_quantized_of_small_types(kind: Any) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 8, (9, 32)).astype(kind)
    given = {"block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    ms("GatherBlockQuantized", [table, np.array([3, 0]), floats(9, 2)], fixed=[0, 2], **given)


@pytest.mark.parametrize("indices", [np.array(-7), np.array([[25, 0], [3, -1]])], ids=["one", "several"])
def test_gather_block_quantized_along_blocks(indices: np.ndarray) -> None:
    table = np.random.default_rng(0).integers(0, 16, (9, 33)).astype(ml_dtypes.uint4)
    given = {"block_size": 16, "gather_axis": 1, "quantize_axis": -1}
    ms("GatherBlockQuantized", [table, indices, floats(9, 3)], fixed=[0, 2], **given)


@pytest.mark.parametrize("kind", [0, 1], ids=["fp4", "nf4"])
def test_matmul_bnb4(kind: int) -> None:
    count, columns, size = 6, 48, 16
    codes = np.random.default_rng(0).integers(0, 256, count * columns // 2).astype(np.uint8)
    inputs = [floats(5, columns), codes, np.abs(floats(count * columns // size))]
    ms("MatMulBnb4", inputs, fixed=[1, 2], K=columns, N=count, block_size=size, quant_type=kind)
