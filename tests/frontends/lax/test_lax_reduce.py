"""Reductions of whole numbers and by functions of two."""

import numpy as np
import pytest
from jax import lax
from written import near, run, same

from onward.frontends.lax import reduce


def numbers(dtype, shape=(4, 5, 3)):
    limits = np.iinfo(dtype)
    return np.random.default_rng(0).integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("axes", [(0, 1, 2), (1,), (0, 2)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_whole_numbers(dtype, axes):
    x = numbers(dtype)
    same(run(lambda op, x: reduce.whole_sum(op, x, axes), x)[0], x.sum(axes, dtype=dtype))
    same(run(lambda op, x: reduce.whole_product(op, x, axes), x)[0], x.prod(axes, dtype=dtype))
    same(run(lambda op, x: reduce.whole_extreme(op, "ReduceMax", x, axes), x)[0], x.max(axes))
    same(run(lambda op, x: reduce.whole_extreme(op, "ReduceMin", x, axes), x)[0], x.min(axes))


def test_by_a_function():
    x = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    wanted = lax.reduce(x, np.float32(0), lambda a, b: lax.sqrt(a * a + b * b), (0, 2))
    zero = np.zeros((), np.float32)

    def pair(first, second):
        (a,), (b,) = first, second
        return [a.op.Sqrt(a * a + b * b)]

    near(run(lambda op, x, z: reduce.reduced_by(op, [x], [z], (0, 2), pair), x, zero)[0], wanted)
