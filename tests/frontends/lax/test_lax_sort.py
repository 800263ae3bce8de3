"""Sorting and the largest few, against JAX: what is no number, zeros of either sign, equal numbers."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from written import BFLOAT16, run, same

from onward.frontends.lax import sort

SPECIAL = np.array([[1, np.nan, 3, np.inf, -np.inf, -0.0, 0.0, np.nan, 3, 1e4, -0.0, 1]], np.float32)


def numbers(dtype):
    if dtype in ("float32", "float16", "bfloat16"):
        return SPECIAL.astype(BFLOAT16 if dtype == "bfloat16" else dtype)
    limits = np.iinfo(dtype)
    return np.random.default_rng(0).integers(limits.min, int(limits.max) + 1, (3, 30)).astype(dtype)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
)
def test_sort_and_largest(dtype):
    x = numbers(dtype)
    same(run(lambda op, x: sort.sort(op, [x], 1), x)[0], lax.sort(x))
    places = np.broadcast_to(np.arange(x.shape[1], dtype=np.int32), x.shape)
    found = run(lambda op, x, i: sort.sort(op, [x, i], 1), x, places)
    for one, other in zip(found, lax.sort((x, jnp.asarray(places)), num_keys=1), strict=True):
        same(one, other)
    for one, other in zip(run(lambda op, x: sort.top_k(op, x, 7, 1), x), lax.top_k(x, 7), strict=True):
        same(one, other)
    if dtype == "float32":  # what is no number is less than all once it is negative
        wanted = lax.top_k(-x, 12)
        for one, other in zip(run(lambda op, x: sort.top_k(op, op.Neg(x), 12, 1), x), wanted, strict=True):
            same(one, other)


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_several_keys(keys):
    rng = np.random.default_rng(0)
    given = [
        rng.integers(0, 3, 40).astype(np.int32),
        rng.choice(np.array([0.0, -0.0, 1, np.nan], np.float32), 40),
        np.arange(40, dtype=np.int32)[::-1].copy(),
    ]
    found = run(lambda op, *x: sort.sort(op, x, 0, keys), *given)
    for one, other in zip(found, lax.sort(tuple(map(jnp.asarray, given)), num_keys=keys), strict=True):
        same(one, other)


def test_along_an_open_axis():
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    same(run(lambda op, x: sort.sort(op, [x], 0), x, open_axes=(0,))[0], np.sort(x, 0))
