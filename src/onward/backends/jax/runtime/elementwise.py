"""Elementwise functions whose edge cases differ from JAX's, and those on strings."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def integer_divide(a: Array, b: Any) -> Array:
    """Integers divided, rounded towards zero."""
    return lax.div(*jnp.broadcast_arrays(a, jnp.asarray(b, a.dtype)))


def float_modulo(a: Array, b: Array) -> Array:
    """The remainder of dividing floats, with the sign of the divisor, of zeros too."""
    rest = jnp.fmod(a, b)
    rest = jnp.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return jnp.where(rest == 0, jnp.copysign(rest, b), rest)


def integer_power(x: Array, y: Array) -> Array:
    """x ** y of integers, in the dtype of `x`; of a negative power the fraction is cut off."""
    wide, power = x.astype(int), y.astype(int)
    inverse = jnp.where(jnp.abs(wide) == 1, wide ** (power & 1), 0)
    return jnp.where(power < 0, inverse, wide ** jnp.maximum(power, 0)).astype(x.dtype)


def string_equal(a: Any, b: Any) -> Array:
    """Where two arrays of strings are equal."""
    return jnp.asarray(np.asarray(a == b, dtype=bool))
