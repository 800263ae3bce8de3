"""Arithmetic, with XLA's meaning of overflow, division by zero and no number."""

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from jax import lax
from written import BFLOAT16, near, run, same

from onward.frontends.lax import elementwise

WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def whole_pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the ends of a dtype, of what is next to them, and of small numbers."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    numbers = {low, low + 1, high, high - 1, high // 2 + 1, high // 3, 0, 1, 2, 7} | ({-1, -2, -7} if low else set())
    array = np.array(sorted(numbers), dtype)
    a, b = np.meshgrid(array, array)
    return a.reshape(-1), b.reshape(-1)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("div", elementwise.divide),
        ("rem", elementwise.remainder),
        ("max", elementwise.maximum),
        ("min", elementwise.minimum),
    ],
)
def test_whole_numbers_in_pairs(name, function, dtype):
    a, b = whole_pairs(dtype)
    same(run(function, a, b)[0], getattr(lax, name)(a, b))


@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers_alone(dtype):
    a = np.unique(whole_pairs(dtype)[0])
    if dtype[0] != "u":
        same(run(elementwise.absolute, a)[0], lax.abs(a))
    same(run(elementwise.sign, a)[0], lax.sign(a))
    same(run(elementwise.negated, a)[0], lax.neg(a))
    for power in (0, 1, 2, 3, 7):
        same(run(lambda op, x, n=power: elementwise.whole_power(op, x, n), a)[0], lax.integer_pow(a, power))
    low, high = np.array(3, dtype), np.array(100, dtype)
    same(run(elementwise.clamp, low, a, high)[0], lax.clamp(low, a, high))


def test_divisor_is_known():
    a = np.array([-7, 7, -(2**31), 2**31 - 1], np.int32)
    for divisor in (3, -3, 0, -1):
        b = np.full(4, divisor, np.int32)
        same(run(lambda op, x, b=b: elementwise.divide(op, x, op.constant(b)), a)[0], lax.div(a, b))
        same(run(lambda op, x, b=b: elementwise.remainder(op, x, op.constant(b)), a)[0], lax.rem(a, b))


def test_wide_numbers_in_pairs():
    """JAX has them with 64 bits switched on only: the results are numpy's."""
    a, b = whole_pairs("int64")
    same(run(elementwise.maximum, a, b)[0], np.maximum(a, b))
    same(run(elementwise.minimum, a, b)[0], np.minimum(a, b))
    pairs = zip(map(int, a), map(int, b), strict=True)
    exact = [-1 if n == 0 else abs(m) // abs(n) * (1 if (m < 0) == (n < 0) else -1) for m, n in pairs]
    quotient = np.array([(q + 2**63) % 2**64 - 2**63 for q in exact], np.int64)
    same(run(elementwise.divide, a, b)[0], quotient)
    same(run(elementwise.sign, a)[0], np.sign(a))


SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 127.5, 128, -129, 255.9, 256, 32768,
     65536, 2147483520, 2147483648, -2147483648, 4294967040, 4294967296, 1e20, -1e20],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("to", [*WHOLE, "bool", "float32", "float16", "bfloat16"])
def test_conversion_of_floats(dtype, to):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(BFLOAT16 if dtype == "bfloat16" else dtype)
    wanted = lax.convert_element_type(x, to)
    number = ir.DataType.from_numpy(np.asarray(wanted).dtype)
    same(run(lambda op, x: elementwise.convert(op, x, number), x)[0], wanted)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("to", [*WHOLE, "bool", "float32"])
def test_conversion_of_whole_numbers(dtype, to):
    x = np.unique(whole_pairs(dtype)[0])
    number = ir.DataType.from_numpy(np.dtype(to))
    same(run(lambda op, x: elementwise.convert(op, x, number), x)[0], lax.convert_element_type(x, to))


def test_conversion_to_64_bits():
    x = np.array([np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 2.0**64, 1e19, 2.5, -2.5])
    wanted = [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 2**63 - 1, 2**63 - 1, 2, -2]
    same(run(lambda op, x: elementwise.convert(op, x, ir.DataType.INT64), x)[0], np.array(wanted))
    positive = [0, 2**64 - 1, 0, 2**63, 0, 2**64 - 1, 10**19, 2, 0]
    same(run(lambda op, x: elementwise.convert(op, x, ir.DataType.UINT64), x)[0], np.array(positive, np.uint64))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_floats(dtype):
    x = SPECIAL[:16].astype(BFLOAT16 if dtype == "bfloat16" else dtype)
    same(run(elementwise.sign, x)[0], lax.sign(x))
    same(run(elementwise.round_away, x)[0], lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO))
    a, b = (m.reshape(-1) for m in np.meshgrid(x, x))
    same(run(elementwise.maximum, a, b)[0], lax.max(a, b))
    same(run(elementwise.minimum, a, b)[0], lax.min(a, b))
    same(run(elementwise.remainder, a, b)[0], lax.rem(a, b))
    near(run(lambda op, x: elementwise.whole_power(op, x, -3), x)[0], lax.integer_pow(x, -3), rtol=1e-2)
    low, high = jnp.asarray(-1, x.dtype), jnp.asarray(2, x.dtype)
    same(run(elementwise.clamp, low, x, high)[0], lax.clamp(low, x, high))
