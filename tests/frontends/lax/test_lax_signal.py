"""Fourier transforms, and complex numbers as two parts, against JAX."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from written import near, run

from onward.frontends.lax import complex_numbers, signal
from onward.frontends.lax.special import erf_inv
from onward.frontends.tensorflow.values import Complex

X, Y = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)


def parts(z):
    return [z.real, z.imaginary] if isinstance(z, Complex) else [z]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transforms(axes):
    z, over = X + 1j * Y, tuple(range(3 - axes, 3))
    for inverse in (False, True):
        wanted = (jnp.fft.ifftn if inverse else jnp.fft.fftn)(z, axes=over)
        found = run(lambda op, x, y, i=inverse: parts(signal.fft(op, Complex(x, y), axes, i)), X, Y)
        near(found[0], wanted.real, 1e-4, 1e-4)
        near(found[1], wanted.imag, 1e-4, 1e-4)
    wanted = jnp.fft.rfftn(X, axes=over)
    found = run(lambda op, x: parts(signal.rfft(op, x, axes)), X)
    near(found[0], wanted.real, 1e-4, 1e-4)
    near(found[1], wanted.imag, 1e-4, 1e-4)


@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 10])
def test_back_to_real_numbers(length):
    half = (X + 1j * Y)[..., : length // 2 + 1]
    wanted = jnp.fft.irfft(half, length)
    found = run(lambda op, x, y: signal.irfft(op, Complex(x, y), 1, length), half.real.copy(), half.imag.copy())
    near(found[0], wanted, 1e-4, 1e-5)


FUNCTIONS = {
    "times": (lambda op, z: complex_numbers.times(z, z), lambda z: z * z),
    "divided": (
        lambda op, z: complex_numbers.divided(op, Complex(z.imaginary, z.real), z),
        lambda z: 1j * z.conj() / z,
    ),
    "magnitude": (complex_numbers.magnitude, jnp.abs),
    "angle": (complex_numbers.angle, jnp.angle),
    "exponential": (complex_numbers.exponential, jnp.exp),
    "logarithm": (complex_numbers.logarithm, jnp.log),
    "root": (complex_numbers.square_root, jnp.sqrt),
    "power": (lambda op, z: complex_numbers.power(op, z, z), lambda z: z**z),
    "inverse cube": (lambda op, z: complex_numbers.whole_power(op, z, -3), lambda z: z**-3),
    "direction": (complex_numbers.direction, jnp.sign),
    "sine": (complex_numbers.sine, jnp.sin),
    "cosine": (complex_numbers.cosine, jnp.cos),
    "tangent": (complex_numbers.tangent, jnp.tan),
    "hyperbolic sine": (complex_numbers.hyperbolic_sine, jnp.sinh),
    "hyperbolic cosine": (complex_numbers.hyperbolic_cosine, jnp.cosh),
    "hyperbolic tangent": (complex_numbers.hyperbolic_tangent, jnp.tanh),
    "exponential less one": (complex_numbers.exponential_less_one, jnp.expm1),
    "logarithm of one more": (complex_numbers.logarithm_of_one_more, jnp.log1p),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_numbers(name):
    function, reference = FUNCTIONS[name]
    wanted = reference(jnp.asarray(X + 1j * Y))
    found = run(lambda op, x, y: parts(function(op, Complex(x, y))), X, Y)
    for one, other in zip(found, [wanted] if len(found) == 1 else [wanted.real, wanted.imag], strict=True):
        near(one, other, 1e-4, 1e-5)


def test_inverse_of_erf():
    x = np.array([-1, 1, 0, 0.5, -0.3, 0.99999, -0.9999999, 1e-8, 2.0, np.nan], np.float32)
    near(run(erf_inv, x)[0], lax.erf_inv(x))
