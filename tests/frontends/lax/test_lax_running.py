"""Running results, forwards and backwards, of known and open length, against JAX."""

import numpy as np
import pytest
from jax import lax
from written import near, run, same

from onward.frontends.lax import running

X = np.random.default_rng(0).normal(size=(3, 7, 2)).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_floats(name, reverse):
    function, wanted = getattr(running, name), getattr(lax, name)(X, axis=1, reverse=reverse)
    near(run(lambda op, x: function(op, x, 1, reverse), X)[0], wanted)
    near(run(lambda op, x: function(op, x, 1, reverse), X, open_axes=(0, 1))[0], wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_whole_numbers_wrap(name, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, int(limits.max) + 1, (3, 11)).astype(dtype)
    same(run(lambda op, x: getattr(running, name)(op, x, 1), x)[0], getattr(lax, name)(x, axis=1))


def test_what_is_no_number():
    x = np.array([[-np.inf, -np.inf, 1, np.inf, 2, np.nan, 3]], np.float32)
    near(run(lambda op, x: running.cumlogsumexp(op, x, 1), x)[0], lax.cumlogsumexp(x, axis=1))
    same(run(lambda op, x: running.cummax(op, x, 1), x)[0], lax.cummax(x, axis=1))
