"""Numbers of tensors that Python has to know, because they decide a size, a place in a list, or a text."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def known(x: Any, node: str) -> np.ndarray:
    """The numbers of a tensor, which `node` has to know; `jax.jit` does not tell them while it traces."""
    if isinstance(x, jax.core.Tracer):
        raise TypeError(
            f"{node} needs numbers that depend on data, and jax.jit does not know them while it traces: "
            "make what decides them a static argument (a number or a tuple), convert with `bounds` if they say how "
            "many results there are, or call the function without jit"
        )
    return np.asarray(x)


def listed(x: Any, node: str) -> Any:
    """The numbers of a tensor as Python's own."""
    return known(x, node).tolist()


def number(x: Any, node: str) -> Any:
    """The only number of a tensor as Python's own."""
    return known(x, node).item()


def is_tracing() -> bool:
    """Whether a transformation such as `jax.jit` is reading the code, which it then runs as it pleases."""
    return isinstance(jnp.zeros(()), jax.core.Tracer)


def strings_given(x: np.ndarray, node: str) -> np.ndarray:
    """The strings that a model gives: `jax.jit` has arrays of numbers alone."""
    if is_tracing():
        raise TypeError(
            f"{node} gives strings, and jax.jit gives arrays of numbers alone: call the function without jit, or end "
            "the model before it"
        )
    return x
