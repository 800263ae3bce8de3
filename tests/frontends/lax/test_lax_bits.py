"""Shifts, counts and bits read as other numbers, against JAX."""

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from jax import lax
from written import BFLOAT16, run, same

from onward.frontends.lax import bits

WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = {"float32": "uint32", "float16": "uint16", "bfloat16": "uint16"}
OPSETS = (21, 26)
"""By arithmetic, and by the op for it."""


def numbers(dtype):
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(0).integers(limits.min, int(limits.max) + 1, 30)
    return np.concatenate([drawn, [0, 1, 2, limits.min, limits.max]]).astype(dtype)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("shift_left", bits.shift_left),
        ("shift_right_logical", bits.shift_right_logical),
        ("shift_right_arithmetic", bits.shift_right_arithmetic),
    ],
)
def test_shifts(name, function, dtype):
    """Also by as many places as there are bits, and more."""
    x, count = numbers(dtype), np.arange(35).astype(dtype)
    same(run(function, x, count)[0], getattr(lax, name)(x, count))
    three = np.full(35, 3, dtype)
    same(run(lambda op, x: function(op, x, op.constant(three)), x)[0], getattr(lax, name)(x, three))


@pytest.mark.parametrize("dtype", WHOLE)
def test_counts(dtype):
    x = numbers(dtype)
    same(run(bits.population_count, x)[0], lax.population_count(x))
    same(run(bits.leading_zeros, x)[0], lax.clz(x))


def floats(dtype):
    special = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1.5, 3.25e38, 1.25e-38, 65504, 2**-14, 2**-24, 1e-3]
    with np.errstate(all="ignore"):
        return np.array(special, np.float32).astype(BFLOAT16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_of_floats(dtype, opset):
    x = floats(dtype)
    number = ir.DataType.from_numpy(x.dtype)
    for to in (FLOATS[dtype], "uint8"):
        wanted = lax.bitcast_convert_type(x, to)
        there = ir.DataType.from_numpy(np.dtype(to))
        same(run(lambda op, x, there=there: bits.bitcast(op, x, there), x, opset=opset)[0], wanted)
        same(run(lambda op, x: bits.bitcast(op, x, number), np.asarray(wanted), opset=opset)[0], x)


def test_bits_of_many_floats():
    drawn = np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32)
    x = drawn.view(np.float32)
    x = np.where(np.isnan(x), np.float32(1), x)
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.UINT32), x)[0], x.view(np.uint32))
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.FLOAT), x.view(np.uint32))[0], x)


@pytest.mark.parametrize("opset", OPSETS)
def test_bits_of_doubles(opset):
    drawn = np.random.default_rng(0).integers(0, 2**64, 5000, dtype=np.uint64)
    special = [0.0, -0.0, np.inf, -np.inf, 1.0, 5e-324, 2.2250738585072014e-308, np.finfo(np.float64).max]
    x = np.concatenate([drawn.view(np.float64), special])
    x = np.where(np.isnan(x), 1.0, x)
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.UINT64), x, opset=opset)[0], x.view(np.uint64))
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.DOUBLE), x.view(np.uint64), opset=opset)[0], x)
    down = run(lambda op, x: bits.next_after(op, x, op.like(-np.inf, x)), x, opset=opset)[0]
    same(down, np.nextafter(x, -np.inf))


def test_bits_of_other_widths():
    x = np.random.default_rng(0).integers(0, 2**32, 50, dtype=np.uint32)
    halves = np.asarray(lax.bitcast_convert_type(x, "int16"))
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.INT16), x)[0], halves)
    same(run(lambda op, x: bits.bitcast(op, x, ir.DataType.INT32), halves)[0], x.view(np.int32))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_next_after(dtype, opset):
    x, y = (m.reshape(-1) for m in jnp.meshgrid(floats(dtype), floats(dtype)))
    same(run(bits.next_after, np.asarray(x), np.asarray(y), opset=opset)[0], lax.nextafter(x, y))
