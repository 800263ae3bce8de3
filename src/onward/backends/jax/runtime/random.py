"""Keys of random numbers."""

import secrets
from collections.abc import Iterator

import jax
from jax import Array

from onward.backends.jax.runtime.host import is_tracing


def new_key() -> Array:
    """A key of its own for each call, since the file names no seed."""
    if is_tracing():
        raise ValueError(
            "the model draws random numbers without a seed: jax.jit would draw them once, and repeat them in every "
            "call; call it without jit, or give the random nodes of the file a seed"
        )
    return jax.random.key(secrets.randbits(32))


def keys_of(key: Array) -> Iterator[Array]:
    """A key for each thing that is drawn, one after the other."""
    while True:
        key, own = jax.random.split(key)
        yield own
