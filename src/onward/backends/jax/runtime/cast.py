"""Conversions to number formats that JAX does not compute with, and from and to strings."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from onward.backends.jax.runtime.host import known
from onward.backends.shared.runtime.cast import formatted, parsed


def unsigned(x: Array, dtype: Any) -> Array:
    """Floats as unsigned integers; those below zero count from the top."""
    signed = jnp.int32 if jnp.dtype(dtype).itemsize == 4 else jnp.int64
    return jnp.where(x < 0, x.astype(signed).astype(dtype), x.astype(dtype))


def low_bits(x: Array, width: int, signed: bool) -> Array:
    """The lowest bits of whole numbers, as integers of that width held in bytes."""
    low: Array = x.astype(int) & (2**width - 1)
    if not signed:
        return low.astype(jnp.uint8)
    sign: Array = low & 2 ** (width - 1)
    return (low - 2 * sign).astype(jnp.int8)


def round_to_small_float(x: Array, mantissa: int, lowest_exponent: int, largest: float) -> Array:
    """The nearest values (ties to even) of a float format without infinities and NaN, held in float32."""
    x = jnp.where(jnp.isnan(x), -0.0, jnp.clip(x.astype(jnp.float32), -largest, largest))
    exponent = (lax.bitcast_convert_type(x, jnp.int32) >> 23) & 255
    step = lax.bitcast_convert_type((jnp.maximum(exponent, lowest_exponent + 127) - mantissa) << 23, jnp.float32)
    return jnp.round(x / step) * step


def to_power_of_two(x: Array, saturate: bool, round_mode: str) -> Array:
    """The exponent alone, as float8_e8m0 has it, rounded "up", "down" or to the "nearest"; held in float32."""
    number = lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32)
    exponent, fraction = (number >> 23) & 255, number & 0x7FFFFF
    if round_mode == "up":
        up = fraction > 0
    elif round_mode == "nearest":
        up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    else:
        up = jnp.zeros_like(fraction, bool)
    rounded = jnp.minimum(exponent + up, 254 if saturate else 255)
    rounded = jnp.where(exponent == 255, 255, rounded)
    bits = jnp.where(rounded == 0, 1 << 22, rounded << 23)
    return lax.bitcast_convert_type(jnp.where(rounded == 255, 0x7FC00000, bits), jnp.float32)


FLOAT4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def float4_code(x: Array) -> Array:
    """The bit pattern of float4e2m1 values."""
    return jnp.searchsorted(jnp.array(FLOAT4_VALUES, x.dtype), jnp.abs(x)) + 8 * jnp.signbit(x)


def float4_value(code: Array) -> Array:
    """The inverse of `float4_code`."""
    values = jnp.array([*FLOAT4_VALUES, *(-v for v in FLOAT4_VALUES)], jnp.float32)
    return values[code.astype(int) & 15]


def parse_numbers(strings: Any, dtype: Any) -> Array:
    """Strings such as "3.14", "1e-5" or "-INF" as numbers."""
    return jnp.asarray(parsed(strings, jnp.issubdtype(dtype, jnp.floating)).astype(dtype))


def format_numbers(x: Array, node: str) -> Any:
    """Numbers as strings: 8 significant digits of a float."""
    numbers = known(x, node)
    return formatted(numbers.astype(np.float64) if jnp.issubdtype(x.dtype, jnp.floating) else numbers)
