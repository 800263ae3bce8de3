"""What no ONNX graph can stand for, with the word that the refusal has to say."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax_cases import refused


@refused("pure_callback", "f32[3]")
def calls_python(x):
    return jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct((3,), jnp.float32), x)


@refused("io_callback", "f32[3]")
def calls_python_with_effects(x):
    return io_callback(lambda v: np.cos(v), jax.ShapeDtypeStruct((3,), jnp.float32), x)


@refused("pure_callback", "f32[3]")
def calls_python_in_a_scan(x):
    def step(carry, v):
        return carry, jax.pure_callback(lambda a: np.sin(a), jax.ShapeDtypeStruct((), jnp.float32), v)

    return lax.scan(step, 0.0, x)[1]


@refused("complex", "c64[3]")
def complex_input(x):
    return jnp.abs(x)


@refused("complex", "f32[3]")
def complex_output(x):
    return jnp.fft.fft(x)


@refused("complex", "f32[3]")
def complex_output_among_others(x):
    return x, x + 1j


@refused("rbg", "f32[3]")
def random_bit_generator(x):
    return x + jax.random.normal(jax.random.key(0, impl="rbg"), (3,))


@refused("unsafe_rbg", "i32[]")
def unsafe_random_bit_generator(seed):
    return jax.random.uniform(jax.random.key(seed, impl="unsafe_rbg"), (3,))


@refused("eig", "f32[3,3] plain")
def eigenvalues_of_any_matrix(x):
    return jnp.abs(jnp.linalg.eig(x)[0])


@refused("schur", "f32[3,3] plain")
def schur_form(x):
    return jax.scipy.linalg.schur(x)[0]


@refused("ffi", "f32[3]")
def foreign_function(x):
    return jax.ffi.ffi_call("no_such_function", jax.ShapeDtypeStruct((3,), jnp.float32))(x)


@refused("rng_bit_generator", "u32[4]")
def bits_of_the_device(key):
    return lax.rng_bit_generator(key, (4,))[1]


@refused("rng_uniform", "f32[]")
def uniform_of_the_device(x):
    return lax.rng_uniform(0.0, 1.0, (3,)) + x


REFUSED: dict[str, str] = {}
"""Programs that should convert and are refused so far, by id, each with the reason."""
