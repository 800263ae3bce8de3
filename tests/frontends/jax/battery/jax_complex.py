"""Complex numbers inside of a program, whose inputs and results are real."""

import jax
import jax.numpy as jnp
from jax import lax
from jax_cases import case, cases


def parts(*values):
    return [part for value in values for part in (value.real, value.imag)]


def functions(x, y):
    z = lax.complex(x, y)
    small = z * 1e-3
    near_zero = jnp.tanh(small), jnp.sinh(small), jnp.sin(small), jnp.expm1(small), jnp.log1p(small)
    return parts(jnp.tanh(z), jnp.tan(z), jnp.sinh(z), jnp.cosh(z), jnp.expm1(z), jnp.log1p(z), *near_zero)


cases("f32[9] plain", "f32[9] plain", functions=functions)
cases("f64[9] plain", "f64[9] plain", x64=True, functions_in_doubles=functions)


@case("f32[9]", "f32[9]")
def hyperbolic_tangent_of_large_numbers(x, y):
    return parts(jnp.tanh(lax.complex(x, y)))


@case("f32[6] plain", "f32[6] plain")
def powers(x, y):
    z = lax.complex(x, y)
    roots = jnp.sqrt(z), z**2, z**-1, z**0.5, jnp.power(z, z), z / (z + 1)
    return parts(*roots, jnp.log(z), jnp.sign(z), jnp.cumsum(z), jnp.prod(z))


@case("f32[4,5]", "f32[4,5]", "i32[4,5]")
def sorted_by_both_parts(x, y, i):
    z = lax.complex(x, y)
    rows, places = lax.sort((z, i), dimension=0)
    _, second, third = lax.sort((i, z, y), num_keys=2)
    return [*parts(jnp.sort(z, 1), rows, second), places, third, jnp.argsort(z, 1)]


@case("f32[5] plain")
def spectrum_and_its_gradient(x):
    turned, path = lax.scan(lambda c, v: (c * jnp.exp(1j * v), c + v), jnp.complex64(1), x)
    return [*parts(turned, path), jax.grad(lambda v: jnp.abs(jnp.fft.fft(v)).sum())(x + 5)]
